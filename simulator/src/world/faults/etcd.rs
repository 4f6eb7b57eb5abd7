//! Faults of etcd: it is wiped, restored from a backup, or answers badly. Also a stop of all
//! servers of a node, after which no process remembers the keys.
//!
//! And servers without contact to etcd: frozen ones, and ones cut off from it. If that lasts longer
//! than an election, another candidate is master by then, and they learn it when they continue.

use std::sync::Arc;

use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeChoice, NodeServers, Span, ToEtcd};
use crate::world::{ServerId, World};

/// Probability that a server is affected where a fault means some of them.
const SOME: f64 = 0.5;

impl World<'_> {
    /// Returns the master of a node, or the server that holds its key in etcd.
    pub(super) fn leader(&self, number: u32) -> Option<ServerId> {
        let place = &self.places[number];
        let elected = || {
            let lease = self.etcd.store.master_lease(number)?;
            let mut all = place.servers.iter();
            all.find(|it| it.candidacy.as_ref().and_then(|it| it.lease) == Some(lease))
        };
        let server = place.master(self.now).or_else(elected)?;
        Some(server.id)
    }

    /// Notes that etcd no longer hears from a server: its lease ends no earlier than `until`,
    /// unless it is renewed.
    pub(super) fn keep_lease_of(&mut self, id: ServerId, until: Time) {
        let server = self.server_of(id);
        if let Some(lease) = server.and_then(|it| it.candidacy.as_ref()?.lease) {
            self.etcd.store.keep(lease, until);
        }
    }

    /// Freezes the master of a node for some time.
    pub(super) fn freeze(&mut self, node: &NodeChoice, length: Span) {
        let now = self.now;
        let text = |name: &str| format!("{name}'s master is frozen");
        let (number, until) = self.begin_at(node, length, MarkKind::Freeze, text);
        let succession = self.end_of(self.elections);
        let server = self.leader(number).and_then(|id| self.server_of(id));
        let Some(server) = server.filter(|server| !server.is_frozen(now)) else {
            return;
        };
        let id = server.id;
        server.frozen_until = Some(until);
        self.keep_lease_of(id, succession);
        self.plan(number);
    }

    /// Deletes the key of a node's master in etcd, as an operator can.
    pub(super) fn depose(&mut self, node: &NodeChoice) {
        let number = self.choose(node);
        let name = &self.places[number].name;
        let text = format!("the key of {name}'s master is deleted from etcd");
        self.mark(None, MarkKind::Depose, text);
        if self.etcd.store.delete_master(number, self.now) {
            self.note(6, number.into(), 0.0);
            self.send_keys(number);
        }
    }

    /// Cuts servers of a node off from etcd for some time.
    pub(super) fn isolate(&mut self, at: &NodeChoice, of: NodeServers, way: ToEtcd, length: Span) {
        let servers = match of {
            NodeServers::Master => "the master",
            NodeServers::Others => "the other candidates",
            NodeServers::Some => "some servers",
            NodeServers::All => "all servers",
        };
        let lost = match way {
            ToEtcd::Both => "",
            ToEtcd::There => ": requests are lost",
            ToEtcd::Back => ": answers are lost",
        };
        let text = |name: &str| format!("etcd is cut off from {servers} of {name}{lost}");
        let (number, until) = self.begin_at(at, length, MarkKind::Isolate, text);
        let succession = self.end_of(self.elections);
        if self.places[number].slots.len() == 1 {
            return;
        }
        let leader = self.leader(number);
        let leading = leader.and_then(|id| Some(self.server_of(id)?.slot));
        for slot in self.places[number].slots.numbers() {
            let is_meant = match of {
                NodeServers::Master => leading == Some(slot),
                NodeServers::Others => leading != Some(slot),
                NodeServers::Some => self.fault_rng.happens(SOME),
                NodeServers::All => true,
            };
            if is_meant {
                self.cut_off(number, slot, way, until);
            }
        }
        // Only this kind of isolation lasts as long as an election; older scenarios depend on it.
        if let (Some(id), NodeServers::Master, ToEtcd::Both) = (leader, of, way) {
            self.keep_lease_of(id, succession);
        }
        self.plan(number);
    }

    /// Cuts the server of a slot off from etcd until then.
    pub(super) fn cut_off(&mut self, number: u32, slot: u32, way: ToEtcd, until: Time) {
        let place = &mut self.places[number];
        let connection = &mut place.slots[slot].way;
        if matches!(way, ToEtcd::Both | ToEtcd::There) {
            connection.there_cut_until = connection.there_cut_until.max(until);
        }
        if matches!(way, ToEtcd::Both | ToEtcd::Back) {
            connection.back_cut_until = connection.back_cut_until.max(until);
        }
        let runs = place.servers.iter().find(|it| it.slot == slot);
        if let Some(id) = runs.map(|server| server.id) {
            self.notice_cut(id, until);
        }
    }

    /// Lets a frozen server continue. It handles the messages of the meantime, and first or last, at
    /// random, what came from etcd and the operator.
    pub(crate) fn unfreeze(&mut self, id: ServerId) {
        let now = self.now;
        let place = &mut self.places[id.place];
        let (parents, at) = (Arc::clone(&place.parents), place.clock.shows(now));
        let Some(server) = place.server(id.term) else {
            return;
        };
        server.frozen_until = None;
        // It reads the present addresses of its parent.
        server.replica.handle_parent_addresses(parents, None, at);
        let is_master = server.leads;
        let backlog = std::mem::take(&mut server.backlog);
        if is_master {
            place.up_since = now;
        }
        let (mut first, mut last) = (backlog.messages, Vec::new());
        if !self.etcd.chance.happens(SOME) {
            std::mem::swap(&mut first, &mut last);
        }
        first.into_iter().for_each(|arrive| arrive(self));
        for news in backlog.news {
            self.handle_news(id, news);
        }
        self.drive(id);
        last.into_iter().for_each(|arrive| arrive(self));
        self.drive(id);
    }

    /// Stops all servers of a node, and starts them again later.
    pub(super) fn stop(&mut self, node: &NodeChoice, length: Span) {
        let text = |name: &str| format!("all servers of {name} stop");
        let (number, until) = self.begin_at(node, length, MarkKind::Kill, text);
        self.note(5, number.into(), 0.0);
        for slot in self.places[number].slots.numbers() {
            self.take_down(number, slot, until);
        }
    }

    /// Loses what was written to etcd since a time. Candidates that run remember it. With `length`,
    /// etcd is out of reach before that.
    pub(super) fn lose_etcd(&mut self, back: Option<Span>, length: Option<Span>) {
        let (then, text) = match back {
            None => (None, "etcd is wiped".to_owned()),
            Some(Span(least, most)) => {
                let back = self.fault_rng.duration(least, most);
                let then = self.now.since(Time::ZERO).saturating_sub(back);
                let text = format!("etcd is restored to its state {back:?} ago");
                (Some(Time::ZERO + then), text)
            }
        };
        let until = self.end_if_any(length);
        self.mark(until, MarkKind::Election, text);
        let Some(until) = until else {
            return self.restore_etcd(then);
        };
        for number in self.places.numbers() {
            for slot in self.places[number].slots.numbers() {
                self.cut_off(number, slot, ToEtcd::Both, until);
            }
        }
        self.act(until, move |world| world.restore_etcd(then));
    }

    /// Loses a part of a node's calls to etcd, and delays the others.
    pub(super) fn degrade_etcd(&mut self, node: &NodeChoice, loss: f64, late: Span, length: Span) {
        let most = late.1;
        let lost = format!("loses {loss} of its calls to etcd; others are up to {most:?} late");
        let text = |name: &str| format!("{name} {lost}");
        let (number, until) = self.begin_at(node, length, MarkKind::Isolate, text);
        for slot in self.places[number].slots.iter_mut() {
            (slot.way.bad_until, slot.way.loss, slot.way.late) = (until, loss, late);
        }
    }

    /// Ends all faults of etcd, and the leases of servers that are gone. A lease span of
    /// theirs ends by itself.
    pub(super) fn heal_etcd(&mut self) {
        let mut held = Vec::new();
        let ttl = self.ttl();
        for id in self.candidates() {
            self.notice_cut(id, self.now);
            let server = self.server_of(id);
            held.extend(server.and_then(|it| it.candidacy.as_ref()?.lease));
        }
        for (lease, _) in self.etcd.store.leases() {
            let is_span = self.etcd.store.lease(lease).is_some_and(|it| it.ttl > ttl);
            if !held.contains(&lease) && !is_span {
                self.end_lease(lease);
            }
        }
    }
}
