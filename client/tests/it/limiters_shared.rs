//! Limiters that threads share, and that get no update for a long time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use doorward::fake::FakeServer;
use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::{Client, Mode, Resource};
use tokio_test::{assert_pending, task};

/// Opens a resource of a fake client without a background task; it wants 50 and gets 30, and its safe capacity is 2.
fn open(mode: Mode) -> (Resource, FakeServer) {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 30.0);
    server.set_safe_capacity("r", 2.0);
    let resource = client.resource("r").wants(50.0).mode(mode);
    (resource.open().unwrap(), server)
}

/// Burst of the limiter.
const BURST: Burst = Burst {
    span: Duration::from_secs(1),
    least: 0.0,
};

/// The process is frozen while it has a lease, for longer than that lasts: the first call after it obeys the mode.
#[tokio::test(start_paused = true)]
async fn the_first_call_after_a_freeze_obeys_the_mode() {
    for (mode, admitted) in [
        (Mode::Pessimistic, 0),
        (Mode::Safe, 2),
        (Mode::Optimistic, 50),
    ] {
        let (resource, _server) = open(mode);
        let (rate, gate) = (resource.rate_limiter(BURST), resource.concurrency_limiter());
        tokio::time::advance(Duration::from_secs(5)).await;
        let at_once = |most: u32| (0..most).filter(|_| rate.try_acquire(1).is_ok()).count();
        assert_eq!(at_once(100), 30, "{mode:?}, by the lease");
        drop(gate.try_acquire(1).unwrap());
        // A lease lasts for a week. No code runs at its end.
        tokio::time::advance(Duration::from_secs(7 * 24 * 3_600 + 1)).await;
        let first = gate.try_acquire(1);
        assert_eq!(first.is_ok(), admitted > 0, "{mode:?}");
        let others = (1..100).map_while(|_| gate.try_acquire(1).ok());
        let permits: Vec<_> = first.into_iter().chain(others).collect();
        assert_eq!(permits.len(), admitted, "{mode:?}");
        assert_eq!(at_once(100), admitted, "{mode:?}");
        if mode == Mode::Pessimistic {
            let wait = rate.try_acquire(1).unwrap_err().retry_after;
            assert_eq!(
                wait,
                Some(Duration::from_millis(10)),
                "until the next answer"
            );
        }
    }
}

/// Some threads admit a few requests and refuse most. Each call counts once, also during a measurement.
#[tokio::test(start_paused = true)]
async fn each_request_of_threads_is_measured_exactly_once() {
    const EACH: u32 = 5_000;
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 30.0);
    let adaptive = AdaptiveWants {
        window: Duration::from_secs(10),
        headroom: 1.0,
        least: 0.0,
        ..AdaptiveWants::default()
    };
    let resource = client.resource("r").adaptive_wants(adaptive);
    let resource = resource.open().unwrap();
    let limiter = resource.rate_limiter(BURST);
    tokio::time::advance(Duration::from_secs(10)).await;
    let over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Acquire) {
                server.refresh();
                thread::yield_now();
            }
        });
        let ask = || (0..EACH).for_each(|_| drop(limiter.try_acquire(2)));
        let askers: Vec<_> = (0..4).map(|_| threads.spawn(ask)).collect();
        askers.into_iter().for_each(|it| it.join().unwrap());
        over.store(true, Ordering::Release);
    });
    // A measurement changes the wants only if it differs by a twentieth. So the last one has to be far from all before.
    (0..EACH).for_each(|_| drop(limiter.try_acquire(2)));
    server.refresh();
    // Within ten seconds.
    assert_eq!(server.wants("r"), Some(f64::from(5 * EACH * 2) / 10.0));
}

/// The same for permits: the largest number that was out and waited for at once.
#[tokio::test(start_paused = true)]
async fn the_most_that_is_wanted_at_once_is_measured_though_it_is_over() {
    let (client, server) = Client::fake("c");
    server.set_capacity("r", 5.0);
    let adaptive = AdaptiveWants {
        headroom: 1.0,
        ..AdaptiveWants::default()
    };
    let resource = client.resource("r").adaptive_wants(adaptive);
    let limiter = resource.open().unwrap().concurrency_limiter();
    server.refresh();
    for level in 2..8 {
        // One more than there are, each time: the client wants more, and gets it.
        let permits: Vec<_> = (0..level)
            .map_while(|_| limiter.try_acquire(1).ok())
            .collect();
        drop(permits);
        server.refresh();
        let expected = if level < 7 { level } else { 6 };
        assert_eq!(server.wants("r"), Some(f64::from(expected)));
    }
}

/// More tasks than permits, on several threads: some wait, some look. No task misses a permit that came back, and no
/// more are out than the changing limit allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn permits_that_come_back_reach_those_who_wait() {
    const EACH: u32 = 400;
    let (resource, server) = open(Mode::Safe);
    server.set_capacity("r", 2.0);
    let limiter = resource.concurrency_limiter();
    let within: &'static AtomicU64 = Box::leak(Box::default());
    let tasks = (0..6).map(|task| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            for _ in 0..EACH {
                let permit = match task {
                    0 => limiter.try_acquire(1).ok(),
                    _ => Some(limiter.acquire(1).await.unwrap()),
                };
                if permit.is_some() {
                    assert!(within.fetch_add(1, Ordering::SeqCst) < 3, "too many");
                    tokio::task::yield_now().await;
                    within.fetch_sub(1, Ordering::SeqCst);
                }
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for change in 0..200 {
        server.set_capacity("r", f64::from(change % 3 + 1));
        tokio::task::yield_now().await;
    }
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .unwrap();
    assert_eq!(limiter.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_is_not_overtaken_by_a_call_that_does_not_wait() {
    let (resource, server) = open(Mode::Safe);
    server.set_capacity("r", 10.0);
    let (rate, gate) = (resource.rate_limiter(BURST), resource.concurrency_limiter());
    let permits = gate.acquire(9).await.unwrap();
    let mut dear = task::spawn(rate.acquire(15));
    let mut many = task::spawn(gate.acquire(2));
    assert_pending!(dear.poll());
    assert_pending!(many.poll());
    // There is enough for one.
    tokio::time::advance(Duration::from_secs(1)).await;
    let wait = rate.try_acquire(1).unwrap_err().retry_after;
    assert_eq!(wait.unwrap().as_millis(), 600, "16 have come by then");
    assert_eq!(gate.try_acquire(1).unwrap_err().retry_after, None);
    drop(permits);
    tokio::time::advance(Duration::from_secs(1)).await;
    dear.await.unwrap();
    let _both = many.await.unwrap();
    drop(gate.try_acquire(1).unwrap());
}

#[test]
fn a_permit_keeps_its_resource_open_when_all_handles_are_gone() {
    let (resource, server) = open(Mode::Safe);
    let limiter = resource.concurrency_limiter();
    let permits = [
        limiter.try_acquire(1).unwrap(),
        limiter.try_acquire(1).unwrap(),
    ];
    drop((resource, limiter));
    let [first, last] = permits;
    drop(first);
    assert_eq!(server.wants("r"), Some(50.0));
    drop(last);
    assert_eq!(server.wants("r"), None);
}
