//! Leases of before that have not ended: permits may be out that they allowed, beyond the present lease.
//!
//! It mirrors what the server reserves for the client (`docs/algorithms.md`, "What is reserved"): a lease counts
//! until it ends, and is worth no more than what any request since has said that the client has. What is in
//! flight beyond that was admitted by the mode, or under a lease that is over, and is nobody's promise.

use crate::state::lease::Lease;
use crate::time::Time;

/// Former leases that are kept apart. Of more, the last two count as one that is as large as the larger and as
/// long as the longer, as at the server.
const FORMER_MAX: usize = 8;

/// Almost always empty: there are some only after a shrink, until a request said that the client has shrunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Former {
    /// From the oldest to the newest.
    leases: Vec<Lease>,
}

impl Former {
    /// Another lease of so much takes the place of this one.
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

    /// The most that they allow beyond so much, and how long anything of that does.
    pub(super) fn beyond(&self, present: f64, now: Time) -> Option<Lease> {
        let counts = |lease: &&Lease| lease.expires_at > now && lease.capacity > present;
        let all = self.leases.iter().filter(counts).copied();
        all.reduce(|most, lease| Lease {
            capacity: most.capacity.max(lease.capacity),
            expires_at: most.expires_at.max(lease.expires_at),
            granted_by: lease.granted_by,
        })
    }

    /// A request says that the client has so much.
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
