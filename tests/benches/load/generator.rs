//! Threads that send requests on their own connections, in a closed or an open loop.
//!
//! In a **closed loop**, each asker sends its next request after the last answer: it shows the largest number of
//! requests per second. In an **open loop**, requests are due at a fixed rate, independent of the answers, and their
//! time counts from when they were due. So a server that stops for a second delays a thousand requests, not one, and
//! there is no coordinated omission.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::population::Population;
use crate::tally::Tally;
use crate::wire::Wire;

/// Time after which an answer counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Order of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// The next one follows the last answer, with a number of requests in flight on each connection.
    Closed {
        /// Number on each connection.
        in_flight: usize,
    },
    /// A number of requests per second.
    Open {
        /// Number of all threads together.
        per_second: f64,
    },
}

/// Requests that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Requests of a time after a warm-up.
    Time {
        /// Time of the warm-up.
        warm_up: Duration,
        /// Time that counts.
        measured: Duration,
    },
    /// A number of requests, from the first one on.
    Requests(u64),
}

/// A load.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    /// Clients that ask.
    pub(crate) population: Arc<Population>,
    /// Number of threads.
    pub(crate) threads: usize,
    /// Number of connections of all threads.
    pub(crate) connections: usize,
    /// Pace of the requests.
    pub(crate) pace: Pace,
    /// Extent of the measurement.
    pub(crate) extent: Extent,
}

/// Result of a load.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Tally of all calls that count.
    pub(crate) tally: Tally,
    /// Time in which they count.
    pub(crate) lasted: Duration,
    /// Readings at the beginning and at the end of that time.
    pub(crate) read: (Option<Duration>, Option<Duration>),
}

/// State that all threads share.
#[derive(Debug)]
struct Run {
    load: Load,
    begins: Instant,
    counts_from: Instant,
    ends: Instant,
    /// Number of requests that may still begin.
    left: AtomicU64,
}

impl Load {
    /// Puts the load on the server, and takes a reading (its processor time) at the beginning and the end of the
    /// counted time.
    pub(crate) fn run(self, read: impl Fn() -> Option<Duration>) -> Measured {
        // Connections are open by then.
        let begins = Instant::now() + Duration::from_millis(300);
        let (warm_up, measured, left) = match self.extent {
            Extent::Time { warm_up, measured } => (warm_up, measured, u64::MAX),
            Extent::Requests(requests) => (Duration::ZERO, 24 * PATIENCE, requests),
        };
        let counts_from = begins + warm_up;
        let run = Run {
            begins,
            counts_from,
            ends: counts_from + measured,
            left: AtomicU64::new(left),
            load: self,
        };
        let (tally, lasted, read) = thread::scope(|scope| {
            let threads: Vec<_> = (0..run.load.threads)
                .map(|number| {
                    let run = &run;
                    scope.spawn(move || run.on_thread(number))
                })
                .collect();
            rest_until(counts_from);
            let (before, began) = (read(), Instant::now());
            if matches!(run.load.extent, Extent::Time { .. }) {
                rest_until(run.ends);
            }
            let mut after = read();
            let mut lasted = began.elapsed();
            let mut all = Tally::default();
            for thread in threads {
                all.add(thread.join().unwrap());
            }
            if matches!(run.load.extent, Extent::Requests(_)) {
                after = read();
                lasted = began.elapsed();
            }
            (all, lasted, (before, after))
        });
        Measured {
            tally,
            lasted,
            read,
        }
    }
}

/// Waits without a runtime.
pub(crate) fn rest_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

/// Creates a runtime of one thread.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

impl Run {
    fn on_thread(&self, number: usize) -> Tally {
        runtime().block_on(async {
            let mine = (0..self.load.connections).filter(|it| it % self.load.threads == number);
            let mut connections = Vec::new();
            for connection in mine {
                let wire = Wire::open(self.load.address, None).await.unwrap();
                connections.push((connection, wire));
            }
            tokio::time::sleep_until(self.begins).await;
            match self.load.pace {
                Pace::Closed { in_flight } => self.closed(&connections, in_flight).await,
                Pace::Open { per_second } => self.open(number, &connections, per_second).await,
            }
        })
    }

    fn may_begin(&self) -> bool {
        let begun = self
            .left
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        begun.is_ok()
    }

    async fn closed(&self, connections: &[(usize, Wire)], in_flight: usize) -> Tally {
        let askers = self.load.connections * in_flight;
        let mut asking = Vec::new();
        for (connection, wire) in connections {
            for place in 0..in_flight {
                let asker = connection * in_flight + place;
                asking.push(self.ask_on(wire.clone(), asker, askers));
            }
        }
        let mut all = Tally::default();
        for tally in futures_util::future::join_all(asking).await {
            all.add(tally);
        }
        all
    }

    /// Asks for every `askers`-th client, one after the other.
    async fn ask_on(&self, wire: Wire, asker: usize, askers: usize) -> Tally {
        let population = &self.load.population;
        let mut tally = Tally::default();
        let mut clients = (asker..population.clients()).step_by(askers).cycle();
        let mut began = Instant::now();
        while began < self.ends && self.may_begin() {
            let client = clients.next().unwrap();
            let answer = population.ask(&wire, client).await;
            let ended = Instant::now();
            let counts = ended >= self.counts_from && ended < self.ends;
            tally.note(&answer, counts.then_some(ended - began));
            if tally.broken > 0 {
                break;
            }
            began = ended;
        }
        tally
    }

    async fn open(&self, number: usize, connections: &[(usize, Wire)], per_second: f64) -> Tally {
        let population = &self.load.population;
        let threads = self.load.threads;
        let pace = Duration::from_secs_f64(threads as f64 / per_second);
        let offset = pace.mul_f64(number as f64 / threads as f64);
        let mut due = due_at(self.begins + offset, pace, self.ends);
        let tally = Arc::<Mutex<Tally>>::default();
        let mut calls = JoinSet::new();
        let mut next = number;
        while let Some(at) = due.recv().await {
            if !self.may_begin() {
                break;
            }
            let (_, wire) = &connections[next / threads % connections.len()];
            let (wire, population) = (wire.clone(), Arc::clone(population));
            let (client, tally) = (next % population.clients(), Arc::clone(&tally));
            let counts = at >= self.counts_from;
            next += threads;
            calls.spawn(async move {
                let answer = population.ask(&wire, client).await;
                let took = counts.then(|| at.elapsed());
                tally.lock().unwrap().note(&answer, took);
            });
            while calls.try_join_next().is_some() {}
        }
        drop(due);
        timeout(PATIENCE, calls.join_all()).await.unwrap();
        Arc::into_inner(tally).unwrap().into_inner().unwrap()
    }
}

/// Sends the due times of requests when they are due, from a thread that does nothing else, because a runtime's timers
/// are up to a millisecond late.
pub(crate) fn due_at(
    begins: Instant,
    pace: Duration,
    ends: Instant,
) -> mpsc::UnboundedReceiver<Instant> {
    let (sender, due) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut at = begins;
        while at < ends {
            rest_until(at);
            if sender.send(at).is_err() {
                return;
            }
            at += pace;
        }
    });
    due
}
