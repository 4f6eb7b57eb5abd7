//! Missing masters, and masters that have lost their mastership.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_client::state::{BackoffConfig, ClientConfig};
use doorward_client::{Capacity, Client, ClientBuilder, Hooks};
use doorward_proto::doorman;
use tonic::Status;

use crate::transport::fake_server::{FakeServer, discovery, granted, lease, redirect};
use crate::transport::{Failures, PATIENCE, within_patience};

/// Returns a client whose backoff, if it grew, would soon be longer than the test.
fn patient(addresses: &[&str]) -> ClientBuilder {
    let config = ClientConfig {
        early_gap: Duration::from_millis(10),
        timeout: Duration::from_secs(2),
        backoff: BackoffConfig {
            base: Duration::from_millis(20),
            cap: Duration::from_secs(3600),
            cap_without_lease: Duration::from_secs(3600),
        },
        ..ClientConfig::default()
    };
    let builder = Client::builder("c").config(config);
    builder.addresses(addresses.iter().copied())
}

#[tokio::test]
async fn while_there_is_no_master_the_client_asks_at_an_even_pace() {
    let mut answers = vec![redirect(None); 15];
    answers.push(lease(8.0, 60_000));
    let server = FakeServer::master(answers).await;
    let client = patient(&[&server.address]).connect_lazy().unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    // If each wait was twice the previous one, these would take ten minutes.
    assert_eq!(
        resource.wait_for_lease(PATIENCE).await,
        Ok(Capacity::Limited(8.0))
    );
}

#[tokio::test]
async fn a_dead_server_beside_one_without_a_master_changes_nothing() {
    let mut masterless = FakeServer::start(Some(discovery(false, None, 0)), []).await;
    let client = patient(&[&masterless.address, "127.0.0.1:1"]);
    let client = client.connect_lazy().unwrap();
    let _resource = client.resource("r").wants(10.0).open().unwrap();
    within_patience(masterless.discoveries(10)).await;
}

#[tokio::test]
async fn a_master_that_is_named_and_dead_is_about_to_have_a_successor() {
    let dead = Some("127.0.0.1:1");
    let mut follower = FakeServer::start(Some(discovery(false, dead, 5)), []).await;
    let client = patient(&[&follower.address]).connect_lazy().unwrap();
    let _resource = client.resource("r").wants(10.0).open().unwrap();
    within_patience(follower.discoveries(15)).await;
}

/// Creates a client with a lease of a master of epoch 9, which then fails, and another server.
async fn after_epoch_9(
    other: &FakeServer,
    failures: &Arc<Failures>,
) -> (Client, doorward_client::Resource, FakeServer) {
    let gone = Err(Status::unavailable("gone"));
    let newest = FakeServer::start(Some(discovery(true, None, 9)), [lease(8.0, 20), gone]).await;
    let client = patient(&[&newest.address, &other.address]).hooks(failures.clone());
    let client = client.connect_timeout(PATIENCE).connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    (client, resource, newest)
}

#[tokio::test]
async fn a_client_with_a_lease_refuses_an_older_epoch() {
    let older = FakeServer::start(Some(discovery(true, None, 8)), [lease(5.0, 60_000)]).await;
    let behind = discovery(false, Some(&older.address), 8);
    let behind = FakeServer::start(Some(behind), []).await;
    for other in [&older, &behind] {
        let failures = Arc::default();
        let (client, resource, _newest) = after_epoch_9(other, &failures).await;
        let is_old = |failure: &str| failure.contains("out of date");
        failures.until(&client, is_old).await;
        assert_eq!(
            resource.capacity(),
            Capacity::Limited(8.0),
            "the lease lasts"
        );
    }
}

#[tokio::test]
async fn a_master_without_an_epoch_is_taken_as_it_is() {
    let other = FakeServer::start(Some(discovery(true, None, 0)), [lease(5.0, 60_000)]).await;
    let (_client, resource, _newest) = after_epoch_9(&other, &Arc::default()).await;
    crate::transport::until(&resource, 5.0).await;
}

/// Counts forgotten epochs.
#[derive(Default)]
struct Forgotten(Mutex<Vec<(u64, u64)>>);

impl Hooks for Forgotten {
    fn mastership_forgotten(&self, forgotten: u64, instead: u64) {
        self.0.lock().unwrap().push((forgotten, instead));
    }
}

#[tokio::test]
async fn an_epoch_is_forgotten_when_the_last_lease_is_over() {
    // etcd was wiped while no server ran: the only master has a lower epoch. A redirect leads to
    // it, too.
    let anew = FakeServer::start(Some(discovery(true, None, 2)), [lease(5.0, 60_000)]).await;
    let beside = discovery(false, Some(&anew.address), 2);
    let beside = FakeServer::start(Some(beside), []).await;
    for other in [&anew, &beside] {
        let short = granted(doorman::Lease {
            granted_by: None,
            expiry_time: 0,
            refresh_interval: 1,
            capacity: 8.0,
            expires_in_ms: Some(500),
            refresh_in_ms: Some(20),
        });
        let gone = Err(Status::unavailable("gone"));
        let before = FakeServer::start(Some(discovery(true, None, 9)), [short, gone]).await;
        let forgotten = Arc::new(Forgotten::default());
        let client = patient(&[&before.address, &other.address]).hooks(forgotten.clone());
        let client = client.connect_timeout(PATIENCE).connect().await.unwrap();
        let resource = client.resource("r").wants(10.0).open().unwrap();
        crate::transport::until(&resource, 5.0).await;
        assert_eq!(*forgotten.0.lock().unwrap(), [(9, 2)]);
    }
}

#[tokio::test]
async fn a_client_without_a_lease_accepts_an_older_epoch_at_once() {
    let named = Some("127.0.0.1:1");
    let ahead = FakeServer::start(Some(discovery(false, named, 9)), []).await;
    let older = FakeServer::start(Some(discovery(true, None, 8)), [lease(5.0, 60_000)]).await;
    let client = patient(&[&ahead.address, &older.address]);
    let client = client.connect_timeout(PATIENCE).connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    crate::transport::until(&resource, 5.0).await;
}
