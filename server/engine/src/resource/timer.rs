//! Timers of a resource, for work without a request.

use crate::resource::Resource;
use crate::resource::parent_request::Pace;
use crate::time::Time;

/// Work that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl Timer {
    /// Timers that [`Resource::handle_timeout`] is for, besides the ends of leases and of learning: only below the root.
    const OF_PARENT: [Self; 2] = [Self::OwnLeaseEnd, Self::RefusalEnd];
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

    /// Returns when [`Resource::handle_timeout`] is due, and for which timer. Of equal times, the first of [`Timer`]
    /// counts.
    pub(crate) fn next_timeout(&self, pace: Pace) -> Option<(Time, Timer)> {
        let due = |timer| Some((self.due(timer, pace)?, timer));
        let earlier = |one: Option<(Time, Timer)>, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let own = earlier(due(Timer::LeaseExpiry), due(Timer::LearningEnd));
        if self.upstream.is_none() {
            return own;
        }
        Timer::OF_PARENT.into_iter().map(due).fold(own, earlier)
    }
}
