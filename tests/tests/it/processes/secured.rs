//! The commands of docs/security.md, in their order, in an empty folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use doorward_tests::certificates::{Authority, SanType};
use doorward_tests::outside::root;
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::program;

/// Returns the commands in the section about TLS.
fn blocks() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let section = text
        .split("\n## ")
        .find(|it| it.starts_with("TLS\n"))
        .unwrap();
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Writes what the guide makes with openssl.
fn certify(folder: &Path) {
    let authority = Authority::new();
    fs::write(folder.join("ca.pem"), &authority.certificate).unwrap();
    for (name, uri) in [
        ("root", None),
        ("eu", Some("eu")),
        ("orders", Some("orders")),
    ] {
        let pair = authority.certify_with(name, &["127.0.0.1", "localhost"], |params| {
            let uri = uri.map(|uri| format!("spiffe://example.com/{uri}").try_into().unwrap());
            params.subject_alt_names.extend(uri.map(SanType::URI));
        });
        fs::write(folder.join(format!("{name}.pem")), pair.certificate).unwrap();
        fs::write(folder.join(format!("{name}.key")), pair.key).unwrap();
    }
}

#[test]
fn the_guide_to_tls_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path());
    let shell = blocks();
    let [openssl, tokens, servers, callers] = shell.as_slice() else {
        panic!("{shell:?}");
    };
    assert!(openssl.starts_with("openssl"));
    let wait = "until doorward whoami --server https://127.0.0.1:6980 --ca ca.pem --tls-cert orders.pem \
                --tls-key orders.key > /dev/null 2>&1; do sleep 0.05; done";
    let mut script =
        format!("set -e\ntrap 'kill $(jobs -p)' EXIT\n{tokens}\n{servers}\n{wait}\n{callers}");
    script = script.replacen("root.key", "root.key --http-listen 127.0.0.1:6971", 1);
    script = script.replace(
        "doorward-server --tls",
        "doorward-server --listen 127.0.0.1:6970 --tls",
    );
    for port in ["6970", "6971", "6980", "6981"] {
        script = script.replace(&format!("127.0.0.1:{port}"), &lasting_address());
    }
    let output = run(&script, folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}\n{problem}");
    for expected in [
        "spiffe://example.com/orders; may not",
        "30 of 30",
        "token:batch from",
    ] {
        assert!(text.contains(expected), "{expected}: {text}\n{problem}");
    }
}

fn run(script: &str, folder: &Path) -> Output {
    let programs = program("doorward");
    let programs = programs.parent().unwrap().display();
    Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", format!("{programs}:/usr/bin:/bin"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}
