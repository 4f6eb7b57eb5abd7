//! What the node counts itself, among the limits of the server.

use std::time::Duration;

use doorward_engine::admission::limits::Limits as NodeLimits;
use doorward_engine::admission::{Load, Rate};
use doorward_engine::limit as engine;

use crate::limits::{ServerLimit, ServerLimits};

/// How often each limit of a node has refused something.
type Refused = [u64; engine::Limit::ALL.len()];

impl ServerLimit {
    /// The limit of that name. A caller is an address.
    pub const fn of(limit: engine::Limit) -> Self {
        match limit {
            engine::Limit::Resources => Self::Resources,
            engine::Limit::ResourcesPerCaller => Self::ResourcesPerAddress,
            engine::Limit::ResourcesPerTemplate => Self::ResourcesPerTemplate,
            engine::Limit::NewResourcesPerCaller => Self::NewResourcesPerAddress,
            engine::Limit::NewResourcesPerTemplate => Self::NewResourcesPerTemplate,
            engine::Limit::Leases => Self::Leases,
            engine::Limit::LeasesPerResource => Self::LeasesPerResource,
            engine::Limit::LeasesPerCaller => Self::LeasesPerAddress,
            engine::Limit::LeasesPerTemplate => Self::LeasesPerTemplate,
            engine::Limit::NewLeasesPerCaller => Self::NewLeasesPerAddress,
            engine::Limit::NewLeasesPerTemplate => Self::NewLeasesPerTemplate,
            engine::Limit::RequestsPerTemplate => Self::RequestsPerTemplate,
            engine::Limit::Memory => Self::Memory,
            engine::Limit::Priorities => Self::Priorities,
            engine::Limit::PrioritiesPerCaller => Self::PrioritiesPerAddress,
            engine::Limit::ChildServers => Self::ChildServers,
            engine::Limit::ChildServersPerCaller => Self::ChildServersPerAddress,
            engine::Limit::Curves => Self::Curves,
            engine::Limit::CurvesPerCaller => Self::CurvesPerAddress,
            engine::Limit::CurvePoints => Self::CurvePoints,
            engine::Limit::CurvePointsPerCaller => Self::CurvePointsPerAddress,
        }
    }

    /// How many of each there may be at once, as far as that is a count.
    const fn maxima(limits: &NodeLimits) -> [(Self, usize); 15] {
        [
            (Self::Resources, limits.resources_max),
            (Self::ResourcesPerAddress, limits.resources_per_caller_max),
            (
                Self::ResourcesPerTemplate,
                limits.resources_per_template_max,
            ),
            (Self::Leases, limits.leases_max),
            (Self::LeasesPerResource, limits.leases_per_resource_max),
            (Self::LeasesPerAddress, limits.leases_per_caller_max),
            (Self::LeasesPerTemplate, limits.leases_per_template_max),
            (Self::Priorities, limits.priorities_max),
            (Self::PrioritiesPerAddress, limits.priorities_per_caller_max),
            (Self::ChildServers, limits.child_servers_max),
            (
                Self::ChildServersPerAddress,
                limits.child_servers_per_caller_max,
            ),
            (Self::Curves, limits.curves_max),
            (Self::CurvesPerAddress, limits.curves_per_caller_max),
            (Self::CurvePoints, limits.curve_points_max),
            (
                Self::CurvePointsPerAddress,
                limits.curve_points_per_caller_max,
            ),
        ]
    }

    /// How many of each there may be a second.
    const fn rates(limits: &NodeLimits) -> [(Self, Rate); 5] {
        [
            (
                Self::NewResourcesPerAddress,
                limits.new_resources_per_caller,
            ),
            (
                Self::NewResourcesPerTemplate,
                limits.new_resources_per_template,
            ),
            (Self::NewLeasesPerAddress, limits.new_leases_per_caller),
            (Self::NewLeasesPerTemplate, limits.new_leases_per_template),
            (Self::RequestsPerTemplate, limits.requests_per_template),
        ]
    }

    /// How much of each a node uses. How many come each second, and priorities, nobody counts.
    const fn uses(load: &Load) -> [(Self, usize); 14] {
        [
            (Self::Resources, load.resources),
            (Self::ResourcesPerAddress, load.resources_per_caller),
            (Self::ResourcesPerTemplate, load.resources_per_template),
            (Self::Leases, load.leases),
            (Self::LeasesPerResource, load.leases_per_resource),
            (Self::LeasesPerAddress, load.leases_per_caller),
            (Self::LeasesPerTemplate, load.leases_per_template),
            (Self::Memory, load.memory_bytes),
            (Self::ChildServers, load.child_servers),
            (Self::ChildServersPerAddress, load.child_servers_per_caller),
            (Self::Curves, load.curves),
            (Self::CurvesPerAddress, load.curves_per_caller),
            (Self::CurvePoints, load.curve_points),
            (Self::CurvePointsPerAddress, load.curve_points_per_caller),
        ]
    }
}

impl ServerLimits {
    /// The bounds of a node.
    pub fn set_of_node(&self, limits: &NodeLimits) {
        for (limit, max) in ServerLimit::maxima(limits) {
            self.set_max(limit, number(max));
        }
        if let Some(max) = limits.memory_max {
            self.set_max(ServerLimit::Memory, number(max));
        }
        for (limit, rate) in ServerLimit::rates(limits) {
            self.set_max(limit, rate.per_second.get().into());
        }
    }

    /// What is in use at a node now.
    pub fn set_used_by_node(&self, load: &Load) {
        for (limit, used) in ServerLimit::uses(load) {
            self.set_used(limit, number(used));
        }
    }

    /// What a node has refused since it had refused that much, so long after the start.
    pub fn refuse_by_node(&self, before: &Refused, after: &Refused, now: Duration) {
        for ((limit, before), after) in engine::Limit::ALL.iter().zip(before).zip(after) {
            self.refuse_times(ServerLimit::of(*limit), after.saturating_sub(*before), now);
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
