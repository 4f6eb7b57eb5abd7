//! Where a program's own metrics hook in.

use std::time::Duration;

use crate::capacity::{Capacity, Source};

/// Called by the client as things happen. Every method does nothing unless you say otherwise. They
/// are called from the client's task and from limiters: count, and return.
pub trait Hooks: Send + Sync {
    /// A request was answered by a master, or failed, after that long.
    fn refreshed(&self, ok: bool, took: Duration) {
        let _ = (ok, took);
    }

    /// What may be used of a resource has changed.
    fn capacity_changed(&self, resource: &str, capacity: Capacity, source: Source) {
        let _ = (resource, capacity, source);
    }

    /// A resource was refused, or its answer made no sense.
    fn refused(&self, resource: &str, message: &str) {
        let _ = (resource, message);
    }

    /// The master's epoch was `forgotten` for the lower one `instead`, since the last lease is over:
    /// the node's masterships have begun again, because etcd was wiped or restored from a backup.
    fn mastership_forgotten(&self, forgotten: u64, instead: u64) {
        let _ = (forgotten, instead);
    }

    /// A limiter admitted `cost` of a resource.
    fn admitted(&self, resource: &str, cost: f64) {
        let _ = (resource, cost);
    }

    /// A limiter made somebody wait, or refused.
    fn limited(&self, resource: &str) {
        let _ = resource;
    }
}

/// Hooks that do nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
