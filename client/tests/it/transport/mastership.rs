//! Missing masters, and masters that have lost their mastership.

use std::sync::Arc;
use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Capacity, Client, ClientBuilder};
use tonic::Status;

use crate::transport::fake_server::{FakeServer, discovery, lease, redirect};
use crate::transport::{Failures, PATIENCE};

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
    let builder = Client::builder().id("c").config(config);
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

/// Creates a client with a lease of a master of epoch 9, which then fails, and another server.
async fn after_epoch_9(
    other: &FakeServer,
    failures: &Arc<Failures>,
) -> (Client, doorward::Resource, FakeServer) {
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
