//! A server that is killed and comes back, as its clients see it.

use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Capacity, Client, LimitedBy, Mode, Resource, Source};

use doorward_tests::processes::Server;
use doorward_tests::template_file::TemplateFile;

/// Leases are short, so that they end during the test.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  safe_capacity: 7
  algorithm: {kind: FAIR_SHARE, lease_length: 3s, refresh_interval: 500ms}
";

async fn client(name: &str, address: &str) -> Client {
    // An impatient client, so that it returns soon after the server does.
    let backoff = BackoffConfig {
        base: Duration::from_millis(100),
        cap: Duration::from_millis(200),
        ..BackoffConfig::default()
    };
    let config = ClientConfig {
        backoff,
        early_gap: Duration::from_millis(50),
        ..ClientConfig::default()
    };
    Client::builder()
        .id(name)
        .address(address)
        .config(config)
        .connect()
        .await
        .unwrap()
}

/// Waits until the capacity is that much, from that source.
async fn until(resource: &Resource, capacity: f64, source: Source) {
    let holds = || {
        let holding = resource.holding();
        holding.source == source && holding.capacity == Capacity::Limited(capacity)
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !holds() {
            looks.tick().await;
        }
    });
    let waited = waited.await;
    assert!(
        waited.is_ok(),
        "{capacity} from {source:?} never came: {:?}",
        resource.holding()
    );
}

#[tokio::test]
async fn a_killed_server_costs_no_lease_before_its_end_and_learns_when_it_is_back() {
    let file = TemplateFile::new(TEMPLATES);
    let flags = ["--templates", &file.path, "--refresh-floor", "50ms"];
    let server = Server::start(&flags);
    let address = server.address.clone();

    let first = client("first", &address).await;
    let shared = first
        .resource("shared")
        .wants(80.0)
        .mode(Mode::Safe)
        .open()
        .unwrap();
    // A new master learns for a lease length; until then, a client without a lease gets nothing, but may use the safe
    // capacity.
    until(&shared, 7.0, Source::Mode).await;
    assert_eq!(shared.holding().limited_by, Some(LimitedBy::Learning));
    until(&shared, 80.0, Source::Lease).await;

    // The lease outlives the server, and then the mode decides.
    server.kill();
    assert_eq!(shared.capacity(), Capacity::Limited(80.0));
    until(&shared, 7.0, Source::Mode).await;

    // After its return, it learns, and then divides.
    let server = Server::start_at(&address, &flags);
    until(&shared, 80.0, Source::Lease).await;
    let second = client("second", &address).await;
    let other = second
        .resource("shared")
        .wants(80.0)
        .mode(Mode::Pessimistic)
        .open()
        .unwrap();
    until(&other, 50.0, Source::Lease).await;
    until(&shared, 50.0, Source::Lease).await;

    // Killed and back before the leases end: it confirms them, and grants nothing more.
    server.kill();
    let _server = Server::start_at(&address, &flags);
    let third = client("third", &address).await;
    let newcomer = third
        .resource("shared")
        .wants(80.0)
        .mode(Mode::Pessimistic)
        .open()
        .unwrap();
    until(&newcomer, 0.0, Source::Lease).await;
    let total = shared.capacity().get() + other.capacity().get() + newcomer.capacity().get();
    assert_eq!(total, 100.0);

    // Released capacity is there for the others.
    third.close().await;
    second.close().await;
    until(&shared, 80.0, Source::Lease).await;
    first.close().await;
}
