//! A small run of each mode: all answers came, the counts add up, and no call was refused. Its times mean nothing.

use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use doorward_tests::processes::{freeze, thaw};
use tokio::time::Instant;

use crate::generator::{Figures, Load, Pace, rest_until};
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};
use crate::{agents, latencies, memory, stalls, storm, streams};

/// Requests per second of the open loop.
const RATE: usize = 500;

pub(crate) async fn run() {
    latencies::check();
    let place = Place::default();
    for subject in [
        Subject::server(&place, Templates::FAIR),
        Subject::echo(&place),
    ] {
        let closed = load(&subject, Pace::Closed { in_flight: 3 }, || ()).await;
        assert!(closed.latencies.count() > 0);
        assert!(closed.latencies.at(0.5) <= closed.latencies.max());
        // Calls that are due in the counted time count, whenever they are answered, and no others.
        let open = load(&subject, OPEN, || ()).await;
        assert_eq!(open.latencies.count(), RATE / 2);
        assert_eq!((closed.failed, open.failed), (0, 0));
        closed.print("closed", &closed);
        open.print("open", &closed);
    }
    check_nothing_is_omitted(&place).await;
    let size = storm::Size {
        clients: 100,
        streams: false,
        runs: 1,
    };
    for streams in [false, true] {
        let server = Subject::server(&place, Templates::FAIR);
        let size = storm::Size { streams, ..size };
        let (waits, failures) = storm::break_loose("server", &server, size).await;
        assert_eq!((waits.count(), failures.len()), (100, 0), "{failures:?}");
    }
    let size = streams::Size {
        clients: 100,
        resources: 200,
        lasts: Duration::from_secs(2),
    };
    streams::measure(&place, size).await;
    let size = memory::Size {
        connections: 5,
        streams: 3,
        resources: 10,
        leases: 100,
        rest: Duration::from_millis(50),
    };
    memory::measure(&place, size).await;
    stalls::measure(&place, &stalls::Size::small()).await;
    let size = agents::Size {
        agents: 4,
        resources: 3,
        changes: 1,
        lasts: Duration::from_secs(2),
    };
    agents::measure(&place, size).await;
}

const OPEN: Pace = Pace::Open {
    per_second: RATE as f64,
};

/// Puts a load of half a second on a server. `begins` is called at its beginning.
async fn load(subject: &Subject, pace: Pace, begins: impl Fn()) -> Figures {
    let load = Load {
        address: subject.address,
        population: Arc::new(Population::new("small", 24, 20, 5)),
        connections: 4,
        pace,
        lasts: Duration::from_millis(500),
    };
    let cpu_time = || {
        begins();
        subject.cpu_time()
    };
    load.run(cpu_time).await
}

/// Checks that a server which stands still delays all calls that are due meanwhile.
async fn check_nothing_is_omitted(place: &Place) {
    const STANDS_STILL: Duration = Duration::from_millis(320);
    let echo = Subject::echo(place);
    let process = echo.process();
    let stands_still = Once::new();
    let figures = load(&echo, OPEN, || {
        stands_still.call_once(|| {
            freeze(process);
            thread::spawn(move || {
                rest_until(Instant::now() + STANDS_STILL);
                thaw(process);
            });
        });
    });
    let latencies = figures.await.latencies;
    assert_eq!(latencies.count(), RATE / 2, "all are answered");
    // Of the half second that counts, three tenths are late. On a busy machine it begins later.
    assert!(latencies.at(0.8) >= STANDS_STILL / 4, "{latencies}");
}
