//! How high each limit of a node is.

use std::num::NonZeroU32;

use crate::admission::bucket::Rate;

/// How much a node takes on before it refuses. What these are about, [`crate::admission`] says; each
/// has a name of its own ([`crate::limit::Limit`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resources with leases out.
    pub resources_max: usize,
    /// Those of which one caller's clients were the first holders.
    pub resources_per_caller_max: usize,
    /// Those of one template.
    pub resources_per_template_max: usize,
    /// New ones from one caller.
    pub new_resources_per_caller: Rate,
    /// New ones of one template.
    pub new_resources_per_template: Rate,
    /// Leases in all.
    pub leases_max: usize,
    /// Holders of one resource.
    pub leases_per_resource_max: usize,
    /// Leases that one caller brought.
    pub leases_per_caller_max: usize,
    /// Leases of all resources of one template.
    pub leases_per_template_max: usize,
    /// New ones from one caller.
    pub new_leases_per_caller: Rate,
    /// New ones of one template.
    pub new_leases_per_template: Rate,
    /// Requests of clients for resources of one template.
    pub requests_per_template: Rate,
    /// Memory behind all that, in bytes. None: as much as it takes.
    pub memory_max: Option<usize>,
    /// Different priorities of one resource that clients bring and its template does not name; each costs every
    /// decision a little.
    pub priorities_max: usize,
    /// Those that one caller brings.
    pub priorities_per_caller_max: usize,
    /// Child servers.
    pub child_servers_max: usize,
    /// Those of one caller.
    pub child_servers_per_caller_max: usize,
    /// Leases of child servers, each of which has demand curves.
    pub curves_max: usize,
    /// Those of one caller.
    pub curves_per_caller_max: usize,
    /// Points of all demand curves.
    pub curve_points_max: usize,
    /// Those of one caller.
    pub curve_points_per_caller_max: usize,
}

/// A rate that is not 0 (which would count as 1).
const fn rate(per_second: u32, burst_seconds: u32) -> Rate {
    let per_second = match NonZeroU32::new(per_second) {
        Some(per_second) => per_second,
        None => NonZeroU32::MIN,
    };
    Rate::new(per_second, burst_seconds)
}

/// Ten thousand honest clients behind one address, each with a few resources, never notice any of these, also
/// if they all come at once.
impl Default for Limits {
    fn default() -> Self {
        Self {
            resources_max: 100_000,
            resources_per_caller_max: 25_000,
            resources_per_template_max: 100_000,
            new_resources_per_caller: rate(1_000, 25),
            new_resources_per_template: rate(5_000, 10),
            leases_max: 4_000_000,
            leases_per_resource_max: 2_000_000,
            leases_per_caller_max: 1_000_000,
            leases_per_template_max: 4_000_000,
            new_leases_per_caller: rate(20_000, 5),
            new_leases_per_template: rate(100_000, 10),
            requests_per_template: rate(200_000, 2),
            memory_max: None,
            priorities_max: 64,
            priorities_per_caller_max: 16,
            child_servers_max: 1_000,
            child_servers_per_caller_max: 64,
            curves_max: 1_000_000,
            curves_per_caller_max: 500_000,
            curve_points_max: 8_000_000,
            curve_points_per_caller_max: 4_000_000,
        }
    }
}
