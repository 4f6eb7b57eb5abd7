//! The way from a server to its parent: streams and calls, connections that break and are made
//! again. What is asked and when, and what an answer does, the engine says.

use std::time::Duration;

use doorward_engine::id::HolderName;
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply};
use doorward_engine::resource::upstream::Pace;

use crate::scenario::WayUp;
use crate::world::World;
use crate::world::event::What;
use crate::world::message::{Message, ServerId};
use crate::world::place::Server;

/// As servers wait for their parent's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// As servers wait before they connect again: from the first to the second, with jitter.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// What is lost on a stream is sent again after this.
const SENT_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl World<'_> {
    /// Whether nothing passes between a place and its parent.
    pub(super) fn is_cut(&self, number: u32) -> bool {
        let Some(place) = self.places.get(number as usize) else {
            return true;
        };
        let above = place
            .parent
            .and_then(|parent| self.places.get(parent as usize));
        place.cut_above_until > self.now
            || above.is_some_and(|above| above.cut_below_until > self.now)
    }

    fn server_of(&mut self, id: ServerId) -> Option<&mut Server> {
        self.places
            .get_mut(id.place as usize)
            .and_then(|place| place.server(id.term))
    }

    /// A server connects to whoever is master above it.
    pub(super) fn connect(&mut self, id: ServerId) {
        let (now, settings) = (self.now, self.scenario.servers);
        let pace = match settings.way_up {
            WayUp::Stream => Pace {
                round: settings.push_round,
                slow: slow_round(settings.refresh_floor).max(settings.push_round),
            },
            WayUp::Poll => Pace {
                round: slow_round(settings.refresh_floor),
                slow: slow_round(settings.refresh_floor),
            },
        };
        let is_cut = self.is_cut(id.place);
        let Some(place) = self.places.get(id.place as usize) else {
            return;
        };
        let (name, local) = (place.name.clone(), place.clock.shows(now));
        let Some(parent) = place.parent else { return };
        let above = self.places.get(parent as usize).filter(|_| !is_cut);
        let master = above.and_then(|above| {
            above.master(now).filter(|master| !master.is_frozen(now))
        });
        let found = master.map(|master| (master.term, master.epoch()));
        let chance = self.chance.between(0.1, 1.0);
        let Some(server) = self.server_of(id) else {
            return;
        };
        let leases_last = || {
            let end = server.node.upstream_leases_end(local);
            end.map_or(Duration::ZERO, |end| end.since(local))
        };
        let epochs = &mut server.way_up.epochs;
        let is_heeded = match found {
            Some((_, Some(epoch))) => epochs.heed(epoch, leases_last).is_ok(),
            _ => true,
        };
        let to = found.map(|(term, _)| term).filter(|_| is_heeded);
        if let (Some(to), WayUp::Stream) = (to, settings.way_up)
            && let Some(above) = self.place(parent).and_then(|above| above.server(to))
        {
            above.node.handle_subscription(&name, true);
        }
        let Some(server) = self.server_of(id) else {
            return;
        };
        let link = &mut server.way_up;
        link.connection += 1;
        link.is_stuck = false;
        link.to = to;
        link.unanswered.clear();
        if to.is_some() {
            link.failures = 0;
            link.retry_at = None;
            server.node.handle_upstream_pace(pace);
            server.node.handle_upstream_lost(local);
        } else {
            let most = BACKOFF
                .0
                .saturating_mul(1 << link.failures.min(10))
                .min(BACKOFF.1);
            link.failures += 1;
            link.retry_at = Some(now + most.mul_f64(chance));
        }
    }

    /// A server's connection to its parent is broken.
    pub(super) fn lose_parent(&mut self, id: ServerId, connection: u64) {
        let Some(server) = self.server_of(id) else {
            return;
        };
        if server.way_up.connection == connection {
            self.disconnect(id);
            self.plan(id.place);
        }
    }

    /// Gives up the connection to the parent; another attempt follows soon.
    fn disconnect(&mut self, id: ServerId) {
        let now = self.now;
        let chance = self.chance.between(0.1, 1.0);
        let Some(place) = self.places.get_mut(id.place as usize) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        server.node.handle_upstream_lost(local);
        let link = &mut server.way_up;
        link.connection += 1;
        link.is_stuck = false;
        let was = link.to.take();
        link.unanswered.clear();
        link.retry_at = Some(now + BACKOFF.0.mul_f64(chance));
        if let Some(above) = was {
            self.unsubscribe(id.place, above);
        }
    }

    /// A stream to the parent's server of that term has ended. Another server of the place may have
    /// one of its own.
    pub(super) fn unsubscribe(&mut self, number: u32, above: u64) {
        let Some(place) = self.place(number) else {
            return;
        };
        let mut all = place.servers.iter();
        let (name, parent) = (place.name.clone(), place.parent);
        if let (Some(parent), false) = (parent, all.any(|it| it.way_up.to == Some(above)))
            && let Some(above) = self.place(parent).and_then(|place| place.server(above))
        {
            above.node.handle_subscription(&name, false);
        }
    }

    /// A server that is not the master any more has no use for its connection to the parent.
    pub(super) fn hang_up(&mut self, id: ServerId) {
        if self.server_of(id).is_some_and(|it| it.way_up.to.is_some()) {
            self.disconnect(id);
        }
    }

    /// Connects, gives up and asks, whatever is due.
    pub(super) fn tend_link(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.places.get_mut(id.place as usize) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let is_master = server.node.mastership(local).is_master();
        let link = &mut server.way_up;
        if !is_master && link.to.is_none() {
            // Only a master asks.
            link.retry_at = None;
            return;
        }
        if link.give_up_at().is_some_and(|at| at <= now) {
            self.disconnect(id);
        } else if link.to.is_none() && link.retry_at.is_some_and(|at| at <= now) {
            self.connect(id);
        }
        self.ask_parent(id);
    }

    fn ask_parent(&mut self, id: ServerId) {
        let (now, way_up) = (self.now, self.scenario.servers.way_up);
        loop {
            let Some(place) = self.places.get(id.place as usize) else {
                return;
            };
            let clock = place.clock;
            let (parent, micros) = (place.parent, self.wall_micros(&clock));
            let Some(server) = self.server_of(id) else {
                return;
            };
            let may_ask = server.way_up.unanswered.is_empty() || way_up == WayUp::Stream;
            let (Some(place), Some(term), true) = (parent, server.way_up.to, may_ask) else {
                return;
            };
            let request = server.node.poll_upstream_request(micros, clock.shows(now));
            let Some(request) = request else { return };
            let link = &mut server.way_up;
            link.unanswered
                .push_back((request.sequence.unwrap_or_default(), now + ANSWER_TIMEOUT));
            let connection = link.connection;
            self.send_up(id, connection, ServerId { place, term }, request);
        }
    }

    fn send_up(
        &mut self,
        child: ServerId,
        connection: u64,
        parent: ServerId,
        request: GetServerCapacity,
    ) {
        let message = Message::ServerAsk {
            child,
            connection,
            parent,
            request,
        };
        self.send_between(child, true, message);
    }

    /// Sends an answer of a parent, or what it tells unasked.
    pub(super) fn send_down(
        &mut self,
        child: ServerId,
        connection: u64,
        sequence: Option<u64>,
        reply: GetServerCapacityReply,
    ) {
        let message = Message::ServerAnswer {
            child,
            connection,
            sequence,
            reply,
        };
        self.send_between(child, false, message);
    }

    /// Sends between a server and its parent: on a stream nothing is lost, but late, and in order.
    fn send_between(&mut self, child: ServerId, up: bool, message: Message) {
        let (now, scenario) = (self.now, self.scenario);
        let way = scenario.network.to_parent(child.place);
        if self.is_cut(child.place) {
            self.stick(child, None);
        }
        if self.is_cut(child.place) || self.is_stuck(child) {
            self.work.messages += 1;
            self.work.lost += 1;
            return;
        }
        if scenario.servers.way_up == WayUp::Poll {
            self.send(&way, message);
            return;
        }
        self.work.messages += 1;
        let mut at = now + self.takes(&way);
        if !self.is_healed && self.chance.happens(way.loss) {
            at = at + SENT_AGAIN_AFTER;
        }
        if let Some(server) = self.server_of(child) {
            let link = &mut server.way_up;
            let last = if up {
                &mut link.last_up
            } else {
                &mut link.last_down
            };
            at = at.max(*last);
            *last = at;
        }
        let slot = self.mail.keep(message);
        self.events.put(at, What::Arrival(slot));
    }

    /// Something is lost in a partition, on the connection of that number or on whatever there is.
    pub(super) fn stick(&mut self, child: ServerId, connection: Option<u64>) {
        if self.scenario.servers.way_up == WayUp::Poll {
            return;
        }
        if let Some(server) = self.server_of(child)
            && connection.is_none_or(|number| number == server.way_up.connection)
        {
            server.way_up.is_stuck = true;
        }
    }

    fn is_stuck(&mut self, child: ServerId) -> bool {
        let server = self.server_of(child);
        server.is_some_and(|server| server.way_up.is_stuck)
    }

    /// Tells a child unasked.
    pub(super) fn push(&mut self, id: ServerId, child: &HolderName, reply: GetServerCapacityReply) {
        let children = self.places.get(id.place as usize).map(|p| &p.children);
        let found = children.into_iter().flatten().find_map(|number| {
            let place = self.places.get(*number as usize)?;
            let mut connected = place.servers.iter().filter(|it| !it.is_twin);
            let master = connected.find(|it| it.way_up.to == Some(id.term))?;
            let is_it = place.name == *child;
            is_it.then_some((
                ServerId {
                    place: *number,
                    term: master.term,
                },
                master.way_up.connection,
            ))
        });
        if let Some((child, connection)) = found {
            self.send_down(child, connection, None, reply);
        }
    }

    /// A parent's answer arrives, or what it tells unasked.
    pub(super) fn hear_parent(
        &mut self,
        id: ServerId,
        connection: u64,
        sequence: Option<u64>,
        reply: GetServerCapacityReply,
    ) {
        let (now, way_up) = (self.now, self.scenario.servers.way_up);
        if self.is_cut(id.place) {
            self.stick(id, Some(connection));
            return;
        }
        let Some(place) = self.places.get_mut(id.place as usize) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let is_current = server.way_up.connection == connection;
        // A stream that is closed tells no more; a late answer to a call is handed in.
        if !is_current && way_up == WayUp::Stream {
            return;
        }
        if server.is_frozen(now) {
            server.inbox.push(Message::ServerAnswer {
                child: id,
                connection,
                sequence,
                reply,
            });
            return;
        }
        if let (true, Some(sequence)) = (is_current, sequence) {
            // Who answers a later one has had the earlier ones.
            let unanswered = &mut server.way_up.unanswered;
            while unanswered
                .front()
                .is_some_and(|(asked, _)| *asked <= sequence)
            {
                unanswered.pop_front();
            }
        }
        server.node.handle_upstream_reply(&reply, local);
        let told: f64 = reply.leases.iter().map(|lease| lease.capacity.get()).sum();
        self.note(4, id.place.into(), told);
        self.serve_waiting(id, true);
        self.ask_parent(id);
        self.after(id);
    }
}

/// As the server's shell does.
fn slow_round(floor: Duration) -> Duration {
    (floor + floor / 16).max(Duration::from_millis(100))
}
