//! The scripts of the Debian package, with a systemctl in the place of the real one. `tests/package` runs them under a
//! real systemd.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Notes its arguments, and takes no glob where the real one takes none.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >>"$0.log"
case "$*" in
enable*\** | disable*\**) echo "Failed to $1 unit: Invalid unit name" >&2 && exit 1 ;;
esac
"#;

#[test]
fn a_removal_disables_units_by_names_that_systemctl_takes_and_an_upgrade_touches_none() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/deploy/debian");
    let folder = tempfile::tempdir().unwrap();
    let systemctl = folder.path().join("systemctl");
    fs::write(&systemctl, SYSTEMCTL).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    for (action, disabled) in [
        ("upgrade", None),
        (
            "remove",
            Some("disable doorward-agent.service doorward-server@.service"),
        ),
    ] {
        let mut shell = Command::new("sh");
        let script = shell
            .arg(scripts.join("prerm"))
            .arg(action)
            .env("PATH", &path);
        assert!(script.status().unwrap().success(), "{action}");
        let called = fs::read_to_string(folder.path().join("systemctl.log"));
        let called = called.unwrap_or_default();
        assert_eq!(called.lines().last(), disabled, "{action}: {called}");
    }
    for script in ["postinst", "prerm", "postrm"] {
        let text = fs::read_to_string(scripts.join(script)).unwrap();
        assert!(
            text.contains("\nset -e\n") && !text.contains("||"),
            "{script} hides no failure"
        );
    }
}
