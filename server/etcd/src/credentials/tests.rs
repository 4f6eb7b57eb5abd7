//! Secrets that are not printed, and files for TLS.

use super::*;

#[test]
fn passwords_and_keys_are_never_printed() {
    let user = User {
        name: "ann".to_owned(),
        password: "secret".to_owned(),
    };
    let tls = Tls {
        ca: None,
        identity: Some((b"secret".to_vec(), b"secret".to_vec())),
    };
    let printed = format!("{user:?} {tls:?}");
    assert!(
        !printed.contains("secret") && !printed.contains("115"),
        "{printed}"
    );
}

#[test]
fn files_for_tls_are_named_when_they_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("ca"), "-----BEGIN CERTIFICATE-----").unwrap();
    std::fs::write(at("text"), "hello").unwrap();
    assert!(Tls::read(Some(&at("ca")), None, None).unwrap().ca.is_some());
    for (ca, certificate, problem) in [
        (Some("none"), None, "none: No such file"),
        (Some("text"), None, "text holds no PEM"),
        (Some("ca"), Some("ca"), "both, or neither"),
    ] {
        let (ca, certificate) = (ca.map(at), certificate.map(at));
        let error = Tls::read(ca.as_deref(), certificate.as_deref(), None).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
