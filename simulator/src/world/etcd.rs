//! Small model of etcd, and of the servers' connections to it. Requests may be late or lost, and so
//! may the answers to requests that were executed. Watches deliver keys in order. A server reads
//! its keys again when a watch broke, when its next events were compacted, or when etcd was set up
//! again.
//!
//! A lease ends no earlier than its TTL after the last renewal that arrived. It may end later by a
//! random time, up to the spread of election times in the scenario; this makes elections long or
//! short.

mod calls;
pub(crate) mod store;
mod watches;

use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::LeaseId;

use crate::chance::Chance;
use crate::scenario::{Event, Scenario, Span};
use crate::world::etcd::store::EtcdStore;
pub(crate) use crate::world::etcd::watches::KeyWatch;
use crate::world::{Deed, ServerId, World};

/// Time of a message to or from etcd, which is near.
const TAKES: Span = Span(Duration::from_micros(200), Duration::from_millis(2));

/// Model of etcd.
#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) store: EtcdStore,
    /// Random stream of etcd alone.
    pub(crate) chance: Chance,
    /// True before the run begins: nothing takes time, so that every node elects a master.
    pub(crate) is_quick: bool,
}

/// Connection of one server to etcd and back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EtcdConnection {
    /// End of the time in which requests are lost.
    pub(crate) there_cut_until: Time,
    /// End of the time in which answers are lost.
    pub(crate) back_cut_until: Time,
    /// End of the time in which calls are lost with probability `loss`, in one direction or the
    /// other, and others are late.
    pub(crate) bad_until: Time,
    pub(crate) loss: f64,
    pub(crate) late: Span,
}

impl EtcdConnection {
    /// Returns the time until which either direction is cut.
    pub(crate) fn cut_until(&self) -> Time {
        self.there_cut_until.max(self.back_cut_until)
    }
}

impl Etcd {
    /// Creates an empty etcd for that many nodes.
    pub(crate) fn new(scenario: &Scenario, chance: Chance) -> Self {
        let mut events = scenario.events();
        let is_restored = events.any(|it| matches!(it, Event::Etcd { back: Some(_), .. }));
        Self {
            store: EtcdStore::new(scenario.nodes.len(), is_restored),
            chance,
            is_quick: false,
        }
    }

    /// Returns a random time within a span.
    pub(crate) fn some_time(&mut self, span: Span) -> Duration {
        match self.is_quick {
            true => Duration::ZERO,
            false => self.chance.duration(span.0, span.1),
        }
    }

    /// Returns the delay of a message.
    fn takes(&mut self, way: &EtcdConnection, now: Time) -> Duration {
        let takes = self.some_time(TAKES);
        match now < way.bad_until {
            true => takes + self.some_time(way.late),
            false => takes,
        }
    }

    /// Returns whether a message is lost.
    fn loses(&mut self, way: &EtcdConnection, cut_until: Time, now: Time) -> bool {
        now < cut_until || now < way.bad_until && self.chance.happens(way.loss)
    }
}

impl World<'_> {
    /// Sends a message to a server, which handles it when it is not frozen.
    pub(super) fn send_news(&mut self, at: Time, to: ServerId, handle: impl Deed) {
        self.act(at, move |world| world.handle_news(to, handle));
    }

    pub(super) fn handle_news(&mut self, to: ServerId, handle: impl Deed) {
        let now = self.now;
        let Some(server) = self.server_of(to) else {
            return;
        };
        if server.is_frozen(now) {
            return server.backlog.news.push(Box::new(handle));
        }
        handle(self);
    }

    /// Schedules a check of a lease's end.
    fn schedule_lease_check(&mut self, lease: LeaseId, at: Time) {
        self.act(at, move |world| world.check_lease(lease));
    }

    /// Ends a lease unless it was renewed.
    pub(super) fn check_lease(&mut self, lease: LeaseId) {
        let now = self.now;
        let Some(stored) = self.etcd.store.lease(lease).copied() else {
            return;
        };
        if stored.ends > now {
            return self.schedule_lease_check(lease, stored.ends);
        }
        let Span(least, most) = self.elections;
        let later = Span(Duration::ZERO, most.saturating_sub(least));
        let until = stored.lasts_until;
        let until = until.unwrap_or_else(|| now + self.etcd.some_time(later));
        self.etcd.store.keep(lease, until);
        if until > now {
            return self.schedule_lease_check(lease, until);
        }
        self.end_lease(lease);
    }

    /// Ends a lease now.
    pub(super) fn end_lease(&mut self, lease: LeaseId) {
        let node = self.etcd.store.lease(lease).map(|it| it.node);
        self.etcd.store.end(lease, self.now);
        if let Some(node) = node.filter(|_| self.etcd.store.take_change()) {
            self.send_keys(node);
        }
    }

    /// Loses what was written to etcd since `then`; `None` loses everything.
    pub(super) fn restore_etcd(&mut self, then: Option<Time>) {
        self.etcd.store.restore(then, self.now);
        for (lease, ends) in self.etcd.store.leases() {
            self.schedule_lease_check(lease, ends);
        }
        self.break_watches();
    }
}
