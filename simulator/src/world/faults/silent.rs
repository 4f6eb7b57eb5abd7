//! Servers that are not heard of in etcd: frozen, or cut off from it. If that lasts for longer than an
//! election, another candidate is the master by then, and they find that when they go on.

use std::sync::Arc;

use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeServers, Span, ToEtcd};
use crate::world::World;
use crate::world::message::ServerId;

/// Of how many a server is, where some are meant.
const SOME: f64 = 0.5;

impl World<'_> {
    /// Who is the master of a place, or has its key in etcd.
    pub(super) fn leader(&self, number: u32) -> Option<ServerId> {
        let place = self.places.get(number as usize)?;
        let elected = || {
            let lease = self.etcd.store.master_lease(number)?;
            let mut all = place.servers.iter();
            all.find(|it| it.candidacy.as_ref().and_then(|it| it.lease) == Some(lease))
        };
        let server = place.master(self.now).or_else(elected)?;
        Some(ServerId {
            place: number,
            term: server.term,
        })
    }

    /// Nothing more is heard of a server in etcd: its lease ends no earlier than then, unless it is renewed.
    pub(super) fn silence(&mut self, id: ServerId, until: Time) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let candidacy = server.and_then(|server| server.candidacy.as_ref());
        if let Some(lease) = candidacy.and_then(|it| it.lease) {
            self.etcd.keep_lease(lease, until);
        }
    }

    /// The master of a place does nothing for some time.
    pub(super) fn freeze(&mut self, number: u32, length: Span) {
        let now = self.now;
        let (least, most) = self.elections.take;
        let until = now + self.fault_rng.duration(length.0, length.1);
        let succession = now + self.fault_rng.duration(least, most);
        let text = format!("{}'s master is frozen", self.name_of(number));
        self.mark(Some(until), MarkKind::Freeze, text);
        let Some(id) = self.leader(number) else {
            return;
        };
        let server = self.place(number).and_then(|place| place.server(id.term));
        let Some(server) = server.filter(|server| !server.is_frozen(now)) else {
            return;
        };
        server.frozen_until = Some(until);
        self.silence(id, succession);
        self.plan(number);
    }

    /// Somebody deletes the key of a place's master in etcd.
    pub(super) fn depose(&mut self, number: u32) {
        let text = format!(
            "somebody deletes the key of {}'s master",
            self.name_of(number)
        );
        self.mark(None, MarkKind::Depose, text);
        if self.etcd.store.delete_master(number, self.now) {
            self.note(6, number.into(), 0.0);
            self.tell_keys(number);
        }
    }

    /// Servers of a place are cut off from etcd for some time.
    pub(super) fn isolate(&mut self, number: u32, whose: NodeServers, way: ToEtcd, length: Span) {
        let now = self.now;
        let (least, most) = self.elections.take;
        let until = now + self.fault_rng.duration(length.0, length.1);
        let succession = now + self.fault_rng.duration(least, most);
        let name = self.name_of(number);
        let text = match (whose, way) {
            (NodeServers::Master, ToEtcd::Both) => {
                format!("{name}'s master is cut off from the election")
            }
            (whose, way) => format!(
                "{} of {name} are cut off from etcd{}",
                whose.text(),
                way.text()
            ),
        };
        self.mark(Some(until), MarkKind::Isolate, text);
        let has_election = self.place(number).is_some_and(|it| it.slots.len() > 1);
        if !has_election {
            return;
        }
        let leader = self.leader(number);
        let slot_of = |server: &crate::world::place::ServerProcess| server.slot;
        let leading =
            leader.and_then(|id| self.place(number)?.server(id.term).map(|it| slot_of(it)));
        let slots = self.place(number).map_or(0, |place| place.slots.len()) as u32;
        for slot in 0..slots {
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
        // Only what every isolation was until there were others is as long as an election.
        if let (Some(id), NodeServers::Master, ToEtcd::Both) = (leader, whose, way) {
            self.silence(id, succession);
        }
        self.plan(number);
    }

    /// The server of a slot is cut off from etcd until then.
    pub(super) fn cut_off(&mut self, number: u32, slot: u32, way: ToEtcd, until: Time) {
        let Some(place) = self.place(number) else {
            return;
        };
        if let Some(slot) = place.slots.get_mut(slot as usize) {
            if matches!(way, ToEtcd::Both | ToEtcd::There) {
                slot.way.there_cut_until = slot.way.there_cut_until.max(until);
            }
            if matches!(way, ToEtcd::Both | ToEtcd::Back) {
                slot.way.back_cut_until = slot.way.back_cut_until.max(until);
            }
        }
        let runs = place.servers.iter().find(|it| it.slot == slot);
        let id = runs.map(|server| ServerId {
            place: number,
            term: server.term,
        });
        if let Some(id) = id {
            self.notice_cut(id, until);
        }
    }

    /// A server goes on where it stopped, with what came meanwhile: from whom it hears first, nobody can say.
    pub(in crate::world) fn thaw(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let (parents, at) = (Arc::clone(&place.parents), place.clock.shows(now));
        let Some(server) = place.server(id.term) else {
            return;
        };
        server.frozen_until = None;
        // Where its parent is by now, it reads now.
        let session = &mut server.parent_link.session;
        session.handle_addresses(parents, None, 0.0, at);
        let is_master = server.leads;
        let letters = std::mem::take(&mut server.letters);
        let inbox = std::mem::take(&mut server.inbox);
        let unread = server.unread.take();
        let is_to_resign = std::mem::take(&mut server.is_to_resign);
        if is_master {
            place.up_since = now;
        }
        let mut messages = Some(inbox);
        if self.etcd.uniform() < SOME {
            for message in messages.take().unwrap_or_default() {
                self.arrive(message);
            }
        }
        for letter in letters {
            self.read_letter(letter);
        }
        self.tend_candidate(id);
        for message in messages.unwrap_or_default() {
            self.arrive(message);
        }
        if let Some(templates) = unread {
            self.read_templates(id, templates);
        }
        if is_to_resign {
            self.resign(id);
        }
        self.after(id);
    }

    /// The root goes by what was written while it did nothing.
    fn read_templates(&mut self, id: ServerId, templates: doorward_engine::template::Templates) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let former = server.templates.clone();
        let is_master = server.node.mastership(local).is_master();
        if is_master && server.candidacy.is_none() {
            self.note_granted_by(&former, local);
        }
        self.offer_templates(id, templates);
    }
}
