//! What may be used of a resource at a moment, as a program sees it.

use std::time::Duration;

use crate::capacity::{Capacity, Source};
use crate::slot::View;
use crate::state::LimitedBy;
use crate::time::Time;

/// What may be used of a resource at a moment, where that comes from, and why it is no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// How much may be used.
    pub capacity: Capacity,
    /// By a lease; or by the client's mode, because there is none but perhaps one of 0 by a server in
    /// learning mode.
    pub source: Source,
    /// How long the lease still lasts, if there is one.
    pub remaining: Option<Duration>,
    /// How long this holds at most if nothing more is heard: until the lease ends, or a safe capacity is
    /// halved. None: it does not end by itself.
    pub changes_in: Option<Duration>,
    /// How much may be used from then on.
    pub then: Capacity,
    /// Why the lease is no larger. None: there is none, or an older server does not say.
    pub limited_by: Option<LimitedBy>,
    /// How much longer learning mode lasts at most, of the server or of one above it. None: nobody
    /// learns, or the server does not say.
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

    /// What is news to who follows a resource: not that time goes by.
    pub(crate) fn news(&self) -> (Capacity, Source, bool) {
        let is_learning = self.limited_by.is_some_and(LimitedBy::is_learning);
        (self.capacity, self.source, is_learning)
    }
}
