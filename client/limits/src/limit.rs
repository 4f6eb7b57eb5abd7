//! The interface of all limits that threads share: one limit ([`crate::Shared`], [`crate::AtomicBucket`]), or one key
//! of a map ([`crate::keyed::AtKey`]).
//!
//! Each operation is atomic. [`crate::several`] takes from several limits, all or nothing.

use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;

/// A limit that many threads use by reference.
///
/// Two shared limits have an interface of their own. [`crate::InFlight`] cannot say when a permit comes back. The owner
/// of a [`crate::AtomicFedBucket`] reads its clock again where the lease ends, so a take by itself has no final answer.
pub trait Limit: Send + Sync {
    /// Takes `cost` if it is available.
    fn take(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the answer that a take would get. A peek of 0 only looks.
    fn peek(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the standing of the limit, even if it refuses.
    fn standing(&self, now: Moment) -> Standing;

    /// Takes `cost`, available or not.
    fn charge(&self, cost: Units, now: Moment);

    /// Gives back `cost`. Any amount above full is lost.
    fn refund(&self, cost: Units, now: Moment);

    /// Records an attempt that another limit refused. Only a ban counts them.
    fn attempt(&self, cost: Units, now: Moment);
}
