//! Hooks for a program's own metrics.

use std::time::Duration;

use crate::capacity::{Capacity, Source};

/// Receiver of the client's events. By default every method does nothing. The client's task and the limiters call them,
/// so a method should count and return.
pub trait Hooks: Send + Sync {
    /// Reports that a master answered a request, or that it failed, after a time.
    fn refreshed(&self, _ok: bool, _took: Duration) {}

    /// Reports that the capacity of a resource has changed.
    fn capacity_changed(&self, _resource: &str, _capacity: Capacity, _source: Source) {}

    /// Reports that a server refused a resource, or that its answer was invalid.
    fn refused(&self, _resource: &str, _message: &str) {}

    /// Reports that the client forgot the master's epoch `forgotten` for the lower one `instead`, because its last
    /// lease ended. The node's masterships have started again: etcd was wiped or restored from a backup.
    fn mastership_forgotten(&self, _forgotten: u64, _instead: u64) {}

    /// Reports that a limiter admitted `cost` of a resource.
    fn admitted(&self, _resource: &str, _cost: f64) {}

    /// Reports that a limiter made a caller wait, or refused it.
    fn limited(&self, _resource: &str) {}

    /// Reports that a budget refused a call although more of it may be there: no server said that nothing is left.
    fn refused_early(&self, _resource: &str) {}
}

/// Hooks that do nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
