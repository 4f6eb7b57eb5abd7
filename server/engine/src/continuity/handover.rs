//! A handover: bounds on the leases of a master that may be in use when it resigns.
//!
//! It has an amount and an end for each resource, and no holders: they report what they have. Its successor reserves
//! what is not reported yet, and divides the rest at once. So a planned change of the master stops no growth. A resource
//! without a mark has no leases, except while its master still learned: then others may have any.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::amount::Amount;
use crate::id::ResourceId;

/// Largest number of resources in a handover. A master of more hands nothing over, and its successor learns.
pub(crate) const RESOURCES_MAX: usize = 10_000;

/// A bound on the leases of a resource that may be in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Largest amount of all of them together.
    pub amount: Amount,
    /// Time after which all have ended.
    pub lasts: Duration,
}

/// Bounds on the leases of a master that may be in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handover {
    /// By resource.
    pub marks: BTreeMap<ResourceId, Mark>,
    /// Time after which leases of all other resources have ended. Zero: they have none.
    pub others_last: Duration,
}

/// Knowledge of a new master about the leases of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Predecessors {
    /// Any may be in use, for as long as templates tell.
    Unknown,
    /// Any may be in use, for that time after the resignation.
    UnknownFor(Duration),
    /// No more than that.
    Known(Mark),
}

impl Handover {
    /// Returns what it tells about a resource.
    pub(crate) fn of(&self, resource: &ResourceId) -> Predecessors {
        match self.marks.get(resource) {
            Some(mark) => Predecessors::Known(*mark),
            None => Predecessors::UnknownFor(self.others_last),
        }
    }
}
