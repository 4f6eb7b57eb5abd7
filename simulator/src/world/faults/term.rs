//! Terms that end: of masters that are frozen, or cut off from the election, and succeeded perhaps.
//!
//! A master is confirmed all the time, unless one of these keeps it from that. Then it is the master
//! for nine tenths of the shortest election more, by its own clock; a successor comes after the
//! whole of it at the earliest (decision 6).

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::time::Time;

use crate::scenario::fault::Span;
use crate::world::World;
use crate::world::faults::Ending;
use crate::world::message::ServerId;
use crate::world::place::Server;

/// The part of the shortest election after which a master that is not confirmed is none any more.
const TERM: f64 = 0.9;

impl World<'_> {
    /// The master of a place does nothing for some time.
    pub(super) fn freeze(&mut self, number: u32, length: Span) {
        let now = self.now;
        let until = now + self.mishaps.duration(length.0, length.1);
        let text = format!("{}'s master is frozen", self.name_of(number));
        self.mark(Some(until), "freeze", text);
        let master = self.place(number).and_then(|place| place.master.as_mut());
        let Some(server) = master.filter(|server| !server.is_frozen(now)) else {
            return;
        };
        server.frozen_until = Some(until);
        self.stop_confirming(number);
        self.plan(number);
    }

    /// The master of a place is cut off from the election for some time.
    pub(super) fn isolate(&mut self, number: u32, length: Span) {
        let now = self.now;
        let until = now + self.mishaps.duration(length.0, length.1);
        let text = format!(
            "{}'s master is cut off from the election",
            self.name_of(number)
        );
        self.mark(Some(until), "isolate", text);
        let Some(place) = self.place(number).filter(|place| place.candidates > 1) else {
            return;
        };
        let Some(server) = &mut place.master else {
            return;
        };
        let before = server.isolated_until.unwrap_or(until);
        server.isolated_until = Some(before.max(until));
        self.stop_confirming(number);
        self.plan(number);
    }

    /// From now on nobody confirms that the master of a place is the master, if there is an election.
    pub(super) fn stop_confirming(&mut self, number: u32) {
        let now = self.now;
        let (least, most) = self.elections.take;
        let succession = now + self.mishaps.duration(least, most);
        let Some(place) = self.place(number).filter(|place| place.candidates > 1) else {
            return;
        };
        let clock = place.clock;
        let Some(server) = &mut place.master else {
            return;
        };
        if server.term_ends.is_some() {
            // Nor did anybody before.
            return;
        }
        let ends = clock.shows(now + least.mul_f64(TERM));
        let (term, epoch) = (server.term, server.epoch.unwrap_or_default());
        server.term_ends = Some(ends);
        let confirmed = Term {
            epoch,
            vacant_since: clock.shows(now),
            longer_leases: Duration::ZERO,
            valid_until: ends,
        };
        server.node.handle_term(confirmed, clock.shows(now));
        let server = ServerId {
            place: number,
            term,
        };
        self.end_with(succession, Ending::Succession { server, ends });
    }

    /// Another candidate is elected, unless the master was confirmed since.
    pub(super) fn succeed(&mut self, id: ServerId, ends: Time) {
        let margin = self.elections.take.0.mul_f64(1.0 - TERM);
        let Some(place) = self.place(id.place) else {
            return;
        };
        let is_still = place
            .master
            .as_ref()
            .is_some_and(|master| master.term == id.term && master.term_ends == Some(ends));
        if !is_still {
            return;
        }
        let Some(former) = place.master.take() else {
            return;
        };
        self.note_unread(id.place, &former);
        if let Some(place) = self.place(id.place) {
            place.succeeded.push(*former);
            // Its successor does not know of the margin.
            place.vacant_since = Some(ends + margin);
            self.elect(id.place);
        }
    }

    /// A server goes on where it stopped, with what came meanwhile.
    pub(in crate::world) fn thaw(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        place.up_since = now;
        let Some(server) = place.server(id.term) else {
            return;
        };
        server.frozen_until = None;
        let is_isolated = server.isolated_until.is_some();
        let begins_anew = !is_isolated && self.confirm(id);
        let inbox = self.place(id.place).and_then(|place| place.server(id.term));
        let inbox = inbox.map(|server| std::mem::take(&mut server.inbox));
        for message in inbox.into_iter().flatten() {
            self.arrive(message);
        }
        if !is_isolated {
            self.read_templates(id);
        }
        if begins_anew {
            self.note_learning(id.place);
        }
        if !is_isolated {
            self.retire(id);
        }
        self.after(id);
    }

    /// A server that was cut off from the election is in touch with it again.
    pub(in crate::world) fn rejoin(&mut self, id: ServerId) {
        let Some(server) = self.place(id.place).and_then(|place| place.server(id.term)) else {
            return;
        };
        server.isolated_until = None;
        if self.confirm(id) {
            if let Some(place) = self.places.get_mut(id.place as usize) {
                place.up_since = self.now;
            }
            self.note_learning(id.place);
        }
        self.read_templates(id);
        self.retire(id);
        self.after(id);
    }

    /// A server is confirmed as the master, unless another one is. If that comes too late by its own
    /// clock, it begins anew: returns whether it does.
    fn confirm(&mut self, id: ServerId) -> bool {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return false;
        };
        let local = place.clock.shows(now);
        let master = place.master.as_mut();
        let Some(server) = master.filter(|master| master.term == id.term) else {
            return false;
        };
        let masterships = server.node.masterships();
        let epoch = server.epoch;
        server
            .node
            .handle_mastership(Mastership::Master { epoch }, local);
        server.term_ends = None;
        server.node.masterships() != masterships
    }

    /// A server that has been succeeded sees it: it is a candidate again.
    fn retire(&mut self, id: ServerId) {
        let Some(place) = self.place(id.place) else {
            return;
        };
        if place.succeeded.iter().any(|server| server.term == id.term) {
            self.hang_up(id);
            if let Some(place) = self.place(id.place) {
                place.succeeded.retain(|server| server.term != id.term);
            }
            self.break_children(id.place, id.term);
        }
    }

    /// A server's term is over. Those below with a stream are told; those that poll find out.
    pub(in crate::world) fn end_term(&mut self, id: ServerId) {
        self.hang_up(id);
    }

    /// The root goes by what was written while it did nothing, or could not write to etcd.
    fn read_templates(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let Some(templates) = server.unread.take() else {
            return;
        };
        let former = server.templates.clone();
        let is_master = place.master.as_ref().is_some_and(|it| it.term == id.term);
        if !is_master {
            return;
        }
        place.go_by(templates, local);
        for watched in &mut self.watched {
            if let Some(former) = former.find(&watched.resource) {
                watched.note_known_late(former, local, now);
            }
        }
    }

    /// The root was cut off from etcd when the operator wrote other templates, and has granted by
    /// those before until now.
    pub(in crate::world) fn note_unread(&mut self, place: u32, gone: &Server) {
        let now = self.now;
        let granted = gone.unread.is_some() && gone.isolated_until.is_some();
        if place != 0 || !granted {
            return;
        }
        let Some(local) = self.place(place).map(|place| place.clock.shows(now)) else {
            return;
        };
        for watched in &mut self.watched {
            if let Some(former) = gone.templates.find(&watched.resource) {
                watched.note_known_late(former, local, now);
            }
        }
    }

    /// The server of a place begins to learn.
    fn note_learning(&mut self, place: u32) {
        if place == 0 {
            for watched in &mut self.watched {
                watched.note_learning(Duration::ZERO, self.now);
            }
        }
    }

    /// A server has granted something of these resources, to whomever: the checkers hear of it if it
    /// may not.
    pub(in crate::world) fn note_decision<'r>(
        &mut self,
        by: ServerId,
        resources: impl Iterator<Item = &'r ResourceId>,
    ) {
        let now = self.now;
        let Some(place) = self.place(by.place) else {
            return;
        };
        let local = place.clock.shows(now);
        if place
            .succeeded
            .iter()
            .any(|it| it.term == by.term && it.is_twin)
        {
            // Nobody has told it that there is another one.
            return;
        }
        let master = place.master.as_ref().filter(|it| it.term == by.term);
        if master.is_some_and(|it| it.term_ends.is_none_or(|ends| local < ends)) {
            return;
        }
        for resource in resources {
            let mut all = self.watched.iter_mut();
            if let Some(watched) = all.find(|watched| watched.resource == *resource) {
                watched.mastership.note(now);
            }
        }
    }
}
