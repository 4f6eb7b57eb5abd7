//! Leaves out what a place in the program logs beyond its [allowance](super::allowance), and logs how much
//! that was.

use std::fmt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_clock::Instant;
use tracing::{Event, Level, Metadata, Subscriber, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::allowance::{LineAllowance, LineVerdict};

/// Under which target the log says what was left out: that itself is no more than a line a place and minute.
const TARGET: &str = "doorward_server::log_lines";

/// A place in the program that logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallSite {
    file: &'static str,
    line: u32,
}

impl CallSite {
    fn of(metadata: &'static Metadata<'static>) -> Self {
        Self {
            file: metadata.file().unwrap_or(metadata.target()),
            line: metadata.line().unwrap_or_default(),
        }
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What is counted, by a clock.
#[derive(Debug)]
struct Counted {
    allowance: Mutex<LineAllowance<CallSite>>,
    began: Instant,
}

impl Counted {
    /// Nothing panics while holding it; should something, what is in it is still right.
    fn allowance(&self) -> MutexGuard<'_, LineAllowance<CallSite>> {
        self.allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The layer that leaves out.
#[derive(Debug)]
pub(super) struct Bounded {
    counted: Arc<Counted>,
    /// Something was left out: there will be something to log.
    left_out: Sender<()>,
}

/// Logs what was left out.
#[derive(Debug)]
pub(super) struct Teller {
    counted: Arc<Counted>,
    left_out: Receiver<()>,
}

/// So many lines a place and minute.
pub(super) fn bounded(lines_max: u32) -> (Bounded, Teller) {
    let counted = Arc::new(Counted {
        allowance: Mutex::new(LineAllowance::new(lines_max)),
        began: Instant::now(),
    });
    let (sender, left_out) = mpsc::channel();
    let bounded = Bounded {
        counted: Arc::clone(&counted),
        left_out: sender,
    };
    (bounded, Teller { counted, left_out })
}

impl<S: Subscriber> Layer<S> for Bounded {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // Who asks for more than information wants all of it.
        if *metadata.level() > Level::INFO || metadata.target() == TARGET {
            return true;
        }
        let now = self.counted.began.elapsed();
        let verdict = self
            .counted
            .allowance()
            .handle_line(&CallSite::of(metadata), now);
        if let LineVerdict::LeftOut(Some(_)) = verdict {
            // Nobody listens any more when the program ends.
            let _ = self.left_out.send(());
        }
        verdict == LineVerdict::Logged
    }
}

impl Teller {
    /// Runs for as long as there is a log: on a thread of its own, since who logs cannot be called back.
    pub(super) fn run(self) {
        loop {
            let timeout = self.counted.allowance().poll_timeout();
            let left = timeout.map(|at| at.saturating_sub(self.counted.began.elapsed()));
            let waited = match left {
                None => self.left_out.recv().is_ok(),
                Some(left) => !matches!(
                    self.left_out.recv_timeout(left),
                    Err(mpsc::RecvTimeoutError::Disconnected)
                ),
            };
            self.log_left_out(self.counted.began.elapsed());
            if !waited {
                return;
            }
        }
    }

    /// Logs what was left out, as far as it is due.
    fn log_left_out(&self, now: Duration) {
        let left_out = self.counted.allowance().poll_left_out(now);
        for (place, lines) in left_out {
            warn!(
                target: TARGET,
                %place,
                lines,
                "more was to be logged than --log-lines-per-minute allows: these lines were left out"
            );
        }
    }
}

#[cfg(test)]
mod tests;
