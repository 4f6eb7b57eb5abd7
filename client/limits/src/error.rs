//! Errors of settings.

use thiserror::Error;

use crate::rate::{InvalidRate, Rate};
use crate::units::Units;

/// An error of a limit that is given as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidLimit {
    /// The text is not a rate.
    #[error(transparent)]
    Rate(#[from] InvalidRate),
    /// The rate is not one of this limit.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// An error of a limit's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// Exact numbers do not fit.
    #[error("{size} at {rate}: exact numbers do not fit; give a rounder rate")]
    TooFine {
        /// Largest amount at once.
        size: Units,
        /// Rate of the supply.
        rate: Rate,
    },
    /// A rate of 0 for an algorithm that counts in time.
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
        /// The given factor.
        cold_factor: Units,
    },
}
