//! Limiters that follow a changing capacity: pure, and for many threads without a lock.
//!
//! [`rate`] is for what is counted per second, [`concurrency`] for what is counted at once. Both
//! are handed an [`crate::capacity::Allowance`] and the time, and look at the end of a lease
//! themselves at each call, so that nobody overruns because a task was late to wake, or the process was frozen. [`demand`]
//! measures what would be used if there were no limit; [`tally`] counts that among threads.

use std::time::Duration;

pub mod concurrency;
pub mod demand;
pub mod rate;
mod supply;
pub mod tally;

/// By how much a clock that is cheap to read may be behind a good one, where limiters are asked by it. For so long before
/// the end of a lease they want the good one.
pub const FAST_CLOCK_BEHIND: Duration = Duration::from_millis(2);
