//! Calls end, and go to an endpoint that answers.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::directory;
use doorward_etcd::layout::NodeKeys;
use doorward_tests::etcd::{Etcd, Setup};
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::PATIENCE;
use doorward_tests::proxy::{Direction, Flow, Proxy};
use futures_util::future::join_all;

use crate::processes::etcd::{beginning_at, connected_to, get, get_at_last, impatient};

#[tokio::test]
async fn an_endpoint_that_fails_is_left_for_the_next_one_and_that_is_kept() {
    let etcd = Etcd::start().await;
    etcd.put("/a", "1").await;
    let faults: [fn(&mut Proxy); 5] = [
        Proxy::refuse,
        Proxy::drop_all,
        Proxy::hold_all,
        |proxy| proxy.set(Direction::Answers, Flow::Drop),
        |proxy| proxy.set(Direction::Requests, Flow::Drop),
    ];
    let first = faults.map(|fault| leaves(&etcd, fault, false));
    let later = faults.map(|fault| leaves(&etcd, fault, true));
    join_all(first.into_iter().chain(later)).await;
}

/// Breaks one of two paths to etcd, before its use or later.
async fn leaves(etcd: &Etcd, fault: fn(&mut Proxy), was_connected: bool) {
    let mut proxy = Proxy::to(etcd.address(0));
    let config = impatient(etcd.config_at(&[&proxy.address(), etcd.address(0)]));
    let mut connection = beginning_at(&config, &proxy.address());
    if was_connected {
        let value = get(&mut connection, "/a").await.unwrap();
        assert_eq!(value.as_deref(), Some("1"));
    }
    fault(&mut proxy);
    let error = get(&mut connection, "/a").await.unwrap_err().to_string();
    let expected = format!("etcd at http://{} does not answer (get): ", proxy.address());
    assert!(error.starts_with(&expected), "{error}");
    for _ in 0..3 {
        let value = get(&mut connection, "/a").await.unwrap();
        assert_eq!(value.as_deref(), Some("1"));
        assert_eq!(connection.endpoint(), etcd.endpoint(0));
    }
}

#[tokio::test]
async fn members_that_are_frozen_or_dead_are_left_for_one_that_works() {
    let mut etcd = Etcd::cluster(3).await;
    etcd.put("/a", "1").await;
    let config = impatient(etcd.config());
    let frozen = etcd.leader().await;
    let mut connection = connected_to(&config, etcd.address(frozen)).await;
    etcd.freeze(frozen);
    get(&mut connection, "/a").await.unwrap_err();
    let value = get_at_last(&mut connection, "/a").await;
    assert_eq!(value.as_deref(), Some("1"));
    assert_ne!(connection.endpoint(), etcd.endpoint(frozen));
    etcd.thaw(frozen);
    etcd.settled().await;

    let dead = etcd.leader().await;
    let mut connection = connected_to(&config, etcd.address(dead)).await;
    etcd.kill(dead);
    get(&mut connection, "/a").await.unwrap_err();
    let value = get_at_last(&mut connection, "/a").await;
    assert_eq!(value.as_deref(), Some("1"));

    // A member alone cannot be sure of anything, and does not answer.
    let alone = etcd.leader().await;
    (0..3)
        .filter(|member| *member != alone)
        .for_each(|member| etcd.kill(member));
    let mut connection = beginning_at(&config, etcd.address(alone));
    get(&mut connection, "/a").await.unwrap_err();
    etcd.restart_all().await;
    let value = get_at_last(&mut connection, "/a").await;
    assert_eq!(value.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_token_that_expired_is_renewed_and_nobody_notices() {
    let setup = Setup::new(1).with_users().with_flag("--auth-token-ttl=1");
    let etcd = setup.start().await;
    etcd.put("/a", "1").await;
    let config = impatient(etcd.config());
    let mut connection = beginning_at(&config, etcd.address(0));
    get(&mut connection, "/a").await.unwrap();
    // Another connection that renews nothing. A token that is used does not expire.
    let mut other = etcd.connect(0).await.unwrap();
    let began = tokio::time::Instant::now();
    while other.get("/a", None).await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "tokens do not expire");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let value = get(&mut connection, "/a").await.unwrap();
    assert_eq!(value.as_deref(), Some("1"));
}

#[tokio::test]
async fn tokens_that_etcd_forgot_are_renewed() {
    let mut etcd = Setup::new(1).with_users().start().await;
    etcd.put("/a", "1").await;
    let config = impatient(etcd.config());
    let mut connection = beginning_at(&config, etcd.address(0));
    get(&mut connection, "/a").await.unwrap();
    etcd.kill(0);
    get(&mut connection, "/a").await.unwrap_err();
    etcd.restart_all().await;
    let value = get_at_last(&mut connection, "/a").await;
    assert_eq!(value.as_deref(), Some("1"));
    // Any change of users makes all tokens invalid.
    etcd.add_user("ann", "secret").await;
    let value = get_at_last(&mut connection, "/a").await;
    assert_eq!(value.as_deref(), Some("1"));
}

#[tokio::test]
async fn the_servers_of_a_node_are_found_wherever_one_endpoint_answers() {
    let etcd = Etcd::start().await;
    let keys = NodeKeys::new("/nodes", "eu");
    let master = r#"{"address":"h:1","server":"s"}"#;
    let epoch = etcd.put(&keys.master(), master).await;
    let dead = [lasting_address(), lasting_address()];
    let config = impatient(etcd.config_at(&[&dead[0], etcd.address(0), &dead[1]]));
    for _ in 0..4 {
        let servers = directory::resolve(&config, &keys).await.unwrap();
        let addresses = servers.addresses(&[]);
        assert!(matches!(&*addresses, [only] if only.as_str() == "h:1"));
        assert_eq!(servers.master.unwrap().1, u64::try_from(epoch).unwrap());
    }
    let config = impatient(etcd.config_at(&[&dead[0], &dead[1]]));
    let error = directory::resolve(&Arc::clone(&config), &keys).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
}
