//! Kinds of keys. `testdata` has a certificate and a key of each, made by OpenSSL, that is valid for a century.

use std::fs;

use doorward_tests::certificates::CustomExtension;
use doorward_tls::client::{ClientFiles, ClientTls};
use doorward_tls::described;
use doorward_tls::server::{ServerFiles, ServerTls};

use crate::files::{Folder, connected, of_kind, problem};

/// Kinds of keys that are not taken.
const OTHERS: [&str; 4] = ["p521", "p521_sec1", "ed448", "rsa_pss"];

#[test]
fn a_refusal_of_a_key_has_the_kinds_that_are_taken() {
    let files = Folder::new();
    for kind in OTHERS.into_iter().chain(["rsa1024", "rsa_exponent"]) {
        let pair = (of_kind(kind), of_kind(kind));
        let of_client = ClientTls::open(ClientFiles {
            ca: files.path("ca.pem"),
            identity: Some(pair.clone()),
            token: None,
        });
        let of_server = problem(ServerFiles {
            certificate: pair.0,
            key: pair.1,
            ..files.server()
        });
        for problem in [of_server, described(&of_client.unwrap_err())] {
            let expected = "of a kind that is not taken; taken are RSA of 2048, 3072 or 4096 bits";
            assert!(problem.contains(expected), "{kind}: {problem}");
        }
    }
    for kind in ["p384", "ed25519", "rsa2048"] {
        let seen = problem(ServerFiles {
            certificate: of_kind(kind),
            key: of_kind(kind),
            ..files.server()
        });
        assert_eq!(seen, "", "{kind}");
    }
}

#[test]
fn an_authority_whose_signatures_cannot_be_verified_is_refused() {
    let files = Folder::new();
    let own = &files.authority.certificate;
    for kind in OTHERS {
        files.write(
            "ca.pem",
            &format!("{own}{}", fs::read_to_string(of_kind(kind)).unwrap()),
        );
        let seen = problem(files.server());
        let expected =
            "the key of an authority is of a kind that is not taken; taken are RSA of 2048 to";
        assert!(seen.contains(expected), "{kind}: {seen}");
    }
}

#[test]
fn a_file_without_what_it_should_have_says_what_it_has() {
    let files = Folder::new();
    let certificate = fs::read_to_string(files.path("server.pem")).unwrap();
    let key = fs::read_to_string(files.path("server.key")).unwrap();
    let encrypted = |name: &str| fs::read_to_string(of_kind(name)).unwrap();
    for (name, text, expected) in [
        ("server.key", certificate.clone(), "it has CERTIFICATE"),
        ("server.pem", key.clone(), "it has PRIVATE KEY"),
        (
            "server.key",
            format!("{key}{key}"),
            "one private key, not several",
        ),
        ("server.key", encrypted("encrypted"), "without a passphrase"),
        (
            "server.key",
            encrypted("encrypted_pkcs1"),
            "without a passphrase",
        ),
        (
            "server.key",
            fs::read_to_string(of_kind("no_public")).unwrap(),
            "the key is cut, has no public part",
        ),
        (
            "server.key",
            key.replace('M', "*"),
            "between -----BEGIN and -----END is not base64; it has PRIVATE KEY",
        ),
        (
            "server.pem",
            certificate.replace("-----BEGIN", "  -----BEGIN"),
            "its lines -----BEGIN are indented",
        ),
        (
            "ca.pem",
            "-----BEGIN CERTIFICATE----\nAAAA\n".to_owned(),
            "a line -----BEGIN has another end than -----",
        ),
        ("server.key", String::new(), "it is empty"),
        (
            "ca.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(),
            "a line -----END is missing",
        ),
        ("server.pem", "\u{1}\u{2}".to_owned(), "it is not PEM"),
        ("ca.pem", key, "it has PRIVATE KEY"),
        (
            "ca.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
            "it has an invalid X.509 certificate",
        ),
        (
            "server.key",
            fs::read_to_string(of_kind("p384")).unwrap(),
            "the key is not that",
        ),
    ] {
        let before = fs::read_to_string(files.path(name)).unwrap();
        files.write(name, &text);
        let seen = problem(files.server());
        assert!(
            seen.contains(expected) && seen.contains(name),
            "{name}: {seen}"
        );
        files.write(name, &before);
    }
}

#[tokio::test]
async fn a_critical_extension_that_is_not_taken_is_told_of_an_own_certificate_and_of_a_callers() {
    let files = Folder::new();
    let tls = ServerTls::open(files.server()).unwrap();
    let pair = files
        .authority
        .certify_with("policies", &["localhost"], |params| {
            let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 36], vec![0x30, 0]);
            extension.set_criticality(true);
            params.custom_extensions = vec![extension];
        });
    let expected = "it has a critical extension that is not taken; taken are key usage, ";
    let of_caller = connected(&tls, &pair.certificate, &pair.key).await;
    let of_caller = of_caller.unwrap_err();
    assert!(of_caller.contains(expected), "{of_caller}");
    files.write_pair("server", &pair);
    let own = problem(files.server());
    assert!(own.contains(expected), "{own}");
}
