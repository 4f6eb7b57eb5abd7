//! Servers without contact to etcd: frozen ones, and ones cut off from it. If that lasts longer
//! than an election, another candidate is master by then, and they learn it when they continue.

use std::sync::Arc;

use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeChoice, NodeServers, Span, ToEtcd};
use crate::world::World;
use crate::world::message::ServerId;

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
    pub(super) fn isolate(
        &mut self,
        node: &NodeChoice,
        whose: NodeServers,
        way: ToEtcd,
        length: Span,
    ) {
        let servers = match whose {
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
        let (number, until) = self.begin_at(node, length, MarkKind::Isolate, text);
        let succession = self.end_of(self.elections);
        if self.places[number].slots.len() == 1 {
            return;
        }
        let leader = self.leader(number);
        let leading = leader.and_then(|id| Some(self.server_of(id)?.slot));
        for slot in self.places[number].slots.numbers() {
            let is_meant = match whose {
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
        if let (Some(id), NodeServers::Master, ToEtcd::Both) = (leader, whose, way) {
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
        let mut messages = Some(backlog.messages);
        if self.etcd.chance.happens(SOME) {
            for arrive in messages.take().unwrap_or_default() {
                arrive(self);
            }
        }
        for news in backlog.news {
            self.handle_news(id, news);
        }
        self.drive(id);
        for arrive in messages.unwrap_or_default() {
            arrive(self);
        }
        self.drive(id);
    }
}
