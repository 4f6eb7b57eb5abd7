//! Limiters that follow a changing capacity: pure.
//!
//! [`rate`] is for what is counted per second, [`concurrency`] for what is counted at once. Both
//! are handed an [`crate::capacity::Allowance`] and the time, and look at the end of a lease
//! themselves, so that nobody overruns because a task was late to wake. [`demand`] measures what
//! would be used if there were no limit.

pub mod concurrency;
pub mod demand;
pub mod rate;
