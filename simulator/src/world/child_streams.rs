//! Parent's side of the streams of its child servers. The production machine
//! ([`doorward_session::child_streams`]) drives it; this file applies its actions to the node or
//! sends messages down.

use std::time::Duration;

use doorward_engine::id::{Caller, HolderName, Incarnation};
use doorward_engine::messages::{GetServerCapacity, Via};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;
use doorward_session::child_streams::{Hello, StreamAction, StreamLimits, StreamState};
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use doorward_session::parent_session::ConnectionNumber;

use crate::world::World;
use crate::world::faults::FaultEnd;
use crate::world::message::{Down, ServerId};
use crate::world::place::ServerProcess;

/// Messages that may wait at a child that accepts none, as in a server.
const BACKLOG_MAX: usize = 64;

/// Time after which a server gives up a silent connection, as servers do: the ping interval, and
/// the wait for an answer.
const KEEPALIVE: Duration = Duration::from_secs(30 + 20);

impl World<'_> {
    /// Opens a stream for a child server.
    pub(super) fn open_stream(
        &mut self,
        child: ServerId,
        connection: ConnectionNumber,
        to: ServerId,
    ) {
        let Some((server, local)) = self.server_at(to) else {
            return;
        };
        let below = &mut server.below;
        let number = below.streams.handle_connected(local);
        below.lines.insert(number, (child, connection));
        self.send_down(child, connection, Down::Opened);
        self.drain_streams(to);
    }

    /// Notes that a child server has left its connection to a server of its parent, or has ended.
    pub(super) fn leave(&mut self, child: ServerId, above: u64) {
        let Some(parent) = self.places[child.place].parent else {
            return;
        };
        let above = ServerId {
            place: parent,
            term: above,
        };
        let is_cut = self.is_cut(child.place);
        let Some((server, _)) = self.server_at(above) else {
            return;
        };
        let lines = server.below.lines.iter();
        let lines = lines.filter(|(_, line)| line.0 == child);
        let streams: Vec<u64> = lines.map(|(number, _)| *number).collect();
        if is_cut && !streams.is_empty() {
            // In a partition the parent notices only when pings stay unanswered.
            self.end_with(self.now + KEEPALIVE, FaultEnd::Silent(above, streams));
        } else {
            self.note_gone(above, &streams);
        }
    }

    /// Notes that a server has found streams of children gone.
    pub(super) fn note_gone(&mut self, above: ServerId, streams: &[u64]) {
        let Some((server, _)) = self.server_at(above) else {
            return;
        };
        let below = &mut server.below;
        for number in streams {
            if below.lines.remove(number).is_some() {
                below.streams.handle_gone(*number);
            }
        }
        self.drain_streams(above);
    }

    /// Serves a child server's request.
    pub(super) fn serve_child(
        &mut self,
        child: ServerId,
        connection: ConnectionNumber,
        to: ServerId,
        via: Via,
        request: GetServerCapacity,
    ) {
        let (now, settled_after) = (self.now, self.scenario.settled_after);
        let place = &mut self.places[to.place];
        place.note_request(settled_after, now);
        let Some((server, local)) = self.server_at(to) else {
            return;
        };
        let number = match via {
            Via::Poll => None,
            // A request on a closed stream gets no answer.
            Via::Stream => match server.hear_stream(child, connection, &request, local) {
                Some(number) => Some(number),
                None => return self.after(to),
            },
        };
        let call = (via == Via::Poll).then(|| request.sequence.unwrap_or_default());
        let answer = server.node.handle_get_server_capacity(&request, via, local);
        let refused = match &answer {
            Ok(Outcome::Served(_)) => None,
            Ok(Outcome::NotMaster(_)) => Some(CloseReason::NotMaster),
            Err(_) => Some(CloseReason::Cycle),
        };
        if let (Some(number), Some(closing)) = (number, refused) {
            // The answer itself says so.
            server.below.lines.remove(&number);
            server.below.streams.handle_refused(number, closing);
        }
        let answer = match answer {
            Ok(Outcome::Served(reply)) => {
                self.note_decision(to, reply.leases.iter().map(|lease| &lease.resource));
                self.note(3, child.place.into(), reply.leases.len() as f64);
                Down::Reply { call, reply }
            }
            Ok(Outcome::NotMaster(_)) => Down::NotMaster {
                call,
                mastership: self.mastership_said_by(to),
            },
            Err(_) => Down::Closed(ConnectionEnd::ByParent(CloseReason::Cycle)),
        };
        self.send_down(child, connection, answer);
        self.after(to);
    }

    /// Performs the actions of the machine for a server's streams.
    pub(super) fn drain_streams(&mut self, id: ServerId) {
        while let Some((server, local)) = self.server_at(id)
            && let Some(action) = server.below.streams.poll_action()
        {
            match action {
                StreamAction::Subscribe(child) => server.subscribe(&child, true),
                StreamAction::Unsubscribe(child) => server.subscribe(&child, false),
                StreamAction::Push => {
                    let pushes = server.node.poll_pushes(local);
                    for (name, reply) in pushes {
                        self.push(id, &name, Down::Reply { call: None, reply });
                    }
                    // More pushes may follow.
                    if let Some((server, _)) = self.server_at(id)
                        && server.node.has_pushes()
                    {
                        server.below.streams.handle_change(local);
                    }
                }
                StreamAction::Close { number, closing } => {
                    let Some((child, connection)) = server.below.lines.remove(&number) else {
                        continue;
                    };
                    if closing == CloseReason::NotMaster {
                        let mastership = self.mastership_said_by(id);
                        let call = None;
                        self.send_down(child, connection, Down::NotMaster { call, mastership });
                    }
                    let closed = ConnectionEnd::ByParent(closing);
                    self.send_down(child, connection, Down::Closed(closed));
                }
            }
        }
    }

    /// Pushes to a child.
    fn push(&mut self, id: ServerId, child: &HolderName, push: Down) {
        let Some((server, _)) = self.server_at(id) else {
            return;
        };
        let number = server.below.streams.stream_of(child.as_str());
        let Some(number) = number else { return };
        let Some((child, connection)) = server.below.lines.get(&number).copied() else {
            return;
        };
        if self.is_full(child) {
            if let Some((server, _)) = self.server_at(id) {
                server.below.streams.handle_full(number);
            }
            return;
        }
        if let Down::Reply { reply, .. } = &push {
            self.note_decision(id, reply.leases.iter().map(|lease| &lease.resource));
        }
        self.send_down(child, connection, push);
    }

    /// Returns whether a child accepts no message: it is frozen and its backlog is full.
    fn is_full(&mut self, child: ServerId) -> bool {
        let now = self.now;
        let server = self.server_at(child);
        server.is_some_and(|(it, _)| it.is_frozen(now) && it.inbox.len() >= BACKLOG_MAX)
    }
}

