//! Leases that a client gives back: in one message at a time, and never beside a request. A server that got the request
//! after the release would take it for a new one. A release is not repeated, because the lease ends anyway.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::state::ClientState;
use crate::time::Time;

/// Number of ids in one release, so that the message fits a server's limit for any ids.
const RELEASED_MAX: usize = 800;

/// A release of leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its number among the client's requests.
    pub sequence: u64,
    /// Ids of the resources.
    pub resources: Vec<Arc<str>>,
}

/// Releases that are due, and the one under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    due: BTreeSet<Arc<str>>,
    under_way: Option<u64>,
}

impl Releases {
    pub(super) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(super) const fn are_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Keeps the lease of a resource that opens again.
    pub(super) fn forget(&mut self, resource: &str) {
        self.due.remove(resource);
    }
}

impl ClientState {
    /// Closes a resource. Its lease is released, if it may have one.
    pub fn close(&mut self, resource: &str, now: Time) {
        let Some((id, gone)) = self.resources.remove_entry(resource) else {
            return;
        };
        gone.forget(&mut self.agenda);
        // A request under way may still bring a lease that the client will not use.
        let under_way = self.under_way.as_mut();
        let is_asked = under_way.is_some_and(|it| it.wanted.remove(resource).is_some());
        if is_asked || gone.lease(now).is_some() {
            self.releases.due.insert(id);
        }
    }

    /// Closes all resources, because the program ends. Leases of which some is in use stay until they end, because the
    /// work goes on under them. A resource without a lease is not released: a server that has never heard of this process
    /// would release the lease of another process of this id.
    pub fn close_all(&mut self, in_flight: impl Fn(&str) -> f64, now: Time) {
        for (id, state) in std::mem::take(&mut self.resources) {
            state.forget(&mut self.agenda);
            if state.lease(now).is_some() && in_flight(&id) <= 0.0 {
                self.releases.due.insert(id);
            }
        }
    }

    /// Releases a resource although it is open again: its last word names a former account of a budget.
    pub fn release_former(&mut self, resource: &str) {
        self.releases.due.insert(resource.into());
    }

    /// Creates the release to send now.
    pub fn release(&mut self) -> Release {
        let sequence = self.next_sequence();
        self.releases.under_way = Some(sequence);
        let due = std::iter::from_fn(|| self.releases.due.pop_first());
        Release {
            sequence,
            resources: due.take(RELEASED_MAX).collect(),
        }
    }

    /// Handles the answer to the release of that number, or its failure. Returns whether it was under way.
    pub fn handle_released(&mut self, sequence: u64) -> bool {
        let under_way = &mut self.releases.under_way;
        under_way.take_if(|it| *it == sequence).is_some()
    }
}
