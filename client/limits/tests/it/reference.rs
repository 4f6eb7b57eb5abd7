//! Random operations, compared with references that follow the definitions, in fractions of any size.
//!
//! Time stands still, jumps to a promised instant and to the nanosecond before it, and goes back; limits and rates
//! change, also to 0. Decisions and remaining amounts must be equal to the last digit. A promised wait must be right,
//! and not a nanosecond too long. `DOORWARD_LIMITS_OPERATIONS` sets the number of operations per algorithm;
//! `tests/release` plays ten million. Warm-up, whose slope is not exact, has a reference in floating point.

mod drive;
mod dumb;
mod dumb_windows;
mod ratio;
mod warm_up;

use doorward_limits::{
    Ban, FixedWindow, Gcra, LeakyQueue, SlidingCounter, SlidingLog, SoftHard, TokenBucket,
};
use drive::Run;
use dumb::{Arrival, Tokens};
use dumb_windows::{Counter, Log, Offences, Windows};

#[test]
fn token_bucket() {
    Run::new(1, false).check::<TokenBucket, _>(|rule| Tokens::new(rule, false));
}

#[test]
fn leaky_queue() {
    Run::new(3, false).check::<LeakyQueue, _>(|rule| Tokens::new(rule, true));
}

#[test]
fn gcra() {
    Run::new(4, false).check::<Gcra, _>(Arrival::new);
}

#[test]
fn fixed_window() {
    Run::new(5, false).check::<FixedWindow, _>(Windows::new);
}

#[test]
fn sliding_log() {
    Run::new(6, false).check::<SlidingLog, _>(Log::new);
}

#[test]
fn sliding_counter() {
    Run::new(7, false).check::<SlidingCounter, _>(Counter::new);
}

#[test]
fn ban() {
    Run::new(8, false).check::<Ban, _>(Offences::new);
}

#[test]
fn soft_and_hard() {
    Run::new(9, true).check::<SoftHard<TokenBucket>, _>(|rule| Tokens::new(rule, false));
}
