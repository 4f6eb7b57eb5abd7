//! Secrets that are not printed, and files for TLS.

use doorward_tests::certificates::{Authority, date_time_ymd};

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
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    let authority = Authority::new();
    write("ca", &authority.certificate);
    write("text", "hello");
    let good = authority.certify("etcd-client", &["localhost"]);
    let ended = authority.certify_with("etcd-client", &["localhost"], |it| {
        it.not_after = date_time_ymd(2020, 1, 1);
    });
    write("good", &good.certificate);
    write("good.key", &good.key);
    write("ended", &ended.certificate);
    write("ended.key", &ended.key);
    let p521 = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/testdata/p521.pem");
    write("p521", &std::fs::read_to_string(p521).unwrap());
    let read = |names: [Option<&str>; 3], former: Option<&Tls>| {
        let [ca, cert, key] = names.map(|name| name.map(at));
        let user = None;
        let files = CredentialFiles {
            ca,
            cert,
            key,
            user,
        };
        files.read(former).map(|read| read.tls)
    };
    let in_force = read([Some("ca"), Some("good"), Some("good.key")], None).unwrap();
    for (names, problem) in [
        ([Some("none"), None, None], "none: No such file"),
        ([Some("text"), None, None], "it is not PEM"),
        ([Some("good.key"), None, None], "it has PRIVATE KEY"),
        ([Some("ca"), Some("ca"), None], "both, or neither"),
        ([None, Some("good"), Some("ended.key")], "is not that of"),
        (
            [None, Some("p521"), Some("p521")],
            "of a kind that is not taken; taken are RSA",
        ),
        ([None, Some("ended"), Some("ended.key")], "it has ended"),
    ] {
        let error = read(names, Some(&in_force)).unwrap_err().to_string();
        assert!(error.contains(problem), "{names:?}: {error}");
    }
    let own = [None, Some("ended"), Some("ended.key")];
    let ended = read(own, None).unwrap();
    assert_eq!(
        read(own, Some(&ended)).unwrap(),
        ended,
        "at the start, and then it stays"
    );
}
