//! Limits whose use the node itself counts.

use std::time::Duration;

use doorward_engine::admission::limits::Limits as NodeLimits;
use doorward_engine::admission::{self as engine, Load};

use crate::limits::{ServerLimit, ServerLimits};

/// Number of refusals by each limit of a node.
type Refused = [u64; engine::Limit::ALL.len()];

impl ServerLimit {
    /// Returns the server's limit for a limit of the engine. A caller of the engine is an address.
    pub const fn of(limit: engine::Limit) -> Self {
        match limit {
            engine::Limit::Memory => Self::Memory,
            engine::Limit::MemoryPerCaller => Self::MemoryPerAddress,
            engine::Limit::MemoryPerTemplate => Self::MemoryPerTemplate,
            engine::Limit::NewcomersPerCaller => Self::NewcomersPerAddress,
            engine::Limit::RequestsPerTemplate => Self::RequestsPerTemplate,
            engine::Limit::LeasesPerResource => Self::LeasesPerResource,
            engine::Limit::LeasesPerCaller => Self::LeasesPerAddress,
            engine::Limit::Priorities => Self::Priorities,
        }
    }

    /// Returns whether a node enforces it.
    pub fn is_of_node(self) -> bool {
        engine::Limit::ALL.iter().any(|it| Self::of(*it) == self)
    }
}

impl ServerLimits {
    /// Sets the bounds of a node.
    pub fn set_of_node(&self, limits: &NodeLimits) {
        for limit in engine::Limit::ALL {
            self.of(ServerLimit::of(limit))
                .set_max(limits.max_of(limit));
        }
    }

    /// Sets the use of a node, and the holders of its largest resource. Rates, priorities and clients of an address are not counted.
    pub fn set_used_by_node(&self, load: &Load, leases_per_resource: usize) {
        for (limit, used) in [
            (ServerLimit::Memory, load.memory_bytes),
            (ServerLimit::MemoryPerAddress, load.memory_per_caller),
            (ServerLimit::MemoryPerTemplate, load.memory_per_template),
            (ServerLimit::LeasesPerResource, leases_per_resource),
        ] {
            let used = u64::try_from(used).unwrap_or(u64::MAX);
            self.of(limit).set_used(used);
        }
    }

    /// Counts the refusals of a node at `now` after the start: the difference between two counts.
    pub fn refuse_by_node(&self, before: &Refused, after: &Refused, now: Duration) {
        for ((limit, before), after) in engine::Limit::ALL.iter().zip(before).zip(after) {
            let more = after.saturating_sub(*before);
            self.of(ServerLimit::of(*limit)).refuse_times(more, now);
        }
    }
}

#[cfg(test)]
mod tests;
