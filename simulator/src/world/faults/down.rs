//! Servers that die, restart or hand over.

use doorward_engine::time::Time;
use doorward_session::candidate::Candidate;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeChoice, Span};
use crate::world::{ServerId, ServerProcess, World};

impl World<'_> {
    /// Kills a node's master. For `length` no candidate can win; without it, for as long as an
    /// election takes.
    pub(super) fn kill(&mut self, node: &NodeChoice, length: Option<Span>) {
        let lasts = length.unwrap_or(self.elections);
        let text = |name: &str| format!("{name} loses its master");
        let (number, until) = self.begin_at(node, lasts, MarkKind::Kill, text);
        self.note(5, number.into(), 0.0);
        let leader = self.leader(number);
        let place = &mut self.places[number];
        if place.slots.len() == 1 {
            return self.take_down(number, 0, until);
        }
        if length.is_some() {
            place.unable_until = place.unable_until.max(until);
            let able = place.unable_until;
            self.report_able(number);
            self.act(able, move |world| world.report_able(number));
        }
        if let Some(id) = leader {
            if length.is_none() {
                self.keep_lease_of(id, until);
            }
            self.take_down_server(id, until);
        }
    }

    /// Restarts a node's master, which forgets everything. Another candidate wins the election.
    pub(super) fn restart(&mut self, node: &NodeChoice, length: Span) {
        let number = self.choose(node);
        let until = self.end_of(length);
        let succession = self.end_of(self.elections);
        let has_election = self.places[number].slots.len() > 1;
        let text = format!("{}'s master restarts", self.places[number].name);
        let over = if has_election { succession } else { until };
        self.mark(Some(over), MarkKind::Restart, text);
        // Without a master, no server restarts.
        if let Some(id) = self.leader(number) {
            self.note(5, number.into(), 0.0);
            self.keep_lease_of(id, succession);
            self.take_down_server(id, until);
        }
    }

    /// Makes a node's master hand over, if there is one.
    pub(super) fn elect(&mut self, node: &NodeChoice) {
        let number = self.choose(node);
        let text = format!("{} holds an election", self.places[number].name);
        self.mark(None, MarkKind::Elect, text);
        let is_alone = self.places[number].slots.len() == 1;
        match self.leader(number) {
            Some(id) if is_alone => self.take_down_server(id, self.now),
            // It resigns and ends, and another process starts in its place.
            Some(id) => self.handle_news(id, move |world| {
                world.input_candidate(id, Candidate::handle_resign);
            }),
            None => {}
        }
    }

    /// Takes a slot of a node down until then, and schedules its start.
    pub(super) fn take_down(&mut self, number: u32, slot: u32, until: Time) {
        let place = &mut self.places[number];
        let down = &mut place.slots[slot];
        down.down_until = down.down_until.max(until);
        let until = down.down_until;
        let runs = |it: &&ServerProcess| it.slot == slot && !it.is_twin;
        if let Some(id) = place.servers.iter().find(runs).map(|server| server.id) {
            self.end_server(id);
        }
        if until <= self.now {
            self.start_server(number, slot);
        } else {
            self.act(until, move |world| world.start_server(number, slot));
        }
    }

    /// Takes the slot of a server down.
    fn take_down_server(&mut self, id: ServerId, until: Time) {
        let server = self.server_of(id);
        if let Some(slot) = server.map(|server| server.slot) {
            self.take_down(id.place, slot, until);
        }
    }

    /// Tells the candidates of a node whether they may become master.
    pub(super) fn report_able(&mut self, number: u32) {
        let now = self.now;
        let able = self.places[number].unable_until <= now;
        for id in self.candidates_of(number) {
            self.input_candidate(id, |candidate, now| candidate.handle_able(able, now));
        }
    }
}
