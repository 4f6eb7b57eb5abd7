//! Limits that cannot be.

use thiserror::Error;

use crate::rate::Rate;
use crate::units::Units;

/// Why there is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A rate by the calendar where time flows.
    #[error("{rate}: a month or a year of the calendar is a fixed window; give a number of days")]
    CalendarRate {
        /// The rate.
        rate: Rate,
    },
    /// Exact numbers would not fit.
    #[error("{size} at {rate}: such fine parts of so much cannot be counted; give a rounder rate")]
    TooFine {
        /// What fits at once.
        size: Units,
        /// What comes in.
        rate: Rate,
    },
    /// A rate of 0 for what counts in time.
    #[error("{rate}: this algorithm counts in time, and needs a rate above 0")]
    RateIsZero {
        /// The rate.
        rate: Rate,
    },
    /// A cold start that is faster than a warm one.
    #[error(
        "a cold factor of {cold_factor}: give 1 or more, as in 3 for a start at a third of the rate"
    )]
    ColdFactor {
        /// What was given.
        cold_factor: Units,
    },
}
