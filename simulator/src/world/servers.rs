//! What servers do: the shell around [`Node`](doorward_engine::node::Node), and elections.

use std::time::Duration;

use doorward_engine::node::event::Event;
use doorward_engine::node::mastership::{Mastership, Outcome, Term};
use doorward_engine::request::{GetCapacity, GetCapacityReply};
use doorward_engine::template::Templates;
use doorward_session::closing::Closed;

use crate::world::World;
use crate::world::event::What;
use crate::world::lengths::Lengths;
use crate::world::message::{Answer, Channel, Down, Message, ServerId};
use crate::world::place::{Place, Server};
use crate::world::seats::Behind;

/// As the client library waits for an answer.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

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
        let mut server = Server::new(place, seed, scenario.servers, templates, now);
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
            let gone = ServerId {
                place: number,
                term: gone.term,
            };
            self.leave(gone, above);
        }
        // Clients whose calls waited here are told nothing, and notice.
        for waiting in gone.waiting {
            let (client, sequence) = (waiting.client, waiting.sequence());
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
        match server.node.handle_get_capacity(&request, clock.shows(now)) {
            Outcome::Served(reply) => {
                self.note_decision(to, reply.leases.iter().map(|lease| &lease.resource));
                self.attend(to, client, request, reply);
            }
            not_master @ Outcome::NotMaster(_) => self.answer(client, to, sequence, not_master),
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

    /// A client's call is answered.
    pub(super) fn answer(
        &mut self,
        client: u32,
        by: ServerId,
        sequence: u64,
        outcome: Outcome<GetCapacityReply>,
    ) {
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

    /// After a node was changed: what it has to tell is told, in its round.
    pub(super) fn after(&mut self, id: ServerId) {
        let mut is_over = false;
        if let Some((server, local)) = self.server_at(id) {
            while let Some(event) = server.node.poll_event() {
                is_over |= matches!(event, Event::TermEnded { .. });
            }
            server.tend_streams(local);
        }
        self.drain_streams(id);
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
