//! Limiters that follow a changing capacity: pure, and for many threads without a lock.
//!
//! [`rate`] limits amounts per second, [`concurrency`] amounts at once. Both receive a [`crate::capacity::Allowance`]
//! and the time. At each call they check the end of the lease themselves, so a late task or a frozen process causes no
//! overrun. [`demand`] measures the use that would occur without a limit; [`tally`] counts it among threads.

use std::time::Duration;

pub mod budget;
pub mod concurrency;
pub mod demand;
pub mod rate;
mod supply;
pub mod tally;

/// Largest delay of a cheap clock behind a good one, where limiters use it. For that time before the end of a lease
/// they need the good one.
pub const FAST_CLOCK_BEHIND: Duration = Duration::from_millis(2);
