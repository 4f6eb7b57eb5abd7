//! Streams of clients: requests on them are calls, and pushes go down. The server learns of a stream by its first
//! request.

use std::time::Duration;

use doorward::in_process;
use doorward_engine::id::HolderId;
use doorward_engine::messages::GetCapacityReply;

use crate::world::{ServerId, World};

/// Delay of a push that overtook the answer before it.
const OVERTAKEN: Duration = Duration::from_millis(10);

impl World<'_> {
    /// Notes a request on a client's stream.
    pub(super) fn note_client_stream(&mut self, to: ServerId, number: u32) {
        let client = &self.clients[number];
        let asks = client.asks_on_stream;
        let holder = HolderId::client(client.name.clone(), Some(client.incarnation()));
        let Some(server) = self.server_of(to) else {
            return;
        };
        let is_new = match asks {
            true => server.clients.insert(holder.clone(), number).is_none(),
            false => server.clients.remove(&holder).is_some(),
        };
        if is_new {
            server.replica.handle_client_stream(&holder, asks);
        }
    }

    /// Sends a push to a client.
    pub(super) fn push_to_client(&mut self, by: ServerId, to: &HolderId, reply: GetCapacityReply) {
        let server = self.server_of(by);
        let Some(number) = server.and_then(|it| it.clients.get(to).copied()) else {
            return;
        };
        self.note_decision(by, reply.leases.iter().map(|lease| &lease.resource));
        let place = &self.places[by.place];
        if place.cut_below_until <= self.now {
            let way = place.links.clients;
            self.send(&way, move |world| {
                world.handle_push(number, by.term, reply);
            });
        }
    }

    /// Gives a client a push.
    pub(super) fn handle_push(&mut self, number: u32, term: u64, push: GetCapacityReply) {
        let now = self.now;
        let client = &mut self.clients[number];
        let local = client.clock.shows(now);
        let state = client.state.as_mut();
        let Some(state) = state.filter(|_| client.connected == Some(term)) else {
            return;
        };
        let sequences = push.leases.iter().filter_map(|lease| lease.sequence);
        if sequences.into_iter().any(|it| state.is_asking_by(it)) {
            // A stream keeps the order: the answer comes first. It may be lost, so the push is not sent again, which
            // could double it.
            return self.act(now + OVERTAKEN, move |world| {
                world.handle_push(number, term, push);
            });
        }
        state.handle_push(&in_process::response(&push), local);
        self.note(4, number.into(), push.leases.len() as f64);
        self.step_client(number);
    }

    /// Tells the clients of a server that has ended, or is not master any more, that their streams broke.
    pub(super) fn break_client_streams(&mut self, by: ServerId) {
        let Some(server) = self.server_of(by) else {
            return;
        };
        let clients = std::mem::take(&mut server.clients);
        for (holder, number) in clients {
            if let Some(server) = self.server_of(by) {
                server.replica.handle_client_stream(&holder, false);
            }
            let way = self.places[by.place].links.clients;
            let at = self.now + self.takes(&way);
            self.act(at, move |world| world.handle_broken(number, by.term));
        }
    }

    /// Tells a client that its stream broke.
    pub(super) fn handle_broken(&mut self, number: u32, term: u64) {
        let now = self.now;
        let mut chance = self.chance.fork(number.into()).fork(now.as_nanos());
        let client = &mut self.clients[number];
        let local = client.clock.shows(now);
        if let Some(state) = &mut client.state
            && client.connected == Some(term)
        {
            state.handle_disconnected(chance.uniform(), local);
            self.step_client(number);
        }
    }
}
