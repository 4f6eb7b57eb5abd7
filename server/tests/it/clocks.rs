//! A server whose clock is fast, and holders whose clocks are right.

use std::sync::OnceLock;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::clock::Clock;
use doorward_session::time::tolerance::Tolerance;

use crate::running::{asked, capacity, config, eventually, get, only};

/// Returns the time of a clock that is 8.3 % fast, as chrony makes it while it corrects the time.
fn fast() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    let began = *BEGAN.get_or_init(|| now);
    began + (now - began).mul_f64(1.083)
}

#[tokio::test]
async fn a_server_whose_clock_is_fast_and_that_says_so_frees_no_lease_too_early() {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("fair/x".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(2)),
        refresh_interval: Some(Duration::from_millis(1_900)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }]);
    let server = Server::start(ServerConfig {
        templates: templates.unwrap(),
        clock: Clock::start_by(fast),
        node: node::Config {
            clock_tolerance: Tolerance::STEERED,
            ..config().node
        },
        ..config()
    });
    let server = server.await.unwrap();
    let mut client = capacity(&server).await;
    let sent = Instant::now();
    let response = get(&mut client, "first", vec![asked("fair/x", 100.0)]).await;
    let lease = &only(&response).gets;
    assert_eq!(lease.capacity, 100.0);
    assert!(lease.refresh_in_ms < lease.expires_in_ms, "{lease:?}");
    // The holder counts from its request, uses a thousandth less than the server told, and never asks again.
    let told = Duration::from_millis(lease.expires_in_ms.unwrap());
    let stops = sent + told.mul_f64(0.999);
    eventually("the next one has all", async || {
        let response = get(&mut client, "second", vec![asked("fair/x", 100.0)]).await;
        let is_all = only(&response).gets.capacity == 100.0;
        let early = stops - Instant::now();
        assert!(!is_all || early.is_zero(), "200 of 100 for {early:?}");
        is_all
    })
    .await;
}
