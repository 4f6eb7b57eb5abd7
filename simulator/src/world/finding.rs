//! Clients' search for the master of their node. The session decides which server to ask
//! ([`MasterFinder`]); this file carries the question and the answer.
//!
//! [`MasterFinder`]: doorward_session::master_finder::MasterFinder

use std::time::Duration;

use doorward_engine::messages::GetCapacity;
use doorward_engine::node::mastership::Mastership;
use doorward_session::master_finder::DeadEnd;

use crate::world::{CLIENT_TIMEOUT, CallId, ClientRequest, Deed, World};

impl World<'_> {
    /// Asks the next server of a client's finder about the master.
    pub(super) fn find_master(&mut self, number: u32, request: GetCapacity) {
        let now = self.now;
        self.count_request(number);
        let call = (number, request.sequence.unwrap_or_default());
        let client = &self.clients[number];
        let place = client.place;
        let target = client.finder.target();
        let there = &self.places[place];
        if there.cut_below_until > now {
            return self.fail_later(call, now + CLIENT_TIMEOUT);
        }
        let Some(slot) = target.and_then(|target| there.slot_of(&target)) else {
            // No server has that address.
            let way = there.links.clients;
            let after = self.takes(&way) + self.takes(&way);
            return self.fail_later(call, now + after);
        };
        let request = ClientRequest::Discover(slot, request);
        self.send_once(call, move |world| world.serve_call(call, request));
    }

    /// Points a client's finder to the master that an answer names. Returns false at a dead end.
    pub(super) fn follow_redirect(&mut self, call: CallId, mastership: &Mastership) -> bool {
        let leases_last = self.leases_last(call.0);
        let client = &mut self.clients[call.0];
        client.connected = None;
        let master = match mastership {
            Mastership::Elsewhere { master_address, .. } => Some(master_address.as_str()),
            Mastership::Master { .. } | Mastership::Unknown => None,
        };
        let epoch = mastership.epoch();
        let followed = client.finder.handle_redirect(master, epoch, leases_last);
        let lost = followed.map_err(|lost| self.handle_dead_end(call, &lost));
        lost.is_ok()
    }

    /// Returns the process that answers at an address of a node. If two share it, either may
    /// answer.
    pub(super) fn process_at(&mut self, place: u32, slot: u32) -> Option<u64> {
        let servers = &self.places[place].servers;
        let here = |is_twin| {
            let mut all = servers.iter();
            let found = all.find(|it| it.slot == slot && it.is_twin == is_twin);
            found.map(|it| it.id.term)
        };
        match (here(false), here(true)) {
            (Some(_), Some(twin)) if self.chance.happens(0.5) => Some(twin),
            (first, twin) => first.or(twin),
        }
    }

    /// Notes that the server asked is of no use to a client, which asks the next one later.
    pub(super) fn handle_dead_end(&mut self, (number, sequence): CallId, lost: &DeadEnd) {
        let chance = self.chance.uniform();
        let client = &mut self.clients[number];
        client.connected = None;
        let local = client.clock.shows(self.now);
        if let Some(state) = &mut client.state {
            state.set_streaming(false, local);
            state.handle_failure(sequence, lost.kind, chance, local);
        }
    }

    /// Returns the time until the last lease of a client ends.
    pub(super) fn leases_last(&self, number: u32) -> Duration {
        let client = &self.clients[number];
        let local = client.clock.shows(self.now);
        let state = client.state.as_ref();
        let end = state.and_then(|state| state.leases_end(local));
        end.map_or(Duration::ZERO, |end| end.since(local))
    }

    /// Sends a message of a client's call on a new connection. It arrives once after a delay, or the
    /// call times out.
    pub(super) fn send_once(&mut self, call: CallId, arrive: impl Deed) {
        let way = self.places[self.clients[call.0].place].links.clients;
        if self.loses(&way) {
            return self.fail_later(call, self.now + CLIENT_TIMEOUT);
        }
        let at = self.now + self.takes(&way);
        self.act(at, arrive);
    }
}
