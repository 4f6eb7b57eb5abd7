//! Kinds of keys. `testdata` has a certificate and a key of each, made by OpenSSL, that is valid for a century.

use std::fs;

use doorward_tls::client::{ClientFiles, ClientTls};
use doorward_tls::described;
use doorward_tls::server::ServerFiles;

use crate::files::{Folder, of_kind, problem};

/// Kinds that are not taken, and their names in refusals.
const OTHERS: [(&str, &str); 7] = [
    ("p521", "ECDSA P-521"),
    ("p521_sec1", "ECDSA P-521"),
    ("ed448", "Ed448"),
    ("secp256k1", "ECDSA secp256k1"),
    ("rsa1024", "RSA of 1024 bits"),
    ("rsa1024_pkcs1", "RSA of 1024 bits"),
    ("rsa_pss", "RSA for PSS only"),
];

#[test]
fn a_key_that_is_not_taken_is_named_beside_those_that_are() {
    let files = Folder::new();
    for (kind, name) in OTHERS {
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
            let expected = format!("the key is {name}, which is not taken; taken are RSA of 2048");
            assert!(problem.contains(&expected), "{kind}: {problem}");
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
fn an_authority_whose_signatures_cannot_be_verified_is_named() {
    let files = Folder::new();
    let own = &files.authority.certificate;
    for (kind, name) in OTHERS {
        files.write(
            "ca.pem",
            &format!("{own}{}", fs::read_to_string(of_kind(kind)).unwrap()),
        );
        let seen = problem(files.server());
        let expected = format!("an authority has a key of {name}; taken are RSA");
        assert!(seen.contains(&expected), "{kind}: {seen}");
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
            "the key (ECDSA P-384) is not that",
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
