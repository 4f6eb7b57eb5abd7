//! Flags that say where etcd is, and those that contradict each other.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Flags {
    #[command(flatten)]
    etcd: EtcdFlags,
}

fn config(arguments: &[&str]) -> Result<Option<EtcdConfig>, String> {
    let flags = Flags::parse_from(std::iter::once(&"test").chain(arguments));
    flags.etcd.config()
}

#[test]
fn without_endpoints_etcd_is_not_used() {
    assert_eq!(config(&[]).unwrap(), None);
    let config = config(&["--etcd-endpoints", "a:1,http://b:2"])
        .unwrap()
        .unwrap();
    assert_eq!(config.endpoints.len(), 2);
    assert_eq!(config.user, None);
}

#[test]
fn a_password_is_read_without_the_end_of_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, "a b\n").unwrap();
    let file = file.to_str().unwrap();
    let flags = [
        "--etcd-endpoints",
        "a:1",
        "--etcd-user",
        "ann",
        "--etcd-password-file",
        file,
    ];
    let user = config(&flags).unwrap().unwrap().user.unwrap();
    assert_eq!((user.name.as_str(), user.password.as_str()), ("ann", "a b"));
}

#[test]
fn flags_that_contradict_each_other_say_what_to_do() {
    for (flags, problem) in [
        (&["--etcd-user", "ann"][..], "see --etcd-endpoints"),
        (
            &["--etcd-endpoints", "a:1", "--etcd-ca", "x"],
            "no endpoint is https",
        ),
        (&["--etcd-endpoints", "https://a:1"], "give --etcd-ca"),
        (
            &["--etcd-endpoints", "a:1", "--etcd-user", "ann"],
            "both, or neither",
        ),
        (
            &[
                "--etcd-endpoints",
                "a:1",
                "--etcd-user",
                "a",
                "--etcd-password-file",
                "/none",
            ],
            "cannot read the password from /none",
        ),
        (
            &["--etcd-endpoints", "https://a:1", "--etcd-ca", "/none"],
            "cannot read /none",
        ),
    ] {
        let error = config(flags).unwrap_err().to_string();
        assert!(error.contains(problem), "{flags:?}: {error}");
    }
}
