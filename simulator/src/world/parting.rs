//! Clients that stop using a resource, or end. A client that stops using a resource lets its work end first, as a handle
//! of the library does. A client that ends drops it, as `Client::close` does, and releases only leases of which nothing is
//! in use. A release goes to the server that the client has a connection with; without a connection there is none.

use doorward::in_process;
use doorward::state::Step;

use crate::recording::MarkKind;
use crate::scenario::fault::{ClientChoice, Span};
use crate::world::{ClientRequest, World, in_flight};

impl World<'_> {
    /// Makes clients release everything and end.
    pub(super) fn clients_leave(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let (chosen, until) = self.begin_for(clients, length, MarkKind::Leave, "leaves");
        for number in &chosen {
            let client = &mut self.clients[*number];
            client.down_until = client.down_until.max(until);
            client.is_leaving = true;
            self.step_client(*number);
        }
        self.act(until, move |world| {
            chosen.into_iter().for_each(|it| world.start_client(it));
        });
    }

    /// Makes clients release a resource and stop using it.
    pub(super) fn close(&mut self, of: &ClientChoice, id: Option<&str>, length: Option<Span>) {
        let what = id.unwrap_or("its resource");
        let what = format!("does not use {what}");
        let (chosen, until) = self.begin_for(of, length, MarkKind::Close, &what);
        let mut closed = Vec::new();
        for number in chosen {
            let Some(which) = self.which_of(number, id) else {
                continue;
            };
            let client = &mut self.clients[number];
            let it = &mut client.uses[which];
            it.closed_until = it.closed_until.max(until);
            closed.push((number, which));
            if let Some(work) = &mut it.work {
                work.close(self.now);
            }
            self.step_client(number);
        }
        self.act(until, move |world| {
            for (client, which) in closed {
                world.reopen(client, which);
            }
        });
    }

    /// Lets a client use a resource again.
    pub(super) fn reopen(&mut self, number: u32, which: u32) {
        let now = self.now;
        let client = &mut self.clients[number];
        let it = &mut client.uses[which];
        let stays = it.closed_until <= now && !client.is_leaving;
        let Some(state) = client.state.as_mut().filter(|_| stays) else {
            return;
        };
        let local = client.clock.shows(now);
        if state.open(it.id(), it.usage.priority, it.usage.mode, it.wants(), local) {
            self.report_wants(number);
        }
        self.step_client(number);
    }

    /// Stops a client from ending, and lets it use all its resources again.
    pub(super) fn cancel_parting(&mut self, number: u32) {
        let now = self.now;
        let client = &mut self.clients[number];
        client.is_leaving = false;
        let mut closed = Vec::new();
        for (which, it) in (0..).zip(client.uses.iter_mut()) {
            if it.closed_until > now {
                it.closed_until = now;
                closed.push(which);
            }
        }
        closed.into_iter().for_each(|it| self.reopen(number, it));
    }

    /// Takes the next step of a client's parting.
    pub(super) fn continue_parting(&mut self, number: u32) {
        let now = self.now;
        let client = &mut self.clients[number];
        let Some(state) = &mut client.state else {
            return;
        };
        let local = client.clock.shows(now);
        let mut has_closed = false;
        for it in client.uses.iter().filter(|it| it.closed_until > now) {
            if it.in_flight() <= 0.0 && state.resource(it.id()).is_some() {
                state.close(it.id(), local);
                has_closed = true;
            }
        }
        // It ends without a call under way.
        let ends = client.is_leaving && !state.is_asking();
        if ends {
            state.close_all(in_flight(&client.uses), local);
        }
        if has_closed {
            self.report_wants(number);
        }
        if ends {
            self.release(number);
            self.crash_client(number, now);
        }
    }

    /// Sends the release that is due, if the client has a connection.
    pub(super) fn release(&mut self, number: u32) {
        let client = &mut self.clients[number];
        let local = client.clock.shows(self.now);
        let state = client.state.as_mut();
        let Some(state) = state.filter(|it| it.next_step(local) == Step::Release) else {
            return;
        };
        let release = state.release();
        let Some(term) = client.connected else {
            state.handle_released(release.sequence);
            return;
        };
        for it in client.uses.iter_mut() {
            let is_released = release.resources.iter().any(|id| **id == *it.id());
            if let Some(work) = it.work.as_mut().filter(|_| is_released) {
                work.note_released();
            }
        }
        let call = (number, release.sequence);
        let request = in_process::release(&client.name, client.incarnation(), &release);
        let request = ClientRequest::Release(term, request);
        self.send_or_fail(call, move |world| world.serve_call(call, request));
    }
}
