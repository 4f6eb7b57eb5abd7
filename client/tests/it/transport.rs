//! The client over real sockets, against scripted servers.

mod blocking;
mod fake_server;
mod hostile;
mod learning;
mod limiters;
mod mastership;
mod overload;
mod processes;

use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{
    Capacity, Client, ClientBuilder, ConnectError, Hooks, Mode, Resource, ResourceError, Why,
};
use doorward_proto::doorman;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tonic::Status;

use self::fake_server::{FakeServer, granted, lease, redirect, refused};

/// Time after which an awaited event counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns an impatient client, which waits only for the tested event.
fn client(address: &str) -> ClientBuilder {
    let wait = Duration::from_millis(10);
    let config = ClientConfig {
        early_gap: wait,
        timeout: Duration::from_secs(2),
        backoff: BackoffConfig {
            base: wait,
            cap: wait,
            ..BackoffConfig::default()
        },
        ..ClientConfig::default()
    };
    Client::builder()
        .id("c")
        .address(address)
        .config(config)
        .connect_timeout(PATIENCE)
}

/// Connects to a server, and opens a resource that wants 10.
async fn opened(server: &FakeServer, mode: Mode) -> (Client, Resource) {
    let client = client(&server.address).connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).mode(mode);
    let resource = resource.open().unwrap();
    (client, resource)
}

async fn within_patience<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.unwrap()
}

/// Records every failed request.
#[derive(Default)]
struct Failures(watch::Sender<()>);

impl Hooks for Failures {
    fn refreshed(&self, ok: bool, _took: Duration) {
        if !ok {
            self.0.send_replace(());
        }
    }
}

impl Failures {
    /// Waits until the client's error text satisfies a condition.
    async fn until(&self, client: &Client, holds: impl Fn(&str) -> bool) {
        let mut failed = self.0.subscribe();
        within_patience(async {
            while !client.failure().is_some_and(|failure| holds(&failure)) {
                failed.changed().await.unwrap();
            }
        })
        .await;
    }
}

async fn until(resource: &Resource, capacity: f64) {
    let mut changes = resource.changes();
    let found = tokio::time::timeout(PATIENCE, async {
        while let Some(holding) = changes.next().await {
            if holding.capacity == Capacity::Limited(capacity) {
                return;
            }
        }
        panic!("the changes ended");
    });
    assert!(
        found.await.is_ok(),
        "{capacity} never came: {:?}",
        resource.problem()
    );
}

#[tokio::test]
async fn a_lease_is_asked_for_refreshed_and_released() {
    let mut server = FakeServer::master([lease(8.0, 20), lease(9.0, 60_000)]).await;
    let client = client(&server.address).connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).priority(4).open().unwrap();
    assert_eq!(
        resource.wait_for_lease(PATIENCE).await,
        Ok(Capacity::Limited(8.0))
    );
    let first = server.next_get().await;
    let asked = &first.resource[0];
    assert_eq!(
        (first.client_id.as_str(), asked.wants, asked.priority),
        ("c", 10.0, 4)
    );
    assert_eq!(asked.has, None);
    let second = server.next_get().await;
    assert!(second.sequence > first.sequence);
    let has = second.resource[0].has.unwrap();
    assert_eq!(has.capacity, 8.0);
    assert!(has.expires_in_ms.unwrap() <= 60_000);
    until(&resource, 9.0).await;
    client.close().await;
    let release = server.next_release().await;
    assert_eq!(release.resource_id, ["r"]);
    assert!(
        release.sequence > second.sequence,
        "an older one would release nothing"
    );
    assert_eq!(resource.problem(), Some(ResourceError::Closed));
    assert_eq!(resource.ask(1.0), Err(ResourceError::Closed));
}

