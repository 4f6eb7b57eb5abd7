//! Hooks for a program's own metrics.

use std::time::Duration;

use crate::capacity::{Capacity, Source};

/// Receiver of the client's events. By default every method does nothing. The client's task and the limiters call them,
/// so a method should count and return.
pub trait Hooks: Send + Sync {
    /// Reports that a master answered a request, or that it failed, after a time.
    fn refreshed(&self, ok: bool, took: Duration) {
        let _ = (ok, took);
    }

    /// Reports that the capacity of a resource has changed.
    fn capacity_changed(&self, resource: &str, capacity: Capacity, source: Source) {
        let _ = (resource, capacity, source);
    }

    /// Reports that a server refused a resource, or that its answer was invalid.
    fn refused(&self, resource: &str, message: &str) {
        let _ = (resource, message);
    }

    /// Reports that the client forgot the master's epoch `forgotten` for the lower one `instead`, because its last
    /// lease ended. The node's masterships have started again: etcd was wiped or restored from a backup.
    fn mastership_forgotten(&self, forgotten: u64, instead: u64) {
        let _ = (forgotten, instead);
    }

    /// Reports that a limiter admitted `cost` of a resource.
    fn admitted(&self, resource: &str, cost: f64) {
        let _ = (resource, cost);
    }

    /// Reports that a limiter made a caller wait, or refused it.
    fn limited(&self, resource: &str) {
        let _ = resource;
    }
}

/// Hooks that do nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
