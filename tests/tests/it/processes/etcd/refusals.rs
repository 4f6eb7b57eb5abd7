//! The messages when flags do not fit the etcd that they name.

use doorward_etcd::config::Endpoint;
use doorward_etcd::{Error, EtcdConfig, EtcdConnection, User};
use doorward_tests::certificates::Authority;
use doorward_tests::etcd::{Etcd, Setup};
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::Server;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::processes::etcd::{get, impatient};

fn at(endpoint: &str) -> EtcdConfig {
    EtcdConfig::new(vec![Endpoint::parse(endpoint).unwrap()])
}

fn user(name: &str, password: &str) -> Option<User> {
    Some(User {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

/// Asks twice, as a refused caller does, and finds the needed facts both times.
#[track_caller]
fn check(config: EtcdConfig, expected: &[&str]) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let endpoint = config.endpoints.first().unwrap().as_str().to_owned();
        let mut connection = EtcdConnection::new(impatient(config));
        for _ in 0..2 {
            let error = get(&mut connection, "/a").await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&endpoint), "{caller}: {text}");
            for part in expected {
                assert!(text.contains(part), "{caller}: {part:?} is not in {text:?}");
            }
            let is_no = matches!(error, Error::Refused { .. });
            assert_eq!(is_no, text.contains("refuses"), "{caller}: {text}");
        }
    }
}

#[tokio::test]
async fn a_listener_that_is_not_etcd_is_reported() {
    check(at(&lasting_address()), &["does not answer", "refused"]).await;
    check(at("nowhere.invalid:2379"), &["does not answer", "lookup"]).await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    check(at(&address), &["does not answer", "no answer within"]).await;

    // A web server that speaks HTTP/1 only.
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1000]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    check(at(&address), &["may be no etcd", "https://"]).await;

    let server = Server::start(&[]);
    check(at(&server.address), &["refuses", "is it etcd?"]).await;
}

#[tokio::test]
async fn credentials_are_missing_wrong_or_not_enough() {
    let etcd = Setup::new(1).with_users().start().await;
    etcd.add_user("ann", "secret").await;
    let with = |user| EtcdConfig {
        user,
        ..etcd.config()
    };
    check(with(None), &["refuses", "asks for a user and a password"]).await;
    let wrong = ["refuses", "authentication failed"];
    check(with(user("root", "wrong")), &wrong).await;
    check(with(user("unknown", "secret")), &wrong).await;
    let denied = ["refuses", "permission denied"];
    check(with(user("ann", "secret")), &denied).await;
    let mut right = EtcdConnection::new(impatient(etcd.config()));
    assert_eq!(get(&mut right, "/a").await, Ok(None));
}

#[tokio::test]
async fn credentials_are_given_and_not_asked_for() {
    let etcd = Etcd::start().await;
    let mut config = etcd.config();
    config.user = user("root", "secret");
    check(config, &["refuses", "it has no users"]).await;
}

#[tokio::test]
async fn certificates_are_missing_or_not_believed() {
    let etcd = Setup::new(1).with_mutual_tls().start().await;
    let mut right = EtcdConnection::new(impatient(etcd.config()));
    assert_eq!(get(&mut right, "/a").await, Ok(None));

    let stranger = Authority::new();
    let wrong = ["does not answer", "certificate is not from the authority"];
    for ca in [None, Some(stranger.certificate.clone().into_bytes())] {
        let mut config = etcd.config();
        config.tls.ca = ca;
        check(config, &wrong).await;
    }
    let client = stranger.certify("doorward", &[]);
    let client = (client.certificate.into_bytes(), client.key.into_bytes());
    for identity in [None, Some(client)] {
        let mut config = etcd.config();
        config.tls.identity = identity;
        check(config, &["does not answer", "client certificate"]).await;
    }
    let mut config = etcd.config();
    let garbage = b"-----BEGIN CERTIFICATE-----".to_vec();
    config.tls.identity = Some((garbage.clone(), garbage));
    check(config, &["Error parsing TLS certificate"]).await;
}

#[tokio::test]
async fn tls_is_spoken_by_one_side_only() {
    let speaks = Setup::new(1).with_tls().start().await;
    let mut right = EtcdConnection::new(impatient(speaks.config()));
    assert_eq!(get(&mut right, "/a").await, Ok(None));
    check(at(speaks.address(0)), &["does not answer", "https://"]).await;

    let does_not = Etcd::start().await;
    let mut config = speaks.config();
    let endpoint = format!("https://{}", does_not.address(0));
    config.endpoints = at(&endpoint).endpoints;
    check(config, &["does not answer", "no TLS", "http://"]).await;
}
