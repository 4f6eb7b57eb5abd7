//! The allowance of a resource at a moment, as a program sees it.

use std::time::Duration;

use crate::capacity::{Capacity, Source};
use crate::slot::View;
use crate::state::LimitedBy;
use crate::time::Time;

/// Capacity of a resource at a moment, with its origin and its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// Amount that may be used.
    pub capacity: Capacity,
    /// Origin: a lease, or the client's mode. By mode there is no lease, or only a lease of 0 from a server in learning
    /// mode.
    pub source: Source,
    /// Remaining time of the lease, if there is one.
    pub remaining: Option<Duration>,
    /// Longest time for which the capacity holds without an answer: until the lease ends, or until a safe capacity
    /// halves. None: it does not end by itself.
    pub changes_in: Option<Duration>,
    /// Amount that may be used after that.
    pub then: Capacity,
    /// Reason why the lease is not larger. None: there is no lease, or an older server granted it.
    pub limited_by: Option<LimitedBy>,
    /// Longest remaining time of learning mode, of the server or of one above it. None: neither is in learning mode, or
    /// the server does not send the time.
    pub learning_for: Option<Duration>,
}

impl Holding {
    pub(crate) fn of(view: &View, now: Time) -> Self {
        let lease = view.lease(now);
        let until = view.allowance.until;
        let has_ended = until.is_some_and(|until| until <= now);
        let learning_until = view.learning_until.filter(|until| *until > now);
        Self {
            capacity: view.allowance.at(now),
            source: if has_ended {
                Source::Mode
            } else {
                view.allowance.source
            },
            remaining: lease.map(|lease| lease.expires_at.since(now)),
            changes_in: until
                .filter(|until| *until > now)
                .map(|until| until.since(now)),
            then: view.allowance.then,
            limited_by: lease.and(view.limited_by),
            learning_for: lease.and(learning_until).map(|until| until.since(now)),
        }
    }

    /// Returns the part whose change a follower of the resource sees. The passing of time is not part of it.
    pub(crate) fn news(&self) -> (Capacity, Source, bool) {
        let is_learning = self.limited_by.is_some_and(LimitedBy::is_learning);
        (self.capacity, self.source, is_learning)
    }
}
