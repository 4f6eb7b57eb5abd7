//! Readiness of a server, as `/readyz` and the health service report it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::Templates;
use doorward_server::app::Server;
use doorward_server::clock::Clock;
use doorward_server::replica_handle::ReplicaHandle;
use doorward_server::status::ParentLink;
use doorward_server::status::ServerState;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::fake_parent::{FakeParent, Streams};
use crate::running::{channel, eventually, page};
use crate::upstream::{child, until_link};

/// Names in the health service: the server as a whole, and each service.
const SERVICES: [&str; 4] = [
    "",
    "doorman.Capacity",
    "doorward.v1.CapacityStream",
    "doorward.admin.v1.Admin",
];

async fn health(server: &Server, service: &str) -> ServingStatus {
    let mut health = HealthClient::new(channel(server).await);
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let answer = health.check(request).await.expect("the name is known");
    answer.get_ref().status()
}

async fn check_health(server: &Server, status: ServingStatus) {
    for service in SERVICES {
        eventually(&format!("{service:?} is {status:?}"), async || {
            health(server, service).await == status
        })
        .await;
    }
    assert_eq!(health(server, "liveness").await, ServingStatus::Serving);
}

#[tokio::test]
async fn below_the_root_it_is_ready_once_the_parent_has_answered_and_stays_so() {
    let parent = FakeParent::start(Streams::Served).await;
    parent.says_of_the_master(None, None);
    let server = child(&[&parent.address]).await;
    let (code, _, why) = page(&server, "/readyz").await;
    assert_eq!(code, 503, "{why}");
    let missing = "the parent has not answered since this server started";
    assert!(why.contains(missing), "{why}");
    assert_eq!(page(&server, "/healthz").await.0, 200);
    check_health(&server, ServingStatus::NotServing).await;

    parent.says_of_the_master(Some(&parent.address), None);
    eventually("it is ready", async || {
        page(&server, "/readyz").await.0 == 200
    })
    .await;
    check_health(&server, ServingStatus::Serving).await;

    parent.stop().await;
    until_link(&server, ParentLink::Down).await;
    assert_eq!(page(&server, "/readyz").await.0, 200, "it was there once");
    check_health(&server, ServingStatus::Serving).await;
}

/// Reading of the clock in the test below, in milliseconds.
static SHOWN: AtomicU64 = AtomicU64::new(0);

fn shown() -> Instant {
    let beginning = Instant::now() - Duration::MAX;
    beginning + Duration::from_millis(SHOWN.load(Ordering::Relaxed))
}

#[test]
fn an_election_counts_by_the_clock_of_the_node() {
    let node = ReplicaHandle::new(
        node::Config::default(),
        Templates::default(),
        Clock::start_by(shown),
    );
    let mut state = ServerState::new(
        "root".to_owned(),
        "here:1".to_owned(),
        "nowhere".to_owned(),
        Arc::new(node),
    );
    state.ride_out(Duration::from_secs(20));
    let becomes = |mastership| {
        let node = state.node();
        node.change(|node, now| node.handle_mastership(mastership, now));
        state.judge_readiness()
    };
    let wait = |seconds: u64| {
        SHOWN.fetch_add(seconds * 1_000, Ordering::Relaxed);
    };
    assert!(state.readiness().is_err(), "no master was ever known");
    let master = Mastership::Master { epoch: Some(3) };
    assert!(becomes(master).0.is_ok());
    wait(100);
    let (readiness, ends_at) = becomes(Mastership::Unknown);
    assert!(readiness.is_ok());
    let lost = state.node().clock().now();
    assert_eq!(ends_at, Some(lost + Duration::from_secs(20)));
    wait(19);
    assert!(state.readiness().is_ok());
    wait(1);
    assert!(state.readiness().is_err());
    let follower = Mastership::Elsewhere {
        master_address: "there:1".to_owned(),
        epoch: Some(4),
    };
    assert!(becomes(follower).0.is_ok());
    state.is_stopping.send_replace(true);
    assert!(state.readiness().is_err());
}
