//! A million random operations, compared with references that follow the definitions, in fractions of any size.
//!
//! Time stands still, jumps to a promised instant and to the nanosecond before it, and goes back; limits and rates
//! change, also to 0. Decisions and remaining amounts must be equal to the last digit. A promised wait must be right,
//! and not a nanosecond too long. `DOORWARD_LIMITS_OPERATIONS` sets the number of operations per algorithm.

mod drive;
mod dumb;
mod dumb_windows;
mod ratio;

use doorward_limits::{
    Ban, FixedWindow, Gcra, LeakyMeter, LeakyQueue, SlidingCounter, SlidingLog, TokenBucket,
};
use drive::{Run, flowing, limited, wait};
use dumb::{Arrival, Tokens};
use dumb_windows::{Counter, Log, Offences, Windows};

#[test]
fn token_bucket() {
    Run::new(1).check(
        |rule| TokenBucket::new(limited(rule), flowing(rule)).unwrap(),
        |rule| Tokens::new(rule, false),
    );
}

#[test]
fn leaky_meter() {
    Run::new(2).check(
        |rule| LeakyMeter::new(limited(rule), flowing(rule)).unwrap(),
        |rule| Tokens::new(rule, false),
    );
}

#[test]
fn leaky_queue() {
    Run::new(3).check(
        |rule| LeakyQueue::new(limited(rule), flowing(rule), wait(rule)).unwrap(),
        |rule| Tokens::new(rule, true),
    );
}

#[test]
fn gcra() {
    Run::new(4).check(
        |rule| Gcra::new(limited(rule), flowing(rule)).unwrap(),
        Arrival::new,
    );
}

#[test]
fn fixed_window() {
    Run::new(5).check(|rule| FixedWindow::new(drive::windowed(rule)), Windows::new);
}

#[test]
fn sliding_log() {
    Run::new(6).check(
        |rule| SlidingLog::new(drive::windowed(rule)).unwrap(),
        Log::new,
    );
}

#[test]
fn sliding_counter() {
    Run::new(7).check(
        |rule| SlidingCounter::new(drive::windowed(rule)).unwrap(),
        Counter::new,
    );
}

#[test]
fn ban() {
    Run::new(8).check(
        |rule| Ban::new(drive::windowed(rule), wait(rule)).unwrap(),
        Offences::new,
    );
}
