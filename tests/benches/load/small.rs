//! A small run of each mode: all answers came, the counts add up, and no call was refused. Its times mean nothing.

use std::process::ExitCode;
use std::sync::{Arc, Once};
use std::time::Duration;

use doorward_tests::processes::{freeze, thaw};
use tokio::time::Instant;

use crate::generator::{Extent, Load, Pace, rest_until};
use crate::population::Population;
use crate::stall::Stall;
use crate::storm::{Storm, break_loose};
use crate::subject::{Place, Subject, Templates};
use crate::throughput::Figures;
use crate::{
    holds, latencies, memory, population, probe, runtime, stalled, stalls, tally, throughput,
};

pub(crate) fn run() -> ExitCode {
    latencies::check();
    population::check();
    tally::check();
    throughput::check();
    probe::check();
    holds::check();
    stalled::check();
    let place = Place::default();
    let own = std::env::current_exe().unwrap();
    let server = Subject::server(&place, Templates::FAIR, &[]);
    for (name, subject) in [("server", &server), ("echo", &Subject::echo(&place, &own))] {
        for pace in [
            Pace::Closed { in_flight: 3 },
            Pace::Open { per_second: 500.0 },
        ] {
            for threads in [1, 2] {
                check_load(name, subject, pace, threads);
            }
        }
    }
    println!("loads: every request is answered");
    check_time(&server);
    check_nothing_is_omitted();
    drop(server);
    check_storm();
    runtime().block_on(check_memory());
    runtime().block_on(check_stalls());
    ExitCode::SUCCESS
}

fn load(subject: &Subject, pace: Pace, threads: usize, extent: Extent) -> Load {
    Load {
        address: subject.address,
        population: Arc::new(Population::new("small", 24, 20, 5)),
        threads,
        connections: 4,
        pace,
        extent,
    }
}

/// Checks a number of requests, and as many answers of five resources each.
fn check_load(name: &'static str, subject: &Subject, pace: Pace, threads: usize) {
    const REQUESTS: u64 = 200;
    let load = load(subject, pace, threads, Extent::Requests(REQUESTS));
    let figures = Figures::of(name, subject, load);
    assert_eq!(figures.calls, REQUESTS, "{name}, {pace:?}");
    assert_eq!(figures.latencies.count(), REQUESTS, "{name}, {pace:?}");
    assert_eq!(figures.outcome.granted, 5 * REQUESTS, "{name}, {pace:?}");
    assert_eq!((figures.refused, figures.broken), (0, 0));
    assert!(figures.latencies.at(0.5) <= figures.latencies.max());
    assert!(!figures.latencies.max().is_zero());
    assert!(!figures.json()["latency"]["p99_us"].is_null());
    figures.print(Some(&figures));
}

/// Checks that calls which were due in the counted time count, whenever they are answered, and no others.
fn check_time(subject: &Subject) {
    let extent = Extent::Time {
        warm_up: Duration::from_millis(200),
        measured: Duration::from_millis(500),
    };
    let pace = Pace::Open { per_second: 100.0 };
    let figures = Figures::of("server", subject, load(subject, pace, 2, extent));
    assert_eq!(figures.calls, 50);
    assert_eq!(figures.latencies.count(), 50);
}

/// Checks that a server which stands still delays all calls that are due meanwhile. It stops before any call is due,
/// and continues a fixed time after that: on a slow machine, that time is not shorter.
fn check_nothing_is_omitted() {
    const STANDS_STILL: Duration = Duration::from_millis(320);
    let own = std::env::current_exe().unwrap();
    let echo = Subject::echo(&Place::default(), &own);
    let process = echo.process().unwrap();
    freeze(process);
    let extent = Extent::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(1),
    };
    let pace = Pace::Open { per_second: 500.0 };
    let goes_on = Once::new();
    // The reading is taken when the first call is due, and once more at the end.
    let measured = load(&echo, pace, 2, extent).run(|| {
        goes_on.call_once(|| {
            rest_until(Instant::now() + STANDS_STILL);
            thaw(process);
        });
        None
    });
    assert_eq!(measured.tally.calls, 500, "all that were due");
    let latencies = measured.tally.latencies.sorted();
    assert_eq!(latencies.count(), 500, "all are answered");
    assert!(latencies.max() >= STANDS_STILL, "{latencies}");
    // At least the 110 that were due in the first 220 ms.
    let late = latencies.beyond(Duration::from_millis(100));
    assert!(late >= 100, "{late} of 500 calls are late: {latencies}");
    println!("nothing is omitted: {late} of 500 calls wait for a server that stands still");
}

/// Checks that all clients get leases, even those that are refused at first with a time.
fn check_storm() {
    let storm = storm_of(100, &[]);
    assert_eq!(storm.refused, 0, "{storm:?}");
    // Ten times as many at once, so that a third of them is refused at first.
    let storm = storm_of(60, &["--new-leases-per-second-per-template-max=4"]);
    assert!(storm.refused > 0, "{storm:?}");
}

fn storm_of(clients: usize, flags: &[&str]) -> Storm {
    let place = Place::default();
    let server = Subject::server(&place, Templates::FAIR, flags);
    let storm = break_loose("server", server.address, clients, 7, 10, || {
        server.cpu_time()
    });
    assert_eq!(storm.waited.count(), clients as u64);
    assert_eq!((storm.refused_for_ever, storm.broken), (0, 0), "{storm:?}");
    storm.print();
    assert!(storm.json()["resets"].is_u64());
    storm
}

async fn check_memory() {
    let size = memory::Size {
        connections: 5,
        streams: 3,
        resources: 10,
        leases: 100,
        rest: Duration::from_millis(50),
    };
    let (mut moments, mut accounts) = (0, 0);
    memory::measure(&Place::default(), size, |moment| {
        moment.print();
        assert!(moment.json()["resident"].is_u64());
        moments += 1;
        accounts += u32::from(moment.json()["account"].as_u64().is_some_and(|it| it > 0));
    })
    .await;
    // The server reports its account of leases twice.
    assert_eq!((moments, accounts), (12, 2));
}

/// Checks that every call of the client is answered, whatever happens.
async fn check_stalls() {
    let size = stalls::Size {
        resources: 20,
        leases: 200,
        globs: 50,
        runs: 1,
        window: Duration::from_millis(300),
        short_lease: Duration::from_secs(5),
    };
    stalled::print_heading();
    let mut measured = 0;
    stalls::measure(&Place::default(), size, &Stall::ALL, |stalled| {
        stalled.print();
        assert_eq!(stalled.runs(), 1);
        assert!(stalled.json()["worst_ms"][0].as_f64().unwrap() > 0.0);
        assert!(stalled.json()["holds_above_50us"][0].is_u64());
        measured += 1;
    })
    .await;
    // Mastership is lost, and gained.
    assert_eq!(measured, Stall::ALL.len() + 1);
}
