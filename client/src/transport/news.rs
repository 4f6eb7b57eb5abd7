//! Changes by a server's answer for resources without a lease.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::state::{ResourceState, Trouble};
use crate::time::Time;
use crate::transport::book::Book;

/// Resources without a lease, of those that a request asked for.
pub(super) struct News<'a> {
    pub(super) troubles: BTreeMap<&'a str, Trouble>,
    /// Resources whose server is in learning mode, each with the longest remaining time of that.
    pub(super) idle: BTreeMap<&'a str, Option<Duration>>,
}

impl<'a> News<'a> {
    pub(super) fn of(book: &Book, asked: &'a [String], now: Time) -> Self {
        let open = asked
            .iter()
            .filter_map(|id| Some((id.as_str(), book.state.resource(id)?)));
        let trouble = |(id, state): (_, &ResourceState)| Some((id, state.trouble()?.clone()));
        let idle = |(id, state): (_, &ResourceState)| {
            let is_idle = state.lease(now)?.capacity <= 0.0;
            let is_learning = state.limited_by(now)?.is_learning();
            let left = state.learning_until(now).map(|until| until.since(now));
            (is_idle && is_learning).then_some((id, left))
        };
        Self {
            troubles: open.clone().filter_map(trouble).collect(),
            idle: open.filter_map(idle).collect(),
        }
    }
}