#[tokio::test]
async fn dropping_the_last_handle_releases_and_dropping_everything_ends_the_client() {
    let mut server = FakeServer::master([lease(8.0, 60_000)]).await;
    let (client, resource) = opened(&server, Mode::Safe).await;
    let limiter = resource.rate_limiter(Burst::default());
    resource.wait_for_lease(PATIENCE).await.unwrap();
    drop(resource);
    // A limiter keeps the resource open.
    limiter.acquire(1).await.unwrap();
    drop(limiter);
    assert_eq!(server.next_release().await.resource_id, ["r"]);
    // It may be opened again, and everything dropped at once.
    let again = client.resource("r").wants(1.0).open().unwrap();
    again.wait_for_lease(PATIENCE).await.unwrap();
    drop((client, again));
    assert_eq!(server.next_release().await.resource_id, ["r"]);
}

#[tokio::test]
async fn other_wants_are_told_without_waiting_for_the_refresh() {
    let mut server = FakeServer::master([lease(8.0, 60_000)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    resource.wait_for_lease(PATIENCE).await.unwrap();
    assert_eq!(server.next_get().await.resource[0].wants, 10.0);
    resource.ask(25.0).unwrap();
    assert_eq!(server.next_get().await.resource[0].wants, 25.0);
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert!(
            matches!(resource.ask(bad), Err(ResourceError::BadWants(_))),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_from_discovery_and_from_answers() {
    let master = FakeServer::master([lease(8.0, 60_000)]).await;
    let discovery = doorman::DiscoveryResponse {
        mastership: doorman::Mastership {
            master_address: Some(master.address.clone()),
            epoch: Some(7),
        },
        is_master: false,
    };
    let follower = FakeServer::start(Some(discovery), []).await;
    let by_discovery = client(&follower.address).connect().await.unwrap();
    let resource = by_discovery.resource("r").wants(10.0).open().unwrap();
    assert_eq!(
        resource.wait_for_lease(PATIENCE).await,
        Ok(Capacity::Limited(8.0))
    );

    let lost_it = FakeServer::master([redirect(Some(&master.address))]).await;
    let by_answer = client(&lost_it.address).connect().await.unwrap();
    let resource = by_answer.resource("r").wants(10.0).open().unwrap();
    assert_eq!(
        resource.wait_for_lease(PATIENCE).await,
        Ok(Capacity::Limited(8.0))
    );
}

#[tokio::test]
async fn one_address_of_several_that_answers_is_enough() {
    let server = FakeServer::master([lease(8.0, 60_000)]).await;
    let client = client("127.0.0.1:1").address(server.address.clone());
    let client = client.connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    assert_eq!(
        resource.wait_for_lease(PATIENCE).await,
        Ok(Capacity::Limited(8.0))
    );
}

#[tokio::test]
async fn connecting_to_a_wrong_address_fails_with_the_reason() {
    let unreachable = client("127.0.0.1:1").connect_timeout(Duration::from_millis(200));
    let error = unreachable.connect().await.err().unwrap().to_string();
    assert!(
        error.contains("127.0.0.1:1") && error.contains("refused"),
        "{error}"
    );
    for (bad, problem) in [
        ("nowhere", "it has no port"),
        ("127.0.0.1:99999", "it has a port above 65535"),
        ("https://a:1", "https needs `ClientBuilder::tls`"),
        ("ftp://a:1", "the scheme must be http"),
    ] {
        let error = client(bad).connect_lazy().err().unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    #[cfg(feature = "etcd")]
    for (bad, problem) in [
        ("etcd://a:1", "it names no node"),
        ("etcd:///eu", "does not say where etcd is"),
        ("etcd://a:1/eu?ca=/none", "cannot read /none"),
    ] {
        let error = client(bad).connect_lazy().err().unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    #[cfg(feature = "etcd")]
    {
        let two = client("etcd://a:1/eu").address("etcd://a:1/us");
        let error = two.connect_lazy().err().unwrap().to_string();
        assert!(error.contains("more than one node"), "{error}");
    }
    assert!(matches!(
        Client::builder().id("c").connect_lazy().err(),
        Some(ConnectError::NoAddress)
    ));
    let nameless = Client::builder().id("").address("a:1").connect_lazy().err();
    assert!(matches!(nameless, Some(ConnectError::BadClientId(_))));
}

#[tokio::test]
async fn a_process_that_has_no_lease_releases_nothing_of_another_one_of_its_id() {
    let refused = Ok(doorman::GetCapacityResponse {
        refused: vec![doorman::Refusal {
            resource_id: Some("r".to_owned()),
            reason: Some(doorman::refusal::Reason::TooMany.into()),
            message: Some("too many leases".to_owned()),
            retry_in_ms: Some(60_000),
        }],
        ..doorman::GetCapacityResponse::default()
    });
    let mut server = FakeServer::master([refused, lease(8.0, 60_000)]).await;
    let later = client(&server.address).connect().await.unwrap();
    let resource = later.resource("r").wants(10.0).open().unwrap();
    let told = resource.wait_for_lease(PATIENCE).await.unwrap_err();
    assert!(matches!(told, ResourceError::Refused { .. }), "{told}");
    later.close().await;
    assert_eq!(server.releases(), []);
    // A process with a lease releases it.
    let first = client(&server.address).connect().await.unwrap();
    let resource = first.resource("r").wants(10.0).open().unwrap();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    first.close().await;
    assert_eq!(server.releases().len(), 1);
}

#[tokio::test]
async fn an_unknown_resource_a_refused_one_and_silence_are_told_apart() {
    let unknown = refused(doorman::refusal::Reason::UnknownResource);
    let too_many = refused(doorman::refusal::Reason::TooMany);
    // An old server leaves out unknown resources.
    let left_out = Ok(doorman::GetCapacityResponse::default());
    let silence = Err(Status::unavailable("gone"));
    let mut kinds = Vec::new();
    for answer in [unknown, too_many, left_out, silence] {
        let server = FakeServer::master([answer]).await;
        let client = client(&server.address).connect().await.unwrap();
        let resource = client.resource("r").wants(10.0).open().unwrap();
        let error = resource
            .wait_for_lease(Duration::from_millis(300))
            .await
            .unwrap_err();
        kinds.push(match error {
            ResourceError::Unknown { .. } => "unknown",
            ResourceError::Refused { .. } => "refused",
            ResourceError::NotConnected(_) => "not connected",
            other => panic!("{other}"),
        });
    }
    assert_eq!(kinds, ["unknown", "refused", "unknown", "not connected"]);
}

#[tokio::test]
async fn a_server_of_the_old_kind_is_understood() {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let old = granted(doorman::Lease {
        granted_by: None,
        expiry_time: i64::try_from(now + 60).unwrap(),
        refresh_interval: 5,
        capacity: 8.0,
        expires_in_ms: None,
        refresh_in_ms: None,
    });
    let server = FakeServer::start(None, [old]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let remaining = resource.holding().remaining.unwrap().as_secs();
    assert!((57..=60).contains(&remaining), "{remaining}");
}

#[tokio::test]
async fn limiters_follow_the_lease_and_end_with_the_client() {
    let server = FakeServer::master([lease(2.0, 60_000)]).await;
    let client = client(&server.address).connect().await.unwrap();
    let resource = client
        .resource("r")
        .wants(10.0)
        .mode(Mode::Pessimistic)
        .open()
        .unwrap();
    let gate = resource.concurrency_limiter();
    assert!(gate.try_acquire(1).is_err(), "before the lease");
    let first = gate.acquire(1).await.unwrap();
    let second = gate.acquire(1).await.unwrap();
    assert_eq!(gate.in_flight(), 2);
    assert_eq!(gate.try_acquire(1).unwrap_err().retry_after, None);
    let waiting = tokio::spawn({
        let gate = gate.clone();
        async move { gate.acquire(1).await.map(drop) }
    });
    drop(first);
    waiting.await.unwrap().unwrap();
    drop(second);
    assert_eq!(gate.in_flight(), 0);
    let held = gate.acquire(2).await.unwrap();
    let waiting = tokio::spawn({
        let gate = gate.clone();
        async move { gate.acquire(1).await.map(drop) }
    });
    let limiter = resource.rate_limiter(Burst::default());
    client.close().await;
    assert_eq!(waiting.await.unwrap().unwrap_err().why, Why::Closed);
    assert_eq!(limiter.acquire(1).await.unwrap_err().why, Why::Closed);
    drop(held);
}

#[tokio::test]
async fn work_in_flight_beyond_the_lease_is_reported() {
    let answers = [lease(3.0, 20), lease(1.0, 20), lease(1.0, 20)];
    let mut server = FakeServer::master(answers).await;
    let client = client(&server.address).connect().await.unwrap();
    let resource = client.resource("r").wants(3.0).open().unwrap();
    let gate = resource.concurrency_limiter();
    let permits = gate.acquire(3).await.unwrap();
    until(&resource, 1.0).await;
    let told = async {
        loop {
            // In the request after the shrink, three are still in flight.
            let has = server.next_get().await.resource[0].has;
            if let (Some(has), 1.0) = (has, resource.capacity().get()) {
                return has.capacity;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, told).await.unwrap(), 3.0);
    drop(permits);
}

#[tokio::test]
async fn demand_is_measured_from_use_if_that_is_wanted() {
    let mut server = FakeServer::master([lease(1000.0, 60_000)]).await;
    let client = client(&server.address).connect().await.unwrap();
    let adaptive = AdaptiveWants {
        window: Duration::from_millis(300),
        headroom: 1.5,
        least: 2.0,
        most: 5000.0,
    };
    let resource = client
        .resource("r")
        .adaptive_wants(adaptive)
        .open()
        .unwrap();
    let limiter = resource.rate_limiter(Burst {
        span: Duration::from_secs(1),
        least: 100.0,
    });
    assert_eq!(server.next_get().await.resource[0].wants, 2.0);
    for _ in 0..50 {
        limiter.acquire(1).await.unwrap();
    }
    let more = async { while server.next_get().await.resource[0].wants <= 50.0 {} };
    tokio::time::timeout(PATIENCE, more).await.unwrap();
    // And back to the least when the limiter is idle.
    let least = async { while server.next_get().await.resource[0].wants != 2.0 {} };
    tokio::time::timeout(PATIENCE, least).await.unwrap();
}

#[tokio::test]
async fn a_second_open_shares_the_resource_while_the_first_lives() {
    let server = FakeServer::master([lease(8.0, 60_000)]).await;
    let client = client(&server.address).connect().await.unwrap();
    let first = client.resource("r").wants(8.0).open().unwrap();
    first.wait_for_lease(PATIENCE).await.unwrap();
    let second = client.resource("r").wants(3.0).open().unwrap();
    assert_eq!(second.wants(), 8.0, "the settings of the first");
    let gate = first.concurrency_limiter();
    let permit = gate.acquire(5).await.unwrap();
    assert_eq!(second.concurrency_limiter().in_flight(), 5);
    drop((first, second, gate));
    let closing = client.resource("r").open().err();
    assert_eq!(closing, Some(ResourceError::Closing("r".to_owned())));
    drop(permit);
    assert_eq!(client.resource("r").wants(3.0).open().unwrap().wants(), 3.0);
}

#[tokio::test]
async fn a_resource_has_a_name_and_wants_a_number() {
    let server = FakeServer::master([lease(8.0, 60_000)]).await;
    let client = client(&server.address).connect().await.unwrap();
    assert!(matches!(
        client.resource("").open(),
        Err(ResourceError::BadId(_))
    ));
    assert!(matches!(
        client.resource("s").wants(-1.0).open(),
        Err(ResourceError::BadWants(_))
    ));
}
