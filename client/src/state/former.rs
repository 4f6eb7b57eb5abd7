//! Former leases that have not ended: they may have allowed permits in flight beyond the present lease.
//!
//! It mirrors the server's reserved amount (`docs/algorithms.md`, "What is reserved"). A former lease counts until it
//! ends, and for no more than any later request has reported as `has`. Permits in flight beyond that were admitted by
//! the mode, or under a lease that has ended; no lease covers them.

use crate::state::lease::Lease;
use crate::time::Time;

/// Number of former leases that are kept apart. Of more, the last two count as one, with the larger amount and the
/// later end, as at the server.
const FORMER_MAX: usize = 8;

/// Former leases. There are some only after a shrink, until a request has reported the smaller amount.
#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    /// Ordered from the oldest to the newest.
    leases: Vec<Lease>,
}

impl Former {
    /// Adds a lease that another one of `present` has replaced.
    pub(super) fn push(&mut self, before: Lease, present: f64, now: Time) {
        self.leases.push(before);
        self.retain(present, now);
        while self.leases.len() > FORMER_MAX {
            if let (Some(last), Some(before)) = (self.leases.pop(), self.leases.last_mut()) {
                before.capacity = before.capacity.max(last.capacity);
                before.expires_at = before.expires_at.max(last.expires_at);
            }
        }
    }

    /// Returns the largest amount above `present` that former leases allow, and its end.
    pub(super) fn beyond(&self, present: f64, now: Time) -> Option<Lease> {
        let counts = |lease: &&Lease| lease.expires_at > now && lease.capacity > present;
        let all = self.leases.iter().filter(counts).copied();
        all.reduce(|most, lease| Lease {
            capacity: most.capacity.max(lease.capacity),
            expires_at: most.expires_at.max(lease.expires_at),
            granted_by: lease.granted_by,
        })
    }

    /// Applies a request that reported an amount as `has`.
    pub(super) fn lower(&mut self, reported: f64, present: f64, now: Time) {
        for lease in &mut self.leases {
            lease.capacity = lease.capacity.min(reported);
        }
        self.retain(present, now);
    }

    fn retain(&mut self, present: f64, now: Time) {
        self.leases
            .retain(|lease| lease.expires_at > now && lease.capacity > present);
    }
}
