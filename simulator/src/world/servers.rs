//! What servers do: the shell around [`Node`](doorward_engine::node::Node), and elections.

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::node::event::Event;
use doorward_engine::node::mastership::{Mastership, Outcome, Term};
use doorward_engine::request::server::{GetServerCapacity, Via};
use doorward_engine::request::{GetCapacity, GetCapacityReply, RefusalReason};
use doorward_engine::template::Templates;
use doorward_session::closing::{Closed, Closing};
use doorward_session::parent_session::Connection;

use crate::world::World;
use crate::world::event::What;
use crate::world::lengths::Lengths;
use crate::world::message::{Answer, Channel, Down, Message, ServerId};
use crate::world::place::{Place, Server};
use crate::world::seats::Behind;

/// As the client library waits for an answer.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server lets a call wait for its parent.
const WAITS_FOR_PARENT: Duration = Duration::from_secs(1);

impl World<'_> {
    pub(super) fn place(&mut self, place: u32) -> Option<&mut Place> {
        self.places.get_mut(place as usize)
    }

    /// A server becomes master of a place, knowing nothing.
    pub(super) fn elect(&mut self, number: u32) {
        let (now, scenario) = (self.now, self.scenario);
        let seed = self.chance.bits();
        let templates = self.templates.clone();
        let Some(place) = self.places.get_mut(number as usize) else {
            return;
        };
        place.terms += 1;
        if place.candidates > 1 {
            place.epoch_seen = self.etcd.create(now).max(place.epoch_seen + 1);
        }
        let templates = if place.parent.is_none() {
            templates
        } else {
            Templates::default()
        };
        let local = place.clock.shows(now);
        let vacant_since = place.vacant_since.take().unwrap_or(local);
        let mut longer_leases = Duration::ZERO;
        if place.parent.is_none() && place.candidates > 1 {
            let former = place.lengths.as_ref();
            let (written, longer) = Lengths::succeed(former, templates.clone(), vacant_since);
            place.lengths = Some(written);
            longer_leases = longer;
        }
        let mut server = Server::new(place, seed, scenario.servers.refresh_floor, templates, now);
        if let Some(epoch) = server.epoch {
            let won = Term {
                epoch,
                vacant_since,
                longer_leases,
                valid_until: local + Duration::from_secs(1),
            };
            server.node.handle_term(won, local);
        }
        // From now on it is confirmed all the time.
        let epoch = server.epoch;
        server
            .node
            .handle_mastership(Mastership::Master { epoch }, local);
        place.master = Some(Box::new(server));
        place.up_since = now;
        let term = place.terms;
        self.note(2, number.into(), term as f64);
        if number == 0 {
            for watched in &mut self.watched {
                watched.note_learning(longer_leases, now);
            }
        }
        let server = ServerId {
            place: number,
            term,
        };
        self.tend_link(server);
        self.plan(number);
    }

    /// The master of a place is gone, and everything it knew.
    pub(super) fn depose(&mut self, number: u32) {
        let Some(place) = self.place(number) else {
            return;
        };
        let Some(gone) = place.master.take() else {
            return;
        };
        self.note_unread(number, &gone);
        if let Some(above) = gone.way_up.to {
            self.unsubscribe(number, above);
        }
        // Clients whose calls waited here are told nothing, and notice.
        for (_, client, request) in gone.waiting {
            let sequence = request.sequence.unwrap_or_default();
            let way = self.scenario.network.to_clients(number);
            let at = self.now + self.takes(&way);
            self.fail_later(client, sequence, at);
        }
        for message in gone.inbox {
            self.bounce(message);
        }
        self.break_children(number, gone.term);
    }

    /// Those below notice that their server is gone.
    pub(super) fn break_children(&mut self, number: u32, term: u64) {
        let children = self.place(number).map(|place| place.children.clone());
        for child in children.unwrap_or_default() {
            let Some(place) = self.place(child) else {
                continue;
            };
            let Some(server) = &place.master else {
                continue;
            };
            if server.way_up.to != Some(term) {
                continue;
            }
            let broken = Message::Down {
                child: ServerId {
                    place: child,
                    term: server.term,
                },
                connection: server.way_up.session.connection(),
                what: Down::Closed(Closed::Failed),
            };
            let way = self.scenario.network.to_parent(child);
            let at = self.now + self.takes(&way);
            let slot = self.mail.keep(broken);
            self.events.put(at, What::Arrival(slot));
        }
    }

    /// A message has come to a server that is not there any more.
    pub(super) fn bounce(&mut self, message: Message) {
        match message {
            Message::Ask {
                client,
                place,
                request,
                ..
            } => {
                let way = self.scenario.network.to_clients(place);
                let at = self.now + self.takes(&way);
                self.fail_later(client, request.sequence.unwrap_or_default(), at);
            }
            Message::Discover {
                client,
                place,
                request,
                ..
            } => {
                let way = self.scenario.network.to_clients(place);
                let at = self.now + self.takes(&way);
                self.fail_later(client, request.sequence.unwrap_or_default(), at);
            }
            Message::Up {
                child, connection, ..
            } => {
                let way = self.scenario.network.to_parent(child.place);
                let at = self.now + self.takes(&way);
                let slot = self.mail.keep(Message::Down {
                    child,
                    connection,
                    what: Down::Closed(Closed::Failed),
                });
                self.events.put(at, What::Arrival(slot));
            }
            _ => {}
        }
    }

    /// A client's request arrives.
    pub(super) fn serve(
        &mut self,
        client: u32,
        number: u32,
        channel: Channel,
        request: GetCapacity,
    ) {
        let (now, settled_after) = (self.now, self.scenario.settled_after);
        let sequence = request.sequence.unwrap_or_default();
        let Some(place) = self.place(number) else {
            return;
        };
        if place.cut_below_until > now {
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let clock = place.clock;
        place.load.note(settled_after, now);
        let to = ServerId {
            place: number,
            term: channel.term,
        };
        let Some(server) = place.server(to.term) else {
            self.serve_beside(client, number, channel, request);
            return;
        };
        if server.is_frozen(now) {
            server.inbox.push(Message::Ask {
                client,
                place: number,
                channel,
                request,
            });
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let outcome = server.node.handle_get_capacity(&request, clock.shows(now));
        if waits_for_parent(&outcome) {
            // The call waits for the parent, for a while.
            server
                .waiting
                .push_back((now + WAITS_FOR_PARENT, client, request));
            // Whatever becomes of the server, the client waits no longer than this.
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            self.note_kept(client, sequence);
        } else {
            self.answer(client, to, sequence, outcome);
        }
        self.after(to);
    }

    /// The process of a connection is not the master any more: it stands by, and says who is, or is gone.
    fn serve_beside(&mut self, client: u32, number: u32, channel: Channel, request: GetCapacity) {
        let sequence = request.sequence.unwrap_or_default();
        let is_standby = self.behind(number, channel.seat) == Behind::Standby;
        let Some(place) = self.place(number).filter(|_| is_standby) else {
            self.bounce(Message::Ask {
                client,
                place: number,
                channel,
                request,
            });
            return;
        };
        let named = place.named().map(Box::new);
        self.send_answer(client, number, sequence, Answer::Elsewhere(named));
    }

    fn answer(
        &mut self,
        client: u32,
        by: ServerId,
        sequence: u64,
        outcome: Outcome<GetCapacityReply>,
    ) {
        if let Outcome::Served(reply) = &outcome {
            self.note_decision(by, reply.leases.iter().map(|lease| &lease.resource));
        }
        self.send_answer(client, by.place, sequence, Answer::Said(outcome));
    }

    fn send_answer(&mut self, client: u32, place: u32, sequence: u64, answer: Answer) {
        let way = self.scenario.network.to_clients(place);
        let now = self.now;
        if self
            .place(place)
            .is_some_and(|place| place.cut_below_until > now)
        {
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let message = Message::Answer {
            client,
            sequence,
            answer,
        };
        if !self.send(&way, message) {
            self.fail_later(client, sequence, self.now + CLIENT_TIMEOUT);
        }
    }

    /// Calls that waited for the parent are tried again, now that it has answered; those that have
    /// waited long enough are answered in any case.
    pub(super) fn serve_waiting(&mut self, id: ServerId, parent_answered: bool) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let clock = place.clock;
        let Some(server) = place.server(id.term) else {
            return;
        };
        let count = if parent_answered {
            server.waiting.len()
        } else {
            server
                .waiting
                .partition_point(|(until, _, _)| *until <= now)
        };
        if count == 0 {
            return;
        }
        let mut answers = Vec::new();
        let mut still = VecDeque::new();
        for (until, client, request) in server.waiting.drain(..count) {
            let waited = WAITS_FOR_PARENT.saturating_sub(until.since(now));
            let again = request.after_waiting(waited);
            let outcome = server.node.handle_get_capacity(&again, clock.shows(now));
            if waits_for_parent(&outcome) && until > now {
                still.push_back((until, client, request));
            } else {
                answers.push((client, request.sequence.unwrap_or_default(), outcome));
            }
        }
        // Either all were tried, or those that are left have waited less long.
        still.append(&mut server.waiting);
        server.waiting = still;
        for (client, sequence, outcome) in answers {
            self.answer(client, id, sequence, outcome);
        }
    }

    /// A child server's request arrives.
    pub(super) fn serve_child(
        &mut self,
        child: ServerId,
        connection: Connection,
        to: ServerId,
        via: Via,
        request: GetServerCapacity,
    ) {
        let (now, settled_after) = (self.now, self.scenario.settled_after);
        let Some(place) = self.place(to.place) else {
            return;
        };
        let local = place.clock.shows(now);
        place.load.note(settled_after, now);
        let Some(server) = place.server(to.term) else {
            return;
        };
        let call = (via == Via::Poll).then(|| request.sequence.unwrap_or_default());
        let answer = server.node.handle_get_server_capacity(&request, via, local);
        let answer = match answer {
            Ok(Outcome::Served(reply)) => {
                self.note_decision(to, reply.leases.iter().map(|lease| &lease.resource));
                self.note(3, child.place.into(), reply.leases.len() as f64);
                Down::Told { call, reply }
            }
            Ok(Outcome::NotMaster(mastership)) => Down::NotMaster { call, mastership },
            Err(_) => Down::Closed(Closed::Said(Closing::Cycle)),
        };
        self.send_down(child, connection, answer);
        self.after(to);
    }

    /// After a node was changed: what it has to tell is told, in its round.
    pub(super) fn after(&mut self, id: ServerId) {
        let round = self.scenario.servers.push_round;
        let now = self.now;
        let mut is_over = false;
        if let Some(server) = self.place(id.place).and_then(|place| place.server(id.term)) {
            while let Some(event) = server.node.poll_event() {
                is_over |= matches!(event, Event::TermEnded { .. });
            }
            if server.node.has_pushes() && server.push_at.is_none() {
                server.push_at = Some(now + round);
            }
        }
        if is_over {
            self.end_term(id);
        }
        self.plan(id.place);
    }

    /// A place is looked at again when something is due there.
    pub(super) fn plan(&mut self, number: u32) {
        let now = self.now;
        let Some(place) = self.place(number) else {
            return;
        };
        let clock = place.clock;
        let all = place.master.iter().map(Box::as_ref).chain(&place.succeeded);
        let due = all.filter_map(|server| server.due(&clock)).min();
        let Some(due) = due.map(|due| due.max(now)) else {
            return;
        };
        if place.wake_at.is_none_or(|at| due < at || at < now) {
            place.wake_at = Some(due);
            self.events.put(due, What::Place(number));
        }
    }

    pub(super) fn wake_place(&mut self, number: u32) {
        let now = self.now;
        let Some(place) = self.place(number) else {
            return;
        };
        if place.wake_at != Some(now) {
            return;
        }
        place.wake_at = None;
        let terms: Vec<u64> = place
            .master
            .iter()
            .map(Box::as_ref)
            .chain(&place.succeeded)
            .map(|server| server.term)
            .collect();
        for term in terms {
            self.run_server(ServerId {
                place: number,
                term,
            });
        }
        self.plan(number);
    }

    fn run_server(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let clock = place.clock;
        let local = clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        if server.is_frozen(now) {
            return;
        }
        if server.frozen_until.is_some() {
            self.thaw(id);
            return;
        }
        if server.isolated_until.is_some_and(|until| until <= now) {
            self.rejoin(id);
        }
        let Some(server) = self.place(id.place).and_then(|place| place.server(id.term)) else {
            return;
        };
        if server
            .node
            .poll_timeout()
            .is_some_and(|due| due.at <= local)
        {
            server.node.handle_timeout(local);
        }
        self.tend_link(id);
        let Some(server) = self.place(id.place).and_then(|place| place.server(id.term)) else {
            return;
        };
        if server.push_at.is_some_and(|at| at <= now) {
            server.push_at = None;
            let pushes = server.node.poll_pushes(local);
            for (name, reply) in pushes {
                self.note_decision(id, reply.leases.iter().map(|lease| &lease.resource));
                self.push(id, &name, reply);
            }
        }
        self.serve_waiting(id, false);
        self.after(id);
    }

    /// How long a message takes.
    pub(super) fn takes(&mut self, way: &crate::scenario::Link) -> Duration {
        use crate::scenario::Latency;
        match way.latency {
            Latency::Constant(span) => span,
            Latency::Uniform(least, most) => self.chance.duration(least, most),
            Latency::Exponential { least, mean } => {
                least + Duration::from_secs_f64(self.chance.exponential(mean.as_secs_f64()))
            }
        }
    }
}

/// Whether a server knows nothing to grant yet: its parent has not answered.
fn waits_for_parent(outcome: &Outcome<GetCapacityReply>) -> bool {
    matches!(outcome, Outcome::Served(reply) if reply
        .refused
        .iter()
        .any(|refused| refused.reason == RefusalReason::NotReady))
}
