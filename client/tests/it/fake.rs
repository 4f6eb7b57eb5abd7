//! A fake client behaves like a real one, with the values that the test has set, and takes no time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::{Capacity, Client, Hooks, LimitedBy, Mode, Resource, ResourceError, Source, Why};
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(3600);

/// Opens a resource that wants 50.
fn open(client: &Client, mode: Mode) -> Resource {
    client.resource("r").wants(50.0).mode(mode).open().unwrap()
}

/// The demand is measured, and doubles while calls wait.
#[tokio::test(start_paused = true)]
async fn the_wants_grow_to_the_demand() {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 100.0);
    let limiter = client
        .resource("r")
        .open()
        .unwrap()
        .rate_limiter(Burst::default());
    let began = Instant::now();
    for _ in 0..200 {
        limiter.acquire(1).await.unwrap();
    }
    let took = began.elapsed().as_secs_f64();
    assert!((2.0..3.0).contains(&took), "{took}");
    tokio::time::sleep(Duration::from_secs(21)).await;
    let _idle = limiter.try_acquire(1_000);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let _idle = limiter.try_acquire(1_000);
    assert!(
        server.wants("r").unwrap() > 100.0,
        "what is refused counts too"
    );
}

#[test]
fn a_client_without_an_id_has_one_of_its_own() {
    let [first, second] = [(); 2].map(|()| Client::builder().fake().0.id().to_owned());
    let process = format!("/{}", std::process::id());
    assert!(first.contains(&process), "{first}");
    assert_ne!(first, second);
}

#[test]
fn settings_of_the_test_are_in_force_at_once() {
    let (client, server) = Client::fake("c");
    let resource = open(&client, Mode::Safe);
    assert_eq!(resource.capacity(), Capacity::Limited(50.0), "plenty");
    server.set_capacity("r", 30.0);
    let holding = resource.holding();
    assert_eq!(holding.capacity, Capacity::Limited(30.0));
    assert_eq!(holding.source, Source::Lease);
    assert_eq!(holding.limited_by, Some(LimitedBy::Share));
    resource.ask(20.0).unwrap();
    assert_eq!(server.wants("r"), Some(20.0));
    assert_eq!(resource.capacity(), Capacity::Limited(20.0));
    assert_eq!(resource.holding().limited_by, Some(LimitedBy::Wants));
    assert_eq!(resource.problem(), None);
}

#[test]
fn settings_hold_for_resources_that_open_later() {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 7.0);
    let resource = open(&client, Mode::Safe);
    assert_eq!(resource.capacity(), Capacity::Limited(7.0));
    drop(resource);
    assert_eq!(server.wants("r"), None);
    assert_eq!(open(&client, Mode::Safe).capacity(), Capacity::Limited(7.0));
}

#[test]
fn without_a_server_modes_count_until_one_is_back() {
    #[track_caller]
    fn check(mode: Mode, expected: f64) {
        let (client, server) = Client::fake("c");
        server.set_capacity("r", 30.0);
        server.set_safe_capacity("r", 10.0);
        let resource = open(&client, mode);
        server.stop();
        let holding = resource.holding();
        assert_eq!(holding.capacity, Capacity::Limited(expected), "{mode:?}");
        assert_eq!(holding.source, Source::Mode, "{mode:?}");
        assert!(matches!(
            resource.problem(),
            Some(ResourceError::NotConnected(_))
        ));
        server.start();
        assert_eq!(resource.capacity(), Capacity::Limited(30.0), "{mode:?}");
    }
    check(Mode::Pessimistic, 0.0);
    check(Mode::Safe, 10.0);
    check(Mode::Optimistic, 50.0);
}

#[test]
fn an_unknown_resource_is_refused_until_it_has_a_capacity() {
    let (client, server) = Client::fake("c");
    server.set_unknown("r", "no template");
    let resource = open(&client, Mode::Safe);
    let unknown = ResourceError::Unknown {
        resource: "r".to_owned(),
        message: "no template".to_owned(),
    };
    assert_eq!(resource.problem(), Some(unknown));
    let limiter = resource.rate_limiter(Burst::default());
    let refused = limiter.try_acquire(1).unwrap_err();
    assert!(matches!(refused.why, Why::UnknownResource { .. }));
    server.set_capacity("r", 30.0);
    assert_eq!(resource.problem(), None);
    assert_eq!(resource.capacity(), Capacity::Limited(30.0));
}

