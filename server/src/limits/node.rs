//! What the node counts itself, among the limits of the server.

use std::time::Duration;

use doorward_engine::admission::Load;
use doorward_engine::admission::limits::Limits as NodeLimits;
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
}

impl ServerLimits {
    /// The bounds of a node.
    pub fn set_of_node(&self, limits: &NodeLimits) {
        let counts = [
            (ServerLimit::Resources, limits.resources_max),
            (
                ServerLimit::ResourcesPerAddress,
                limits.resources_per_caller_max,
            ),
            (
                ServerLimit::ResourcesPerTemplate,
                limits.resources_per_template_max,
            ),
            (ServerLimit::Leases, limits.leases_max),
            (
                ServerLimit::LeasesPerResource,
                limits.leases_per_resource_max,
            ),
            (ServerLimit::LeasesPerAddress, limits.leases_per_caller_max),
            (
                ServerLimit::LeasesPerTemplate,
                limits.leases_per_template_max,
            ),
            (ServerLimit::Priorities, limits.priorities_max),
            (
                ServerLimit::PrioritiesPerAddress,
                limits.priorities_per_caller_max,
            ),
            (ServerLimit::ChildServers, limits.child_servers_max),
            (
                ServerLimit::ChildServersPerAddress,
                limits.child_servers_per_caller_max,
            ),
            (ServerLimit::Curves, limits.curves_max),
            (ServerLimit::CurvesPerAddress, limits.curves_per_caller_max),
            (ServerLimit::CurvePoints, limits.curve_points_max),
            (
                ServerLimit::CurvePointsPerAddress,
                limits.curve_points_per_caller_max,
            ),
        ];
        for (limit, max) in counts {
            self.set_max(limit, number(max));
        }
        if let Some(max) = limits.memory_max {
            self.set_max(ServerLimit::Memory, number(max));
        }
        let rates = [
            (
                ServerLimit::NewResourcesPerAddress,
                limits.new_resources_per_caller,
            ),
            (
                ServerLimit::NewResourcesPerTemplate,
                limits.new_resources_per_template,
            ),
            (
                ServerLimit::NewLeasesPerAddress,
                limits.new_leases_per_caller,
            ),
            (
                ServerLimit::NewLeasesPerTemplate,
                limits.new_leases_per_template,
            ),
            (
                ServerLimit::RequestsPerTemplate,
                limits.requests_per_template,
            ),
        ];
        for (limit, rate) in rates {
            self.set_max(limit, rate.per_second.get().into());
        }
    }

    /// What is in use at a node now. How many come each second, and priorities, nobody counts.
    pub fn set_used_by_node(&self, load: &Load) {
        let used = [
            (ServerLimit::Resources, load.resources),
            (ServerLimit::ResourcesPerAddress, load.resources_per_caller),
            (
                ServerLimit::ResourcesPerTemplate,
                load.resources_per_template,
            ),
            (ServerLimit::Leases, load.leases),
            (ServerLimit::LeasesPerResource, load.leases_per_resource),
            (ServerLimit::LeasesPerAddress, load.leases_per_caller),
            (ServerLimit::LeasesPerTemplate, load.leases_per_template),
            (ServerLimit::Memory, load.memory_bytes),
            (ServerLimit::ChildServers, load.child_servers),
            (
                ServerLimit::ChildServersPerAddress,
                load.child_servers_per_caller,
            ),
            (ServerLimit::Curves, load.curves),
            (ServerLimit::CurvesPerAddress, load.curves_per_caller),
            (ServerLimit::CurvePoints, load.curve_points),
            (
                ServerLimit::CurvePointsPerAddress,
                load.curve_points_per_caller,
            ),
        ];
        for (limit, used) in used {
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
mod tests {
    use super::*;
    use crate::limits::Unit;

    #[test]
    fn every_limit_of_a_node_is_one_of_the_server_with_a_bound() {
        let limits = ServerLimits::default();
        let memory_max = Some(1);
        limits.set_of_node(&NodeLimits {
            memory_max,
            ..NodeLimits::default()
        });
        let mut seen = Vec::new();
        for limit in engine::Limit::ALL {
            let limit = ServerLimit::of(limit);
            assert!(!seen.contains(&limit), "{limit:?} stands for two");
            seen.push(limit);
            let figure = limits.figures()[limit as usize];
            assert!(figure.max.is_some(), "{limit:?}");
        }
    }

    #[test]
    fn what_is_counted_by_a_node_is_shown() {
        let limits = ServerLimits::default();
        limits.set_used_by_node(&Load::default());
        for limit in engine::Limit::ALL.map(ServerLimit::of) {
            let figure = limits.figures()[limit as usize];
            let counted = limit.unit() != Unit::PerSecond
                && !matches!(
                    limit,
                    ServerLimit::Priorities | ServerLimit::PrioritiesPerAddress
                );
            assert_eq!(figure.used.is_some(), counted, "{limit:?}");
        }
    }

    #[test]
    fn what_a_node_refuses_is_counted() {
        let limits = ServerLimits::default();
        let mut before = [0; engine::Limit::ALL.len()];
        before[engine::Limit::Leases as usize] = 7;
        let mut after = before;
        after[engine::Limit::Leases as usize] = 12;
        after[engine::Limit::Memory as usize] = 1;
        limits.refuse_by_node(&before, &after, Duration::ZERO);
        let refused: Vec<_> = limits
            .figures()
            .into_iter()
            .filter(|it| it.refused > 0)
            .collect();
        let counted: Vec<_> = refused.iter().map(|it| (it.limit, it.refused)).collect();
        assert_eq!(
            counted,
            [(ServerLimit::Leases, 5), (ServerLimit::Memory, 1)]
        );
    }
}
