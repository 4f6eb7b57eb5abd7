//! Server processes around the production [`Replica`](doorward_replica::Replica).

use std::task::Poll;
use std::time::Duration;

use doorward_engine::messages::{GetCapacity, GetCapacityReply};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_replica::{ClientAnswer, FromParent, Output, Replica, ToEtcd};
use doorward_session::close_reason::ConnectionEnd;

use crate::scenario::{Latency, Link, NEAR, Span};
use crate::world::{
    CLIENT_TIMEOUT, CallId, ClientRequest, Line, RequestResult, ServerId, ServerProcess, World,
};

impl World<'_> {
    pub(super) fn server_of(&mut self, id: ServerId) -> Option<&mut ServerProcess> {
        self.places[id.place].server(id.term)
    }

    /// Returns a running server and what its clock shows.
    pub(super) fn server_at(&mut self, id: ServerId) -> Option<(&mut ServerProcess, Time)> {
        let place = &mut self.places[id.place];
        let local = place.clock.shows(self.now);
        Some((place.server(id.term)?, local))
    }

    /// Starts a server in a slot of a node, without any knowledge, if the slot is free and no fault
    /// keeps it down.
    pub(super) fn start_server(&mut self, number: u32, slot: u32) {
        let (now, scenario) = (self.now, self.scenario);
        let seed = self.chance.bits();
        let place = &mut self.places[number];
        let runs = |server: &ServerProcess| server.slot == slot && !server.is_twin;
        if place.servers.iter().any(runs) || place.slots[slot].down_until > now {
            return;
        }
        place.starts += 1;
        let is_alone = place.slots.len() == 1;
        if is_alone && scenario.servers.state_directory {
            place.state.get_or_insert_default().starts += 1;
        }
        let templates = match place.parent {
            None => self.templates.clone(),
            Some(_) => Templates::default(),
        };
        let mut server = ServerProcess::new(place, slot, seed, scenario.servers, templates);
        let id = server.id;
        let local = place.clock.shows(now);
        if is_alone {
            let found = place.state.as_ref().filter(|_| place.parent.is_none());
            let found = found.map(|state| state.found.clone());
            server.replica.handle_alone(found, local);
        }
        place.servers.push(server);
        if is_alone {
            self.drive(id);
        } else {
            self.join_election(id);
        }
    }

    /// Ends a server without notice. All its knowledge is lost.
    pub(super) fn end_server(&mut self, id: ServerId) {
        self.break_client_streams(id);
        let servers = &mut self.places[id.place].servers;
        let Some(gone) = servers.iter().position(|it| it.id == id) else {
            return;
        };
        let gone = servers.remove(gone);
        if let Some(above) = gone.parent_link.to {
            self.leave(id, above);
        }
        // Clients whose calls waited here see the connection break.
        for call in gone.waiting.into_values() {
            self.refuse_connection(call);
        }
        // Messages that waited for it find no server.
        gone.backlog.messages.into_iter().for_each(|it| it(self));
        self.break_children(id);
    }

    /// Closes the connections of children to a server that is gone.
    pub(super) fn break_children(&mut self, id: ServerId) {
        for child in self.places[id.place].children.clone() {
            let servers = self.places[child].servers.iter();
            let connected = servers.filter(|it| it.parent_link.to == Some(id));
            let broken = connected.map(|it| (it.id, it.parent_link.connection));
            let broken: Vec<Line> = broken.collect();
            broken.into_iter().for_each(|it| self.break_connection(it));
        }
    }

    /// Fails a client's request after the time of one message: no process listens.
    pub(super) fn refuse_connection(&mut self, call: CallId) {
        let way = self.places[self.clients[call.0].place].links.clients;
        let at = self.now + self.takes(&way);
        self.fail_later(call, at);
    }

    /// Closes a connection to a parent whose server is gone.
    pub(super) fn break_connection(&mut self, line: Line) {
        let way = self.places[line.0.place].links.parent;
        let at = self.now + self.takes(&way);
        let closed = FromParent::Closed(ConnectionEnd::Failed);
        self.act(at, move |world| world.handle_from_parent(line, closed));
    }

    /// Serves a client's call at a server of a node.
    pub(super) fn serve_call(&mut self, call: CallId, request: ClientRequest) {
        let now = self.now;
        let number = self.clients[call.0].place;
        let term = match &request {
            ClientRequest::Discover(slot, _) => self.process_at(number, *slot),
            ClientRequest::Ask(term, _) | ClientRequest::Release(term, _) => Some(*term),
        };
        if self.places[number].cut_below_until > now {
            return self.fail_later(call, now + CLIENT_TIMEOUT);
        }
        if matches!(request, ClientRequest::Ask(..)) {
            self.count_at_server(number);
        }
        let place = &mut self.places[number];
        let local = place.clock.shows(now);
        let Some(server) = term.and_then(|term| place.server(term)) else {
            return self.refuse_connection(call);
        };
        if server.is_frozen(now) {
            let late = move |world: &mut World<'_>| world.serve_call(call, request);
            server.backlog.messages.push(Box::new(late));
            return self.fail_later(call, now + CLIENT_TIMEOUT);
        }
        let to = server.id;
        match request {
            ClientRequest::Discover(_, request) => {
                let master = self.mastership_said_by(to);
                let answer = RequestResult::Discovered(to.term, master, request);
                return self.send_once(call, move |world| world.on_reply(call, answer));
            }
            ClientRequest::Ask(_, request) => {
                self.note_client_stream(to, call.0);
                self.serve_ask(to, call, &request);
            }
            ClientRequest::Release(_, request) => {
                // A release is never redirected.
                let release = |node: &mut Node, now| node.handle_release_capacity(&request, now);
                let _heard = server.replica.change(release, local);
                let answer = RequestResult::Released;
                self.send_or_fail(call, move |world| world.on_reply(call, answer));
            }
        }
        self.drive(to);
    }

    /// Counts a request of a client or a child server at a node.
    pub(super) fn count_at_server(&mut self, number: u32) {
        let now = self.now;
        if now.since(Time::ZERO) >= self.scenario.settled_after.0 {
            let place = &mut self.places[number];
            let requests = place.asked.note(now);
            place.busiest.note(requests, now);
        }
    }

    /// Passes a client's request to a server.
    fn serve_ask(&mut self, to: ServerId, call: CallId, request: &GetCapacity) {
        let Some((server, local)) = self.server_at(to) else {
            return;
        };
        let mut answers = Answers::to_client(request);
        let replica = &mut server.replica;
        let answer = loop {
            let next = replica.answer_client_next(request, &mut answers, local);
            if let Poll::Ready(answer) = next {
                break answer;
            }
        };
        match answer {
            ClientAnswer::Final(outcome) => {
                if let Outcome::Served(reply) = &outcome {
                    self.note_decision(to, reply.leases.iter().map(|lease| &lease.resource));
                }
                self.answer(call, to, outcome);
            }
            ClientAnswer::Waits(number) => {
                server.waiting.insert(number, call);
                self.note_decision(to, request.asks.iter().map(|ask| &ask.resource));
                // The client waits no longer than this, whatever happens to the server.
                self.fail_later(call, self.now + CLIENT_TIMEOUT);
                self.note_kept(call);
            }
        }
    }

    /// Answers a client's request for leases.
    fn answer(&mut self, call: CallId, by: ServerId, outcome: Outcome<GetCapacityReply>) {
        let outcome = match outcome {
            Outcome::NotMaster(_) => Outcome::NotMaster(self.mastership_said_by(by)),
            served @ Outcome::Served(_) => served,
        };
        let answer = RequestResult::Said(outcome);
        self.send_or_fail(call, move |world| world.on_reply(call, answer));
    }

    /// Lets a server do what is due after an input or at a time, and executes its outputs.
    pub(super) fn drive(&mut self, id: ServerId) {
        let (now, asserts) = (self.now, self.asserts);
        let clock = self.places[id.place].clock;
        let wall = Duration::from_micros(self.wall_micros(&clock));
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        // A frozen server does nothing.
        if server.is_frozen(now) {
            return;
        }
        while server.replica.advance(local, wall).is_pending() {}
        if asserts {
            server.node().assert_consistent();
        }
        // Events are for people.
        while server.replica.poll_event().is_some() {}
        while server.replica.poll_garbage().is_some() {}
        while let Some(output) = self.server_of(id).and_then(|it| it.replica.poll_output()) {
            match output {
                Output::Parent(command) => self.command_link(id, command),
                Output::Child(stream, message) => self.send_to_child(id, stream, message),
                Output::Client(client, push) => self.push_to_client(id, &client, push),
                Output::Etcd(ToEtcd::Ask(request) | ToEtcd::AskBeside(request)) => {
                    self.ask_etcd(id, request);
                }
                // Reports are for people; others wait until templates are in force.
                Output::Etcd(ToEtcd::Report(_)) | Output::TemplatesApplied(_) => {}
                Output::Marks(number, batch) => self.write_marks(id, number, batch),
                Output::Call(number, outcome) => {
                    let call = self.server_of(id).and_then(|it| it.waiting.remove(&number));
                    if let Some(call) = call {
                        self.answer(call, id, outcome);
                    }
                }
            }
        }
        if let Some((server, _)) = self.server_at(id)
            && server.masterships != server.replica.masterships()
        {
            server.masterships = server.replica.masterships();
            self.end_term(id);
            self.begin_term_if_master(id);
        }
        self.replace_if_over(id);
        self.plan(id.place);
    }

    /// Passes an input to a server, and drives it.
    pub(super) fn input(&mut self, id: ServerId, input: impl FnOnce(&mut Replica, Time)) {
        if let Some((server, local)) = self.server_at(id) {
            input(&mut server.replica, local);
            self.drive(id);
        }
    }

    /// Schedules the next wake-up of a node.
    pub(super) fn plan(&mut self, number: u32) {
        let now = self.now;
        let place = &mut self.places[number];
        let clock = place.clock;
        let all = place.servers.iter();
        let due = all.filter_map(|server| server.due(&clock)).min();
        let Some(due) = due.map(|due| due.max(now)) else {
            return;
        };
        if place.wake_at.is_none_or(|at| due < at || at < now) {
            place.wake_at = Some(due);
            self.act(due, move |world| world.wake_place(number));
        }
    }

    pub(super) fn wake_place(&mut self, number: u32) {
        let now = self.now;
        let place = &mut self.places[number];
        if place.wake_at != Some(now) {
            return;
        }
        place.wake_at = None;
        let servers: Vec<ServerId> = place.servers.iter().map(|server| server.id).collect();
        for id in servers {
            let server = self.server_of(id);
            let wakes = |it: &mut ServerProcess| it.frozen_until.is_some_and(|until| until <= now);
            match server.is_some_and(wakes) {
                true => self.unfreeze(id),
                false => self.drive(id),
            }
        }
        self.plan(number);
    }

    /// Draws the delay of a message.
    pub(super) fn takes(&mut self, way: &Link) -> Duration {
        match way.latency.unwrap_or(NEAR) {
            Latency::Uniform(Span(least, most)) if least == most => least,
            Latency::Uniform(Span(least, most)) => self.chance.duration(least, most),
            Latency::Exponential { least, mean } => {
                least.0 + Duration::from_secs_f64(self.chance.exponential(mean.0.as_secs_f64()))
            }
        }
    }
}
