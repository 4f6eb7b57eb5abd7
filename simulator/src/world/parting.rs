//! Clients that stop using a resource, or end. A client that stops using a resource lets its work end first, as a handle
//! of the library does. A client that ends drops it, as `Client::close` does, and releases only leases of which nothing is
//! in use. A release goes to the server that the client has a connection with; without a connection there is none.

use doorward::in_process;
use doorward::state::Step;
use doorward_engine::id::ResourceId;
use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{ClientChoice, Span};
use crate::world::World;
use crate::world::message::ClientRequest;
use crate::world::uses::in_flight;

/// Resources that a client stops using, and its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parting {
    /// The client ends at its next step without a call, and stays down until then.
    leaves_until: Option<Time>,
    /// Resources that it stops using, by their index among its uses.
    closing: Vec<u32>,
}

impl World<'_> {
    /// Makes clients release everything and end.
    pub(super) fn clients_leave(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let (chosen, until) = self.begin_for(clients, length, MarkKind::Leave, "leaves");
        for number in &chosen {
            let client = &mut self.clients[*number];
            client.down_until = client.down_until.max(until);
            if client.state.is_none() {
                continue;
            }
            client.parting.get_or_insert_default().leaves_until = Some(until);
            self.step_client(*number);
        }
        self.act(until, move |world| {
            chosen.into_iter().for_each(|it| world.start_client(it));
        });
    }

    /// Makes clients release a resource and stop using it.
    pub(super) fn clients_close(
        &mut self,
        clients: &ClientChoice,
        resource: Option<&ResourceId>,
        length: Option<Span>,
    ) {
        let now = self.now;
        let what = resource.map_or("its resource", ResourceId::as_str);
        let what = format!("does not use {what}");
        let (chosen, until) = self.begin_for(clients, length, MarkKind::Close, &what);
        let mut closed = Vec::new();
        for number in chosen {
            let Some(which) = self.which_of(number, resource) else {
                continue;
            };
            let client = &mut self.clients[number];
            let it = &mut client.uses[which];
            it.closed_until = it.closed_until.max(until);
            closed.push((number, which));
            if client.state.is_none() {
                continue;
            }
            if let Some(work) = &mut it.work {
                work.close(now);
            }
            client.parting.get_or_insert_default().closing.push(which);
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
        let Some(state) = client.state.as_mut().filter(|_| it.closed_until <= now) else {
            return;
        };
        let is_leaving = |it: &Parting| it.leaves_until.is_some();
        if client.parting.as_deref().is_some_and(is_leaving) {
            return;
        }
        if let Some(parting) = &mut client.parting {
            parting.closing.retain(|other| *other != which);
        }
        if let Some(work) = &mut it.work {
            work.is_closing = false;
        }
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
        if let Some(parting) = &mut client.parting {
            parting.leaves_until = None;
        }
        let mut closed = Vec::new();
        for (which, it) in (0..).zip(client.uses.iter_mut()) {
            if it.closed_until > now {
                it.closed_until = now;
                closed.push(which);
            }
        }
        for which in closed {
            self.reopen(number, which);
        }
    }

    /// Takes the next step of a client's parting.
    pub(super) fn continue_parting(&mut self, number: u32) {
        let client = &mut self.clients[number];
        let (Some(parting), Some(state)) = (&mut client.parting, &mut client.state) else {
            return;
        };
        let local = client.clock.shows(self.now);
        let (uses, before) = (&client.uses, parting.closing.len());
        parting.closing.retain(|which| {
            let it = &uses[*which];
            let stays = it.in_flight() > 0.0;
            if !stays {
                state.close(it.id(), local);
            }
            stays
        });
        let has_closed = parting.closing.len() < before;
        let until = parting.leaves_until.filter(|_| !state.is_asking());
        if until.is_some() {
            state.close_all(in_flight(uses), local);
        } else if parting.closing.is_empty() && parting.leaves_until.is_none() {
            client.parting = None;
        }
        if has_closed {
            self.report_wants(number);
        }
        if let Some(until) = until {
            self.release(number);
            self.crash_client(number, until);
        }
    }

    /// Sends the release that is due, if the client has a connection.
    pub(super) fn release(&mut self, number: u32) {
        let client = &mut self.clients[number];
        let local = client.clock.shows(self.now);
        let Some(state) = client
            .state
            .as_mut()
            .filter(|it| it.next_step(local) == Step::Release)
        else {
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
