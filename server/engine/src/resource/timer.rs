//! Timers of a resource, for work without a request.

use crate::resource::Resource;
use crate::resource::parent_request::Pace;
use crate::time::Time;

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// When to look for ended leases of holders. It may be too early, if the next one was renewed meanwhile.
    LeaseExpiry,
    /// When to stop granting, since the own lease from the parent has ended.
    OwnLeaseEnd,
    /// When to drop a refusal of the parent, if the resource has no holders any more.
    RefusalEnd,
    /// When to end learning mode: what predecessors granted is over.
    LearningEnd,
    /// When to ask the parent.
    ParentRequest,
}

impl Resource {
    /// Returns when a timer is due, or nothing if only a change can make it due. `pace` says how soon changes go up.
    pub(crate) fn due(&self, timer: Timer, pace: Pace) -> Option<Time> {
        match timer {
            Timer::LeaseExpiry => self.ledger.table().next_expiry(),
            Timer::OwnLeaseEnd => self.supply.expires_at,
            Timer::RefusalEnd => {
                let upstream = self.upstream.as_ref();
                let upstream = upstream.filter(|_| self.ledger.is_empty());
                upstream.and_then(|upstream| upstream.lease.refused_until())
            }
            Timer::LearningEnd => self.learning.until(),
            Timer::ParentRequest => self.next_request(pace),
        }
    }

    /// Returns when [`Resource::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self, pace: Pace) -> Option<Time> {
        let due = |timer| self.due(timer, pace);
        let own = [Timer::LeaseExpiry, Timer::LearningEnd];
        let below_root = [Timer::OwnLeaseEnd, Timer::RefusalEnd];
        let below_root = below_root.into_iter().filter(|_| self.upstream.is_some());
        own.into_iter().chain(below_root).filter_map(due).min()
    }
}
