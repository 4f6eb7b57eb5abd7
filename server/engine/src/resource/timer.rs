//! What a resource has to do without a request, and when.

use crate::resource::Resource;
use crate::resource::parent_request::Pace;
use crate::time::Time;

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// When to look for leases of holders that have ended. It may be too early, if the next one to end was
    /// renewed meanwhile.
    LeaseExpiry,
    /// When to hand out nothing any more, since our own lease of the parent has ended.
    OwnLeaseEnd,
    /// When to forget that the parent refused the resource, which has no holders any more.
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
    /// When a timer is due. None: not as long as nothing changes. `pace` is how soon what changed goes up.
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

    /// When [`Resource::handle_timeout`] is due, and for what. Of what is due at once, the first one of [`Timer`] counts.
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
