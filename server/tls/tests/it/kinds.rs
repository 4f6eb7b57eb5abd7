//! Kinds of keys. `testdata` has a certificate and a key of each, made by OpenSSL, that is valid for a century.

use std::fs;

use doorward_tests::certificates::CustomExtension;
use doorward_tls::client::{ClientFiles, ClientTls};
use doorward_tls::described;
use doorward_tls::server::{ServerFiles, ServerTls};

use crate::files::{Folder, connected, of_kind, problem};

/// Kinds that are not taken, and their names in refusals.
const OTHERS: [(&str, &str); 10] = [
    ("p521", "ECDSA P-521"),
    ("p521_sec1", "ECDSA P-521"),
    ("ed448", "Ed448"),
    ("p224", "ECDSA P-224"),
    ("secp256k1", "ECDSA secp256k1"),
    ("brainpool", "ECDSA brainpool"),
    ("explicit_sec1", "ECDSA with a curve without a name"),
    ("rsa1024", "RSA of 1024 bits"),
    ("rsa1024_pkcs1", "RSA of 1024 bits"),
    ("rsa_pss", "RSA for PSS only"),
];

/// Keys that no test needs a certificate of.
const KEYS: [(&str, &str); 4] = [
    (
        "EC PRIVATE KEY-----\nMIGAAgEBBCQBUAcJUx3i3n82suElVluonubPsFLcSvABaIRfpO6pFXZO0megBwYFK4EEABChTANK\nAAQDoQ4EVEJ8agS0+AD4wg/fuPFZ59aUmUDlU/lYBnVj2Xt/PzIFgN8+6128ActfHFWj0/CIqOcNIcsklih6HJkMH8kggy63nv8=\n-----END EC PRIVATE KEY-----\n",
        "ECDSA of another SECG curve",
    ),
    (
        "PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEILCbu54e+8HoXe4d5me/3se9jh2tkCvE4aaZHuZRbHh5\n-----END PRIVATE KEY-----\n",
        "X25519, which signs nothing",
    ),
    (
        // The same with an unknown identifier.
        "PRIVATE KEY-----\nMC4CAQAwBQYDK2VeBCIEILCbu54e+8HoXe4d5me/3se9jh2tkCvE4aaZHuZRbHh5\n-----END PRIVATE KEY-----\n",
        "of the kind 1.3.101.94",
    ),
    (
        "RSA PRIVATE KEY-----\nMIIBPAIBAAJBALEHP+/iOHmlMuAcpeTAAcUtAeAVJh9Mnr+KQchnIJEUNQw6C7SsuQrVLX9+NAcW3ijHi5V0Drzje/JUmQN9wecCAwEAAQJBAKYBNmOsr2jjESI3uxkXNJHB8tA/BNC0+OiErctPaaqgyAR1o4DLmOXbU7nKgOkcakb0QWmM02cKDugIoqKERAECIQDlNE5VSHSminGFcFWYeFCaekba9WUuvwYwQVd7U2o/YQIhAMW5Z7a6q0S/wVNTnWY5JCi9xYD66JB2gqC6J6kSWu5HAiEA3aoBW98v2WSotylVzpgFM/Cvl9Cdo2DgxkhbJ40bguECIFvLeeURwNXIGJ7w4NBGkwz/HaSF2FbJTlgEVMlfpiudAiEAnloIxD0DB50l+jI6Sb46iSMmdXirBqvEo+dwuBG1XBk=\n-----END RSA PRIVATE KEY-----\n",
        "RSA of 512 bits",
    ),
];

#[test]
fn a_key_that_is_not_taken_is_named_beside_those_that_are() {
    let files = Folder::new();
    let exponent = ("rsa_exponent", "RSA of 2048 bits with the exponent 3");
    for (kind, name) in OTHERS.into_iter().chain([exponent]) {
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
    for (key, name) in KEYS {
        files.write("server.key", &format!("-----BEGIN {key}"));
        let seen = problem(files.server());
        let expected = format!("the key is {name}, which is not taken; taken are RSA of 2048");
        assert!(seen.contains(&expected), "{seen}");
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
        let expected = format!("the key of an authority is {name}; taken are RSA");
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
        (
            "server.key",
            fs::read_to_string(of_kind("no_public")).unwrap(),
            "the key (ECDSA P-256) is invalid: it is cut, has no public part",
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

#[tokio::test]
async fn a_critical_extension_that_is_not_taken_is_named_in_an_own_certificate_and_told_of_a_callers()
 {
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
    assert!(own.ends_with(" (2.5.29.36)"), "{own}");
}
