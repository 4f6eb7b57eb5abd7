//! A client's resources in the order of their next events, so that a pass costs as much as it changes.
//!
//! A resource is due at a time that depends on the client's last request too: see [`Kind::due`]. Among resources of one
//! kind, the one with the earliest refresh is due first. So the next request needs only the first of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::state::ClientConfig;
use crate::time::Time;

/// Rule for the time of the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// No request was answered yet.
    New,
    /// The server knows the wants, or refused and sent a time.
    Refresh,
    /// The wants have changed; `is_told`: the server sends `decided`.
    News { is_told: bool },
    /// The wants have changed, and the server considers them at the refresh.
    Held { is_told: bool },
}

impl Kind {
    /// Kinds that go along with any request.
    const AT_ONCE: [Self; 3] = [
        Self::New,
        Self::News { is_told: true },
        Self::News { is_told: false },
    ];

    /// Returns whether it goes along with any request, however early.
    pub(super) fn goes_along(self) -> bool {
        Self::AT_ONCE.contains(&self)
    }

    /// Returns the time of the next request: at the refresh, or earlier because of news. `last_sent` is the time of the
    /// client's last request.
    pub(super) fn due(
        self,
        refresh_at: Time,
        last_sent: Option<Time>,
        config: &ClientConfig,
    ) -> Time {
        // A client with many resources does not ask more often for that reason.
        let since_sent = |gap: Duration| last_sent.map_or(Time::ZERO, |sent| sent + gap);
        let gap = |is_told| match is_told {
            true => since_sent(config.news_gap),
            false => since_sent(config.early_gap),
        };
        let after_floor = refresh_at.max(since_sent(config.refresh_floor()));
        match self {
            Self::New => refresh_at,
            Self::Refresh => after_floor,
            Self::News { is_told } => after_floor.min(gap(is_told)),
            Self::Held { is_told } => after_floor.max(gap(is_told)),
        }
    }
}

/// A resource's place in the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) refresh_at: Time,
    /// Time from which it goes along with a request for others.
    pub(super) along_at: Time,
    /// Time of the next change of its view. Zero: it has changed. None: it does not change by itself.
    pub(super) changes_at: Option<Time>,
}

type Order = BTreeSet<(Time, Arc<str>)>;

/// Resources in the order of their plans.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    by_refresh: BTreeMap<Kind, Order>,
    by_along: Order,
    by_change: Order,
}

impl Agenda {
    /// Replaces the plan of a resource, or removes it.
    pub(super) fn replan(&mut self, id: &Arc<str>, before: Option<Plan>, plan: Option<Plan>) {
        let key = |at| (at, Arc::clone(id));
        if let Some(before) = before {
            if let Some(order) = self.by_refresh.get_mut(&before.kind) {
                order.remove(&key(before.refresh_at));
            }
            self.by_along.remove(&key(before.along_at));
            before.changes_at.map(|at| self.by_change.remove(&key(at)));
        }
        if let Some(plan) = plan {
            let order = self.by_refresh.entry(plan.kind).or_default();
            order.insert(key(plan.refresh_at));
            self.by_along.insert(key(plan.along_at));
            plan.changes_at.map(|at| self.by_change.insert(key(at)));
        }
    }

    /// Returns the earliest time at which a resource is due.
    pub(super) fn due(&self, last_sent: Option<Time>, config: &ClientConfig) -> Option<Time> {
        let first = |(kind, order): (&Kind, &Order)| {
            let (refresh_at, _) = order.first()?;
            Some(kind.due(*refresh_at, last_sent, config))
        };
        self.by_refresh.iter().filter_map(first).min()
    }

    /// Returns the resources that go along with a request at a time, refreshes first. A resource may come twice.
    pub(super) fn along(&self, now: Time) -> impl Iterator<Item = &Arc<str>> {
        let news = Kind::AT_ONCE
            .iter()
            .filter_map(|it| self.by_refresh.get(it));
        let news = news.flatten().map(|(_, id)| id);
        until(&self.by_along, now).chain(news)
    }

    /// Returns the resources whose views have changed by a time.
    pub(super) fn changed(&self, now: Time) -> impl Iterator<Item = &Arc<str>> {
        until(&self.by_change, now)
    }

    /// Returns the resources whose views change later, with the times, in order.
    pub(super) fn changing(&self, now: Time) -> impl DoubleEndedIterator<Item = &(Time, Arc<str>)> {
        let after = Time::from_nanos(now.as_nanos().saturating_add(1));
        self.by_change.range((after, Arc::default())..)
    }
}

fn until(order: &Order, now: Time) -> impl Iterator<Item = &Arc<str>> {
    let until = order.iter().take_while(move |(at, _)| *at <= now);
    until.map(|(_, id)| id)
}
