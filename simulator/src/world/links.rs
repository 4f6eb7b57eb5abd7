//! Connection from a server to its parent: the replica's commands become messages, and the replies
//! go back to it. Connections keep the order of messages; a partition stalls them.

use std::time::Duration;

use doorward_replica::{ChildMessage, FromParent, ToParent};
use doorward_session::address::Address;
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::ConnectionNumber;

use crate::scenario::Connection;
use crate::world::{Deed, Line, ServerId, World};

/// Delay of a lost packet on a connection.
const SENT_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl World<'_> {
    /// Returns whether a partition separates a node from its parent.
    pub(super) fn is_cut(&self, number: u32) -> bool {
        let place = &self.places[number];
        let above = place.parent.map(|parent| &self.places[parent]);
        place.cut_above_until > self.now
            || above.is_some_and(|above| above.cut_below_until > self.now)
    }

    /// Executes a command of a server to its connection to the parent.
    pub(super) fn command_link(&mut self, id: ServerId, command: ToParent) {
        match &command {
            ToParent::Connect { connection, to, .. } => self.connect(id, *connection, to),
            ToParent::Close => {
                let server = self.server_of(id);
                if let Some(above) = server.and_then(|it| it.parent_link.to.take()) {
                    self.leave(id, above);
                }
                return;
            }
            // Reports are for people.
            ToParent::Report(_) => return,
            _ => {}
        }
        let link = self.server_of(id).map(|server| server.parent_link);
        if let Some((link, to)) = link.and_then(|link| Some((link, link.to?))) {
            let is_call = matches!(command, ToParent::Call(_));
            let line = (id, link.connection);
            self.send_between(id, true, is_call, move |world| {
                world.handle_from_child(line, to, command);
            });
        }
    }

    /// Begins a connection to the server at an address.
    fn connect(&mut self, id: ServerId, connection: ConnectionNumber, to: &Address) {
        let Some(place) = self.places[id.place].parent else {
            return;
        };
        let above = &self.places[place];
        let slot = above.slot_of(to);
        let mut servers = above.servers.iter().filter(|server| !server.is_twin);
        let runs = servers.find(|server| Some(server.slot) == slot);
        let to = runs.map_or(ServerId { place, term: 0 }, |server| server.id);
        if let Some(server) = self.server_of(id) {
            let link = &mut server.parent_link;
            link.connection = connection;
            link.to = Some(to);
            // Messages on the last connection do not block the new one.
            link.is_stalled = false;
        }
    }

    /// Sends a message down on a connection.
    pub(super) fn send_down(&mut self, line: Line, what: FromParent) {
        let is_call = matches!(&what, FromParent::Reply { call: Some(_), .. });
        self.send_between(line.0, false, is_call, move |world| {
            world.handle_from_parent(line, what);
        });
    }

    /// Sends a message between a server and its parent. A connection delays messages and keeps
    /// their order, but loses none. Calls may be lost or duplicated like other messages.
    fn send_between(&mut self, id: ServerId, up: bool, is_call: bool, arrive: impl Deed + Clone) {
        let way = self.places[id.place].links.parent;
        if self.is_cut(id.place) {
            self.stall_connection(id, None);
        }
        let server = self.server_of(id);
        let is_stalled = server.is_some_and(|server| server.parent_link.is_stalled);
        if is_stalled || self.is_cut(id.place) {
            self.work.messages += 1;
            self.work.lost += 1;
            return;
        }
        if is_call {
            self.send(&way, arrive);
            return;
        }
        self.work.messages += 1;
        let mut at = self.now + self.takes(&way);
        if !self.is_healed && self.chance.happens(way.loss.unwrap_or_default().0) {
            at = at + SENT_AGAIN_AFTER;
        }
        if let Some(server) = self.server_of(id) {
            let link = &mut server.parent_link;
            let last = match up {
                true => &mut link.last_up,
                false => &mut link.last_down,
            };
            at = at.max(*last);
            *last = at;
        }
        self.act(at, arrive);
    }

    /// Stalls a connection that lost a message in a partition: the one of that number, or the
    /// present one.
    fn stall_connection(&mut self, child: ServerId, connection: Option<ConnectionNumber>) {
        if let Some(server) = self.server_of(child)
            && connection.is_none_or(|number| number == server.parent_link.connection)
        {
            server.parent_link.is_stalled = true;
        }
    }

    /// Handles a message at a server of the parent.
    pub(super) fn handle_from_child(&mut self, line: Line, to: ServerId, what: ToParent) {
        let (now, protocol) = (self.now, self.scenario.servers.parent_protocol);
        let (child, connection) = line;
        if self.is_cut(child.place) {
            return self.stall_connection(child, Some(connection));
        }
        let Some((server, local)) = self.server_at(to) else {
            let end = match what {
                ToParent::Connect { .. } => ConnectionEnd::Unreachable,
                _ => ConnectionEnd::Failed,
            };
            return self.send_down(line, FromParent::Closed(end));
        };
        // The kernel accepts connections for a frozen process.
        if server.is_frozen(now) && !matches!(what, ToParent::Connect { .. }) {
            let late = move |world: &mut World<'_>| world.handle_from_child(line, to, what);
            return server.backlog.messages.push(Box::new(late));
        }
        let answer = match what {
            ToParent::Connect { .. } => FromParent::Connected,
            ToParent::Discover => FromParent::Discovered(self.mastership_said_by(to)),
            ToParent::Open if protocol == Connection::Poll => {
                FromParent::Closed(ConnectionEnd::Unimplemented)
            }
            ToParent::Open => {
                let number = server.replica.handle_stream_opened(local);
                server.streams.insert(number, line);
                self.send_down(line, FromParent::Opened);
                return self.drive(to);
            }
            // A request on a closed stream gets no answer.
            ToParent::Send(request) => {
                let found = server.streams.iter().find(|(_, of)| **of == line);
                if let Some(number) = found.map(|(number, _)| *number) {
                    let request = ChildMessage::Request(request);
                    server.replica.handle_stream_message(number, request, local);
                }
                self.count_at_server(to.place);
                return self.drive(to);
            }
            ToParent::Call(request) => return self.serve_child_call(line, to, &request),
            // The child's process does these without a message.
            ToParent::Close | ToParent::Report(_) => return,
        };
        self.send_down(line, answer);
    }

    /// Handles a message from the parent.
    pub(super) fn handle_from_parent(&mut self, line: Line, what: FromParent) {
        let ((id, connection), now) = (line, self.now);
        // Both sides notice the end of a connection, even in a partition.
        if self.is_cut(id.place) && !matches!(what, FromParent::Closed(_)) {
            return self.stall_connection(id, Some(connection));
        }
        let Some(server) = self.server_of(id) else {
            return;
        };
        if server.is_frozen(now) {
            let late = move |world: &mut World<'_>| world.handle_from_parent(line, what);
            return server.backlog.messages.push(Box::new(late));
        }
        server.replica.handle_parent(connection, what);
        self.drive(id);
    }
}
