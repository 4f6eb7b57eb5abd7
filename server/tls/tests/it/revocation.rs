//! Revocation lists.

use std::fs;

use doorward_tests::certificates::{Authority, Certified};
use doorward_tls::server::ServerTls;

use crate::files::{Folder, connected, of_kind, problem};

fn of_serial(authority: &Authority, serial: u64) -> Certified {
    authority.certify_with("caller", &["caller"], |params| {
        params.serial_number = Some(serial.into());
    })
}

async fn refusal(tls: &ServerTls, pair: &Certified, chain: &str) -> Option<String> {
    let certificates = format!("{}{chain}", pair.certificate);
    connected(tls, &certificates, &pair.key).await.err()
}

#[tokio::test]
async fn a_list_that_would_bring_a_revoked_caller_back_changes_nothing() {
    let files = Folder::new();
    let own = &files.authority;
    let twin = Authority::new();
    files.write("crl.pem", &own.revoke_in(2021, &[7]));
    let tls = ServerTls::open(files.server()).unwrap();
    let (revoked, other) = (of_serial(own, 7), of_serial(own, 8));
    let another = Authority::named("another");
    for (name, list, expected) in [
        (
            "of another authority",
            another.revoke(9),
            "no authority of --tls-client-ca",
        ),
        (
            "signed by another of the name",
            twin.revoke(7),
            "wrong signature",
        ),
        (
            "older",
            own.revoke_in(2020, &[]),
            "missing, or older than the one in force",
        ),
        ("of later", own.revoke_in(2100, &[]), "five minutes ahead"),
        ("no list", own.certificate.clone(), "no revocation list"),
    ] {
        files.write("crl.pem", &list);
        let refused = tls.refresh().unwrap_err();
        assert!(refused.contains(expected), "{name}: {refused}");
        assert_eq!(tls.problem(), Some(refused), "{name}");
        let refusal = (
            refusal(&tls, &revoked, "").await,
            refusal(&tls, &other, "").await,
        );
        assert!(refusal.0.unwrap_or_default().contains("revoked"), "{name}");
        assert_eq!(refusal.1, None, "{name}");
    }
    files.write("crl.pem", &own.revoke_in(2022, &[8]));
    assert!(tls.refresh().unwrap());
    assert_eq!(refusal(&tls, &revoked, "").await, None);
    assert!(refusal(&tls, &other, "").await.is_some());
}

#[tokio::test]
async fn a_list_of_one_authority_is_not_lost_when_another_gets_one() {
    let files = Folder::new();
    let (own, other) = (&files.authority, Authority::named("another"));
    files.write(
        "ca.pem",
        &format!("{}{}", own.certificate, other.certificate),
    );
    files.write("crl.pem", &own.revoke(7));
    let tls = ServerTls::open(files.server()).unwrap();
    files.write("crl.pem", &other.revoke(7));
    let refused = tls.refresh().unwrap_err();
    assert!(
        refused.contains("list of CN=tests of Doorward is missing"),
        "{refused}"
    );
    files.write("crl.pem", &format!("{}{}", own.revoke(7), other.revoke(7)));
    assert!(tls.refresh().unwrap());
    // An authority that is gone needs no list.
    files.write("ca.pem", &other.certificate);
    files.write("crl.pem", &other.revoke(7));
    files.write_pair("server", &other.certify("server", &["localhost"]));
    assert!(tls.refresh().unwrap());
}

#[test]
fn a_list_is_refused_if_another_authority_has_the_same_name() {
    let files = Folder::new();
    let (own, twin) = (&files.authority, Authority::new());
    files.write(
        "ca.pem",
        &format!("{}{}", own.certificate, twin.certificate),
    );
    files.write("crl.pem", &own.revoke(7));
    let seen = problem(files.server());
    assert!(
        seen.contains("not that of each CN=tests of Doorward"),
        "{seen}"
    );
}

#[test]
fn a_list_that_no_handshake_could_use_says_why() {
    let files = Folder::new();
    let by_sha1 = fs::read_to_string(of_kind("list_by_sha1")).unwrap();
    let broken = "-----BEGIN X509 CRL-----\nMAMCAQE=\n-----END X509 CRL-----\n".to_owned();
    for (list, expected) in [
        (
            by_sha1,
            "CN=list_by_sha1: its signature is of a kind that is not taken; taken are SHA-256",
        ),
        (broken, "a list is broken, or no X.509 list"),
    ] {
        files.write("crl.pem", &list);
        let seen = problem(files.server());
        assert!(seen.contains(expected), "{seen}");
    }
}

#[tokio::test]
async fn a_certificate_of_a_revoked_authority_is_refused() {
    let files = Folder::new();
    let own = &files.authority;
    files.write("crl.pem", &own.revoke(7));
    let tls = ServerTls::open(files.server()).unwrap();
    for (name, serial, passes) in [("revoked", 7, false), ("other", 8, true)] {
        let authority = own.below(name, serial);
        let refusal = refusal(&tls, &of_serial(&authority, 9), &authority.certificate).await;
        assert_eq!(refusal.is_none(), passes, "{name}: {refusal:?}");
    }
}

#[tokio::test]
async fn a_list_of_an_authority_between_needs_its_certificate_in_the_same_file() {
    let files = Folder::new();
    let between = files.authority.below("between", 7);
    files.write("crl.pem", &between.revoke(9));
    let alone = problem(files.server());
    assert!(alone.contains("CN=between is no authority"), "{alone}");
    files.write(
        "crl.pem",
        &format!("{}{}", between.revoke(9), between.certificate),
    );
    let tls = ServerTls::open(files.server()).unwrap();
    for (serial, passes) in [(9, false), (10, true)] {
        let pair = of_serial(&between, serial);
        let refusal = refusal(&tls, &pair, &between.certificate).await;
        assert_eq!(refusal.is_none(), passes, "{serial}: {refusal:?}");
    }
    files.write("crl.pem", &files.authority.revoke(9));
    let lost = tls.refresh().unwrap_err().to_string();
    assert!(lost.contains("list of CN=between is missing"), "{lost}");
}

#[tokio::test]
async fn an_open_connection_is_no_longer_valid_once_its_certificate_is_revoked_or_its_authority_gone()
 {
    let files = Folder::new();
    let own = &files.authority;
    files.write("crl.pem", &own.revoke_in(2021, &[]));
    let tls = ServerTls::open(files.server()).unwrap();
    let pair = of_serial(own, 7);
    let certificate = connected(&tls, &pair.certificate, &pair.key)
        .await
        .unwrap()
        .unwrap();
    assert!(tls.is_valid(&certificate));
    files.write("crl.pem", &own.revoke_in(2022, &[7]));
    assert!(tls.refresh().unwrap());
    assert!(!tls.is_valid(&certificate));
    let other = Authority::named("another");
    files.write("ca.pem", &other.certificate);
    files.write("crl.pem", &other.revoke(7));
    assert!(tls.refresh().unwrap());
    assert!(!tls.is_valid(&certificate));
}