impl ServerProcess {
    /// Tells the streams of a changed node or of passed time.
    pub(crate) fn tend_streams(&mut self, local: Time) {
        let (node, below) = (&self.node, &mut self.below);
        let streams = &mut below.streams;
        if below.masterships != node.masterships() {
            below.masterships = node.masterships();
            streams.handle_mastership(below.masterships);
        }
        if below.ancestors != node.ancestors() {
            below.ancestors = node.ancestors().to_vec();
            streams.handle_ancestors(below.ancestors.iter().map(String::as_str));
        }
        if node.has_pushes() {
            streams.handle_change(local);
        }
        // Comes last, so that the round that ends now pushes the changes.
        streams.handle_timeout(local);
    }

    /// Handles a message on a stream. Returns the stream's number if the message needs an answer.
    fn hear_stream(
        &mut self,
        child: ServerId,
        connection: ConnectionNumber,
        request: &GetServerCapacity,
        local: Time,
    ) -> Option<u64> {
        let number = self.below.number(child, connection)?;
        let name = request.server.as_str();
        if self.below.streams.state(number) == Some(StreamState::Opening) {
            let hello = Hello {
                child: name.into(),
                epoch: request.epoch,
                incarnation: request.incarnation.map(Incarnation::get),
                caller: request.caller.map(Caller::get),
                is_refused: self
                    .node
                    .is_refused(&request.server, request.incarnation, local),
                mastership: self.node.masterships(),
                limits: StreamLimits::default(),
            };
            self.below.streams.handle_hello(number, hello);
        }
        let is_answered = self.below.streams.handle_message(number, name);
        is_answered.then_some(number)
    }

    fn subscribe(&mut self, child: &str, open: bool) {
        // The first message of the stream had a valid name.
        if let Ok(child) = HolderName::new(child) {
            self.node.handle_subscription(&child, open);
        }
    }
}
