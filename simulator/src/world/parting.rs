//! Clients that release their leases: of one resource, or of all before they end.
//!
//! The simulator does what the library does when the last handle of a resource is dropped. Work
//! under way ends first. A release and a request are never under way together. A release goes to
//! the server that the client has a connection with; without a connection there is none. It is not
//! repeated: a lease that could not be released expires.
//!
//! One difference remains: `Client::close` does not wait for work, and does not release leases of
//! which permits are out. Here a client that ends waits for its work.

use doorward_engine::id::ResourceId;
use doorward_engine::messages::ReleaseCapacity;
use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{ClientChoice, Span};
use crate::world::World;
use crate::world::message::{ClientRequest, Message};

/// Leases that a client releases.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parting {
    /// The client ends when everything is released, and stays down until then.
    leaves_until: Option<Time>,
    /// Resources that it stops using, by their index among its uses.
    closing: Vec<u32>,
    /// Resources to release, by the same index.
    releases: Vec<u32>,
    /// Sequence number of the release under way.
    under_way: Option<u64>,
}

impl Parting {
    /// Returns whether a release is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Returns whether an answer belongs to the release under way, and ends that release.
    pub(crate) fn is_answered(&mut self, sequence: u64) -> bool {
        self.under_way.take_if(|it| *it == sequence).is_some()
    }
}

impl World<'_> {
    /// Makes clients release everything and end.
    pub(super) fn clients_leave(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let now = self.now;
        let (chosen, until) = self.begin_for(clients, length, MarkKind::Leave, "leaves");
        for number in &chosen {
            let client = &mut self.clients[*number];
            client.down_until = client.down_until.max(until);
            if client.state.is_none() {
                continue;
            }
            client.parting.get_or_insert_default().leaves_until = Some(until);
            for work in client.uses.iter_mut().filter_map(|it| it.work.as_mut()) {
                work.close(now);
            }
            self.step_client(*number);
        }
        self.end_with(until, move |world| world.start_clients(chosen));
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
        self.end_with(until, move |world| {
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
            // A release that was not sent yet is dropped.
            parting.releases.retain(|other| *other != which);
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
        let leaves = client
            .parting
            .as_mut()
            .and_then(|it| it.leaves_until.take());
        let mut closed = Vec::new();
        for (which, it) in (0..).zip(client.uses.iter_mut()) {
            if leaves.is_some()
                && let Some(work) = &mut it.work
            {
                work.is_closing = false;
            }
            if it.closed_until > now {
                it.closed_until = now;
                closed.push(which);
            }
        }
        for which in closed {
            self.reopen(number, which);
        }
    }

    /// Takes the next step of a client's releases.
    pub(super) fn continue_parting(&mut self, number: u32) {
        let client = &mut self.clients[number];
        let (Some(parting), Some(state)) = (&mut client.parting, &mut client.state) else {
            return;
        };
        let local = client.clock.shows(self.now);
        let mut has_closed = false;
        let (uses, releases) = (&client.uses, &mut parting.releases);
        parting.closing.retain(|which| {
            let it = &uses[*which];
            if it.in_flight() > 0.0 {
                return true;
            }
            has_closed = true;
            if state.close(it.id(), local) {
                releases.push(*which);
            }
            false
        });
        let is_idle = !state.is_asking() && parting.under_way.is_none();
        let until = parting.leaves_until.filter(|_| is_idle);
        let until = until.filter(|_| uses.iter().all(|it| it.in_flight() <= 0.0));
        if until.is_some() {
            // A client without a lease has nothing to release.
            for (which, it) in uses.enumerate() {
                let resource = state.resource(it.id());
                if resource.is_some_and(|it| it.lease(local).is_some()) {
                    releases.push(which);
                }
            }
        }
        let released = match is_idle {
            true => std::mem::take(releases),
            false => Vec::new(),
        };
        if **parting == Parting::default() && released.is_empty() {
            client.parting = None;
        }
        if has_closed {
            self.report_wants(number);
        }
        if !released.is_empty() {
            self.release(number, &released);
        }
        if let Some(until) = until {
            self.crash_client(number, until);
        }
    }

    /// Sends a release of these resources, if the client has a connection.
    fn release(&mut self, number: u32, released: &[u32]) {
        let client = &mut self.clients[number];
        let (Some(state), Some(parting), Some(term)) =
            (&mut client.state, &mut client.parting, client.connected)
        else {
            return;
        };
        let sequence = state.next_sequence();
        parting.under_way = Some(sequence);
        let mut resources = Vec::new();
        for which in released {
            let it = &mut client.uses[*which];
            resources.push(it.usage.resource.clone());
            if let Some(work) = &mut it.work {
                work.note_released();
            }
        }
        let request = ReleaseCapacity {
            client: client.name.clone(),
            incarnation: Some(client.incarnation()),
            caller: None,
            sequence: Some(sequence),
            resources,
        };
        let call = (number, sequence);
        let request = ClientRequest::Release(term, request);
        self.send_or_fail(call, Message::Call(call, request));
    }
}
