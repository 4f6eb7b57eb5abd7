//! How high each limit of a node is.

use std::num::NonZeroU32;

use crate::admission::bucket::Rate;

/// A number of bytes that is no bound.
pub const NO_BOUND: usize = usize::MAX;

/// The bounds of a node. [`crate::admission`] says what each bound is about; each has a name of its own
/// ([`crate::admission::Limit`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory in all. [`NO_BOUND`]: as much as it takes.
    pub memory_max: usize,
    /// Bytes that one caller brings.
    pub memory_per_caller_max: usize,
    /// Bytes of all resources of one template.
    pub memory_per_template_max: usize,
    /// New resources and new leases of clients from one caller.
    pub newcomers_per_caller: Rate,
    /// Requests of clients for resources of one template.
    pub requests_per_template: Rate,
    /// Holders of one resource.
    pub leases_per_resource_max: usize,
    /// Different priorities of one resource that clients bring and its template does not name; each costs
    /// every decision a little.
    pub priorities_max: usize,
}

/// A rate that is not 0 (which would count as 1).
const fn rate(per_second: u32, burst_seconds: u32) -> Rate {
    let per_second = match NonZeroU32::new(per_second) {
        Some(per_second) => per_second,
        None => NonZeroU32::MIN,
    };
    Rate::new(per_second, burst_seconds)
}

/// Ten thousand honest clients behind one address, each with a few resources, never reach any of these, also if they all
/// come at once.
impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_max: NO_BOUND,
            memory_per_caller_max: 512 << 20,
            memory_per_template_max: NO_BOUND,
            newcomers_per_caller: rate(20_000, 5),
            requests_per_template: rate(200_000, 2),
            leases_per_resource_max: 2_000_000,
            priorities_max: 64,
        }
    }
}