#[test]
fn a_number_that_no_server_gives_is_no_lease() {
    let (client, server) = Client::fake("c");
    for capacity in [-1.0, f64::NAN] {
        server.set_capacity("r", capacity);
        let resource = open(&client, Mode::Pessimistic);
        assert_eq!(resource.capacity(), Capacity::NONE, "{capacity}");
        assert!(matches!(
            resource.problem(),
            Some(ResourceError::Refused { .. })
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limiter_takes_its_time_by_a_clock_that_stands_still() {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 10.0);
    let limiter = open(&client, Mode::Safe).rate_limiter(Burst::default());
    let began = Instant::now();
    for _ in 0..36_000 {
        limiter.acquire(1).await.unwrap();
    }
    let took = began.elapsed();
    // It may be less, by the amount that came at once; or more, because tokio's timers count milliseconds.
    let expected = HOUR - Duration::from_secs(2)..=HOUR.mul_f64(1.01);
    assert!(expected.contains(&took), "{took:?}");
}

/// A real client tries again after growing waits.
#[tokio::test(start_paused = true)]
async fn a_refused_caller_hears_how_long_a_stopped_server_is_not_asked() {
    let (client, server) = Client::fake("c");
    server.stop();
    server.start();
    let resource = open(&client, Mode::Pessimistic);
    let rate = resource.rate_limiter(Burst::default());
    let concurrency = resource.concurrency_limiter();
    server.stop();
    let mut waits = Vec::new();
    for _ in 0..5 {
        let refused = rate.try_acquire(1).unwrap_err();
        assert_eq!(concurrency.try_acquire(1).unwrap_err(), refused);
        let retry_after = refused.retry_after.unwrap();
        waits.push(retry_after.as_secs_f64());
        tokio::time::advance(retry_after).await;
    }
    assert_eq!(waits, [0.5, 1.0, 2.0, 2.5, 2.5]);
    server.start();
    assert_eq!(resource.capacity(), Capacity::Limited(50.0));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_is_admitted_when_the_capacity_grows() {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 1.0);
    let resource = open(&client, Mode::Safe);
    let limiter = resource.concurrency_limiter();
    let first = limiter.acquire(1).await.unwrap();
    assert!(limiter.try_acquire(1).is_err());
    let second = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(1).await.unwrap() }
    });
    tokio::task::yield_now().await;
    server.set_capacity("r", 2.0);
    let second = second.await.unwrap();
    assert_eq!(limiter.in_flight(), 2);
    drop((first, second));
    assert_eq!(limiter.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn demand_that_is_measured_is_asked_for_at_a_refresh() {
    let (client, server) = Client::fake("c");
    let adaptive = AdaptiveWants {
        window: Duration::from_secs(1),
        headroom: 1.0,
        ..AdaptiveWants::default()
    };
    let resource = client
        .resource("r")
        .adaptive_wants(adaptive)
        .open()
        .unwrap();
    let limiter = resource.rate_limiter(Burst::default());
    assert_eq!(server.wants("r"), Some(1.0));
    for _ in 0..20 {
        let _admitted_or_not = limiter.try_acquire(1);
        tokio::time::advance(Duration::from_millis(50)).await;
    }
    server.refresh();
    let wants = server.wants("r").unwrap();
    assert!((15.0..=25.0).contains(&wants), "{wants}");
    assert_eq!(resource.capacity(), Capacity::Limited(wants));
}

/// Counts changes of the capacity.
#[derive(Default)]
struct Changes(AtomicU64);

impl Hooks for Changes {
    fn capacity_changed(&self, _: &str, _: Capacity, _: Source) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn hooks_are_called_as_those_of_a_real_client_are() {
    let changes = Arc::new(Changes::default());
    let (client, server) = Client::builder().id("c").hooks(changes.clone()).fake();
    let _resource = open(&client, Mode::Safe);
    for capacity in [30.0, 30.0, 20.0] {
        server.set_capacity("r", capacity);
    }
    assert_eq!(changes.0.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_closed_client_admits_nothing() {
    let (client, server) = Client::fake("c");
    let resource = open(&client, Mode::Optimistic);
    let limiter = resource.rate_limiter(Burst::default());
    limiter.acquire(1).await.unwrap();
    client.close().await;
    assert_eq!(limiter.try_acquire(1).unwrap_err().why, Why::Closed);
    assert_eq!(resource.problem(), Some(ResourceError::Closed));
    // The server continues without a client.
    server.set_capacity("r", 5.0);
    assert_eq!(resource.capacity(), Capacity::NONE);
}
