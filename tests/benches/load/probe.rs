//! A client that asks all the time, in an open loop, on a thread of its own: its worst call within a span is the wait
//! that an event of that time causes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::generator::{due_at, rest_until, runtime};
use crate::population::Population;
use crate::wire::Wire;

/// Time after which an answer counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call: the time when it was due, and its latency from then on. None: it is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Call {
    due: Instant,
    took: Option<Duration>,
}

/// All calls, in the order in which they were due.
#[derive(Debug, Default)]
struct Book {
    calls: Vec<Call>,
    broken: Option<String>,
}

impl Book {
    /// Returns the worst of the calls that were due within a span, which ends before the second moment. None: one of
    /// them is not answered yet, or some may be missing because no later call is there.
    fn worst(&self, from: Instant, until: Instant) -> Option<Duration> {
        let is_past = self.calls.last().is_some_and(|last| last.due >= until);
        let within = |call: &&Call| call.due >= from && call.due < until;
        let took = self.calls.iter().filter(within).map(|call| call.took);
        let took: Vec<Duration> = took.collect::<Option<_>>()?;
        is_past.then(|| took.into_iter().max())?
    }
}

/// A client that asks until it is dropped.
#[derive(Debug)]
pub(crate) struct Probe {
    book: Arc<Mutex<Book>>,
    is_paused: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    pace: Duration,
}

impl Probe {
    /// Starts to ask a server, at a pace.
    pub(crate) fn start(address: SocketAddr, pace: Duration) -> Self {
        let probe = Self {
            book: Arc::default(),
            is_paused: Arc::default(),
            is_over: Arc::default(),
            pace,
        };
        let (book, is_paused) = (Arc::clone(&probe.book), Arc::clone(&probe.is_paused));
        let is_over = Arc::clone(&probe.is_over);
        thread::spawn(move || {
            runtime().block_on(ask_on(address, pace, book, is_paused, is_over));
        });
        probe
    }

    /// Stops asking.
    pub(crate) fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
        rest_until(Instant::now() + 10 * self.pace);
    }

    /// Asks again.
    pub(crate) fn go_on(&self) {
        self.is_paused.store(false, Ordering::SeqCst);
    }

    /// Returns the worst of all calls that were due from then on until now, once all of them are answered.
    pub(crate) fn worst_since(&self, from: Instant) -> Duration {
        let until = Instant::now();
        let deadline = until + PATIENCE;
        loop {
            rest_until(Instant::now() + 10 * self.pace);
            let book = self.book.lock().unwrap();
            assert!(book.broken.is_none(), "{:?}", book.broken);
            if let Some(worst) = book.worst(from, until) {
                return worst;
            }
            drop(book);
            assert!(Instant::now() < deadline, "a call is not answered");
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

async fn ask_on(
    address: SocketAddr,
    pace: Duration,
    book: Arc<Mutex<Book>>,
    is_paused: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
) {
    let client = Arc::new(Population::new("probe", 1, 1, 1));
    let wire = Wire::open(address, None).await.unwrap();
    let begins = Instant::now();
    let mut due = due_at(begins, pace, begins + Duration::from_secs(24 * 3_600));
    while let Some(at) = due.recv().await {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if is_paused.load(Ordering::SeqCst) {
            continue;
        }
        let number = {
            let mut book = book.lock().unwrap();
            book.calls.push(Call {
                due: at,
                took: None,
            });
            book.calls.len() - 1
        };
        let (wire, client, book) = (wire.clone(), Arc::clone(&client), Arc::clone(&book));
        tokio::spawn(async move {
            // Any answer counts: a server that is not the master knows that at once.
            let answer = client.ask(&wire, 0).await;
            let took = at.elapsed();
            let mut book = book.lock().unwrap();
            book.calls[number].took = Some(took);
            if let Err(failure) = answer
                && !matches!(failure, crate::wire::Failure::Refused { .. })
            {
                book.broken.get_or_insert(failure.to_string());
            }
        });
    }
}

/// Checks the worst call within a span: earlier and later calls do not count, and no call that may be worse is left
/// out.
pub(crate) fn check() {
    let begins = Instant::now();
    let at = |millis| begins + Duration::from_millis(millis);
    let call = |due, took: Option<u64>| Call {
        due: at(due),
        took: took.map(Duration::from_millis),
    };
    let mut book = Book {
        calls: vec![
            call(0, Some(900)),
            call(2, Some(5)),
            call(4, None),
            call(6, Some(3)),
        ],
        broken: None,
    };
    assert_eq!(book.worst(at(2), at(4)), Some(Duration::from_millis(5)));
    assert_eq!(book.worst(at(0), at(4)), Some(Duration::from_millis(900)));
    // One is not answered; another that was due within the span may be missing yet.
    assert_eq!(book.worst(at(2), at(6)), None);
    assert_eq!(book.worst(at(6), at(8)), None);
    assert_eq!(book.worst(at(3), at(4)), None, "no call");
    book.calls[2].took = Some(Duration::from_millis(40));
    assert_eq!(book.worst(at(2), at(6)), Some(Duration::from_millis(40)));
    // Later calls need not be answered.
    book.calls.push(call(8, None));
    assert_eq!(book.worst(at(6), at(8)), Some(Duration::from_millis(3)));
}
