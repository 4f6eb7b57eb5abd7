//! The limits of a node by name, and the refusal when one is reached.

use std::fmt;
use std::time::Duration;

/// A limit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Bytes of memory in all.
    Memory,
    /// Bytes of memory that one caller brought.
    MemoryPerCaller,
    /// Bytes of memory of one template.
    MemoryPerTemplate,
    /// New resources and leases each second from one caller.
    NewcomersPerCaller,
    /// Requests each second for resources of one template.
    RequestsPerTemplate,
    /// Holders of one resource.
    LeasesPerResource,
    /// Priorities of one resource that its template does not name.
    Priorities,
}

impl Limit {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::MemoryPerCaller,
        Self::MemoryPerTemplate,
        Self::NewcomersPerCaller,
        Self::RequestsPerTemplate,
        Self::LeasesPerResource,
        Self::Priorities,
    ];
}

/// A limit is reached: no holder loses anything, and newcomers come back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The limit.
    pub limit: Limit,
    /// Its bound.
    pub max: u64,
    /// When to come back, from now.
    pub retry_in: Duration,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a limit of {} is reached", self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_place() {
        for (position, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, position);
        }
    }
}
