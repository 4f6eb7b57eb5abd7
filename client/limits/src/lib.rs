//! Local rate limits: decided from memory, in nanoseconds, exactly.

pub mod algorithm;
pub mod decision;
pub mod error;
mod flow;
mod gcra;
mod limiter;
pub mod moment;
pub mod rate;
mod rest;
mod token_bucket;
pub mod units;

pub use algorithm::Algorithm;
pub use decision::{Allowed, Decision, Reason, Standing};
pub use error::SettingsError;
pub use gcra::{Gcra, GcraState};
pub use limiter::Limiter;
pub use moment::Moment;
pub use rate::{InvalidRate, Period, Rate};
pub use token_bucket::{TokenBucket, TokenBucketState};
pub use units::{InvalidUnits, Units};
