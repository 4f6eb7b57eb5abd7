//! A request, and the answers to it.

use doorward_limits::Moment;

use crate::Refusal;
use crate::overload::criticality::Criticality;
use crate::overload::queue::Key;
pub use crate::refusal::Reason;

/// Thousandths of a unit of cost, so that sums are exact.
pub(super) const UNIT: f64 = 1e3;

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Hash of the name of the operation, and of its class if it has classes. Like requests have the same hash.
    pub operation: u64,
    /// Tier.
    pub criticality: Criticality,
    /// Hash of the user's name. Requests without a user belong to any cohort.
    pub user: Option<u64>,
    /// Time after which the answer is useless.
    pub deadline: Option<Moment>,
}

/// A request that is served. Give it back by [`Throttler::handle_end`](super::Throttler::handle_end) or
/// [`Throttler::cancel`](super::Throttler::cancel).
#[derive(Debug, PartialEq)]
#[must_use = "the request uses concurrency until its admission is given back"]
pub struct Admission {
    pub(super) operation: u64,
    /// Predicted cost, in thousandths of a unit.
    pub(super) cost: u64,
    /// Predicted latency.
    pub(super) seconds: f64,
    pub(super) at: Moment,
    pub(super) deadline: Option<Moment>,
    pub(super) is_trial: bool,
    pub(super) shadow: Option<Reason>,
}

/// A waiting request, for [`Throttler::leave`](super::Throttler::leave).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) key: Key,
    pub(super) leaves_at: Moment,
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub enum Offer {
    /// It is served.
    Admitted(Admission),
    /// It waits; [`Throttler::poll_decided`](super::Throttler::poll_decided) returns its waiter.
    Queued(Place),
    /// It is refused.
    Refused(Refusal),
}

impl Admission {
    /// Returns the predicted cost, in units of the service.
    pub fn predicted_cost(&self) -> f64 {
        self.cost as f64 / UNIT
    }

    /// Returns whether it was admitted beyond the limit, so that a wrong limit is found out.
    pub const fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Returns why it would have been refused, in shadow mode.
    pub const fn shadow(&self) -> Option<Reason> {
        self.shadow
    }

    /// Returns the milliseconds since the request was admitted, which are its cost if none is reported.
    pub fn millis(&self, now: Moment) -> f64 {
        now.nanos_since(self.at) as f64 / 1e6
    }
}

impl Place {
    /// Returns when the request gives up.
    pub const fn leaves_at(self) -> Moment {
        self.leaves_at
    }
}
