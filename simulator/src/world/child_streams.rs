//! Parent's side of the streams of its child servers: messages on them go to the replica, and its
//! answers, pushes and ends of streams go down.

use doorward_engine::messages::{GetServerCapacity, Via};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Outcome;
use doorward_replica::{FromParent, StreamEnd, ToChild};
use doorward_session::close_reason::{CloseReason, ConnectionEnd};

use std::time::Duration;

use crate::world::{Line, ServerId, World};

/// Messages that may wait at a child that accepts none, as in a server.
const BACKLOG_MAX: usize = 64;

/// Time after which a server gives up a silent connection, as servers do: the ping interval, and
/// the wait for an answer.
const KEEPALIVE: Duration = Duration::from_secs(30 + 20);

impl World<'_> {
    /// Notes that a child server has left its connection to a server of its parent, or has ended.
    pub(super) fn leave(&mut self, child: ServerId, above: ServerId) {
        let is_cut = self.is_cut(child.place);
        let Some(server) = self.server_of(above) else {
            return;
        };
        let of_child = server.streams.iter().filter(|(_, of)| of.0 == child);
        let streams: Vec<u64> = of_child.map(|(number, _)| *number).collect();
        if is_cut && !streams.is_empty() {
            // In a partition the parent notices only when pings stay unanswered.
            self.act(self.now + KEEPALIVE, move |world| {
                world.note_gone(above, &streams);
            });
        } else {
            self.note_gone(above, &streams);
        }
    }

    /// Notes that a server has found streams of children gone.
    pub(super) fn note_gone(&mut self, above: ServerId, streams: &[u64]) {
        let Some(server) = self.server_of(above) else {
            return;
        };
        for number in streams {
            if server.streams.remove(number).is_some() {
                server.replica.change_streams(|it| it.handle_gone(*number));
            }
        }
        self.drive(above);
    }

    /// Answers a child server's request that came as a call of its own.
    pub(super) fn serve_child_call(&mut self, line: Line, to: ServerId, ask: &GetServerCapacity) {
        self.count_at_server(to.place);
        let Some((server, local)) = self.server_at(to) else {
            return;
        };
        let call = Some(ask.sequence.unwrap_or_default());
        let ask = |node: &mut Node, now| node.handle_get_server_capacity(ask, Via::Poll, now);
        let answer = match server.replica.change(ask, local) {
            Ok(Outcome::Served(reply)) => {
                self.note_decision(to, reply.leases.iter().map(|lease| &lease.resource));
                self.note(3, line.0.place.into(), reply.leases.len() as f64);
                FromParent::Reply {
                    call,
                    reply,
                    invalid: Vec::new(),
                }
            }
            Ok(Outcome::NotMaster(_)) => FromParent::NotMaster {
                call,
                master: self.mastership_said_by(to),
            },
            Err(_) => FromParent::Closed(ConnectionEnd::ByParent(CloseReason::Cycle)),
        };
        self.send_down(line, answer);
        self.drive(to);
    }

    /// Sends a message of a server down a stream, or ends the stream.
    pub(super) fn send_to_child(&mut self, id: ServerId, stream: u64, message: ToChild) {
        let server = self.server_of(id);
        let Some(line) = server.and_then(|it| it.streams.get(&stream).copied()) else {
            return;
        };
        match message {
            ToChild::Answer { reply, .. } | ToChild::Push { reply, .. } => {
                let now = self.now;
                let child = self.server_of(line.0).filter(|it| it.is_frozen(now));
                // A frozen child whose backlog is full accepts no message.
                if child.is_some_and(|it| it.backlog.messages.len() >= BACKLOG_MAX) {
                    return self.input(id, |replica, _| {
                        replica.change_streams(|it| it.handle_full(stream))
                    });
                }
                self.note_decision(id, reply.leases.iter().map(|lease| &lease.resource));
                self.note(3, line.0.place.into(), reply.leases.len() as f64);
                let push = FromParent::Reply {
                    call: None,
                    reply,
                    invalid: Vec::new(),
                };
                self.send_down(line, push);
            }
            ToChild::End(end) => {
                if let Some(server) = self.server_of(id) {
                    server.streams.remove(&stream);
                }
                if let StreamEnd::NotMaster(_) = end {
                    let (call, master) = (None, self.mastership_said_by(id));
                    self.send_down(line, FromParent::NotMaster { call, master });
                }
                let end = ConnectionEnd::ByParent(end.reason());
                self.send_down(line, FromParent::Closed(end));
            }
        }
    }
}
