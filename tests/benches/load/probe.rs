//! A client that asks all the time, in an open loop, on a thread of its own: the worst that it sees within a span of
//! time is how long whatever happened then makes a client wait.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::generator::{due_at, rest_until, runtime};
use crate::population::Population;
use crate::wire::Wire;

/// An answer that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call: when it was due, and how long it took from then on. None: it is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Call {
    due: Instant,
    took: Option<Duration>,
}

#[derive(Debug, Default)]
struct Book {
    calls: Vec<Call>,
    broken: Option<String>,
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
    /// Begins to ask a server, so often.
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

    /// Asks nothing until it goes on.
    pub(crate) fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
        rest_until(Instant::now() + 10 * self.pace);
    }

    /// Asks again.
    pub(crate) fn go_on(&self) {
        self.is_paused.store(false, Ordering::SeqCst);
    }

    /// The worst of all calls that were due from then on until now, once all of them are answered.
    pub(crate) fn worst_since(&self, from: Instant) -> Duration {
        let until = Instant::now();
        let deadline = until + PATIENCE;
        loop {
            rest_until(Instant::now() + 10 * self.pace);
            let book = self.book.lock().unwrap();
            assert!(book.broken.is_none(), "{:?}", book.broken);
            let within = |call: &&Call| call.due >= from && call.due < until;
            let calls: Vec<Call> = book.calls.iter().filter(within).copied().collect();
            let is_past = book.calls.last().is_some_and(|last| last.due >= until);
            drop(book);
            let took: Option<Vec<Duration>> = calls.iter().map(|call| call.took).collect();
            if let (true, Some(worst)) = (is_past, took.and_then(|took| took.into_iter().max())) {
                return worst;
            }
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
            // Whatever the answer is: who is told that there is no master knows at once.
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
