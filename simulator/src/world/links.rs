//! Connection from a server to its parent, driven by the production session: its actions become
//! messages, and the replies go back to it. Connections keep the order of messages; a partition
//! stalls them. The engine decides what to ask and what an answer changes.

use std::time::Duration;

use doorward_engine::messages::{GetServerCapacity, GetServerCapacityReply, Via};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::resource::parent::ParentPace;
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::{
    self as session, AnsweredResource, ConnectionNumber, Disposition, ParentAction, ParentReport,
    Reply, Transport,
};

use crate::scenario::ParentProtocol;
use crate::world::World;
use crate::world::message::{Down, DownMessage, Message, ServerId, Up, UpMessage};

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

    /// Gives a server's session the time and the state of its node, and performs its actions.
    pub(super) fn drive_parent_link(&mut self, id: ServerId) {
        if self.places[id.place].parent.is_none() {
            return;
        }
        let chance = self.chance.uniform();
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        let (node, session) = (&server.node, &mut server.parent_link.session);
        let is_master = node.mastership(local).is_master();
        session.handle_mastership(is_master, chance, local);
        session.handle_timeout(chance, local);
        if node.poll_upstream_timeout().is_some_and(|at| at <= local) {
            session.handle_due();
        }
        self.drain_link(id);
    }

    /// Closes the connection to the parent of a server that is no longer master or ends.
    pub(super) fn drop_parent_link(&mut self, id: ServerId) {
        if let Some((server, local)) = self.server_at(id) {
            server.parent_link.is_down = false;
            let session = &mut server.parent_link.session;
            session.handle_mastership(false, 0.0, local);
            self.drain_link(id);
        }
    }

    /// Performs the actions of the session.
    fn drain_link(&mut self, id: ServerId) {
        while let Some(action) = self
            .server_of(id)
            .and_then(|server| server.parent_link.session.poll_action())
        {
            match action {
                ParentAction::Connect { .. } => {
                    // Messages on the last connection do not block the new one.
                    if let Some(server) = self.server_of(id) {
                        server.parent_link.is_stalled = false;
                    }
                    self.connect(id);
                }
                ParentAction::Discover => self.send_up(id, Up::Discover),
                ParentAction::Open => self.send_up(id, Up::Open),
                ParentAction::SetPace(way) => self.set_pace(id, way),
                ParentAction::Send { is_hello } => {
                    if let Some(request) = self.next_request(id, is_hello) {
                        self.send_up(id, Up::Ask(request));
                    }
                }
                ParentAction::Call => match self.next_request(id, false) {
                    Some(request) => self.send_up(id, Up::Call(request)),
                    None => {
                        if let Some(server) = self.server_of(id)
                            && server.node.poll_upstream_timeout().is_none()
                        {
                            server.parent_link.session.handle_nothing_due();
                        }
                    }
                },
                ParentAction::Close => self.close_link(id),
                ParentAction::Report(report) => self.note_report(id, &report),
            }
        }
    }

    /// Connects to the server at the next address.
    fn connect(&mut self, id: ServerId) {
        let parent = self.places[id.place].parent;
        let server = self.server_of(id);
        let address = server.and_then(|it| it.parent_link.session.address().cloned());
        let runs = address.zip(parent);
        let runs = runs.and_then(|(address, parent)| self.places[parent].at_address(&address));
        let to = runs.map_or(0, |server| server.id.term);
        if let Some(server) = self.server_of(id) {
            server.parent_link.to = Some(to);
        }
        self.send_up(id, Up::Connect);
    }

    fn close_link(&mut self, id: ServerId) {
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        server.node.handle_upstream_lost(local);
        if let Some(above) = server.parent_link.to.take() {
            self.leave(id, above);
        }
    }

    fn set_pace(&mut self, id: ServerId, way: Transport) {
        let settings = self.scenario.servers;
        let slow = slow_round(settings.refresh_floor);
        let round = match way {
            Transport::Stream => settings.push_round,
            Transport::Calls => slow,
        };
        if let Some((server, local)) = self.server_at(id) {
            let slow = slow.max(round);
            server
                .node
                .handle_upstream_pace(ParentPace { round, slow }, local);
        }
    }

    /// Returns the request that is due at a server's node, or the first one of a stream.
    fn next_request(&mut self, id: ServerId, is_hello: bool) -> Option<GetServerCapacity> {
        let now = self.now;
        let clock = self.places[id.place].clock;
        let (micros, local) = (self.wall_micros(&clock), clock.shows(now));
        let server = self.server_of(id)?;
        let due = server.node.poll_upstream_request(micros, local);
        let greeting = |node: &Node| {
            let greeting = is_hello.then(|| node.upstream_greeting(local));
            greeting.flatten()
        };
        let request = due.or_else(|| greeting(&server.node))?;
        let session = &mut server.parent_link.session;
        let resources = request.asks.iter();
        let resources = resources.map(|ask| AnsweredResource::number_of(ask.resource.as_str()));
        session.handle_sent(request.sequence.unwrap_or_default(), resources, local);
        // More may be due at once.
        let next = server.node.poll_upstream_timeout();
        if next.is_some_and(|at| at <= local) {
            session.handle_due();
        }
        Some(request)
    }

    /// Records whether the parent answers, as servers do. Waiting calls depend on it.
    fn note_report(&mut self, id: ServerId, report: &ParentReport) {
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        let link = &mut server.parent_link;
        match report {
            ParentReport::Down { .. } | ParentReport::Replaced { .. } => link.is_down = true,
            ParentReport::Answers { .. } => link.is_down = link.session.is_second(local),
            ParentReport::Polls { .. }
            | ParentReport::Redirected { .. }
            | ParentReport::EpochForgotten { .. } => {}
        }
    }

    fn send_up(&mut self, child: ServerId, what: Up) {
        let parent = self.places[child.place].parent;
        let link = self.server_of(child).map(|server| &server.parent_link);
        let Some((link, place)) = link.zip(parent) else {
            return;
        };
        let Some(term) = link.to else { return };
        let is_call = matches!(what, Up::Call(_));
        let message = UpMessage {
            child,
            connection: link.session.connection(),
            to: ServerId { place, term },
            what,
        };
        self.send_between(child, true, is_call, Message::Up(message));
    }

    /// Sends a message down on a connection.
    pub(super) fn send_down(&mut self, child: ServerId, connection: ConnectionNumber, what: Down) {
        let is_call = matches!(&what, Down::Reply { call: Some(_), .. });
        let message = DownMessage {
            child,
            connection,
            what,
        };
        self.send_between(child, false, is_call, Message::Down(message));
    }

    /// Sends a message between a server and its parent. A connection delays messages and keeps
    /// their order, but loses none. Calls may be lost or duplicated like other messages.
    fn send_between(&mut self, child: ServerId, up: bool, is_call: bool, message: Message) {
        let (now, scenario) = (self.now, self.scenario);
        let way = scenario.network.to_parent(child.place);
        if self.is_cut(child.place) {
            self.stall_connection(child, None);
        }
        if self.is_cut(child.place) || self.is_stalled(child) {
            self.work.messages += 1;
            self.work.lost += 1;
            return;
        }
        if is_call {
            self.send(&way, message);
            return;
        }
        self.work.messages += 1;
        let mut at = now + self.takes(&way);
        if !self.is_healed && self.chance.happens(way.loss) {
            at = at + SENT_AGAIN_AFTER;
        }
        if let Some(server) = self.server_of(child) {
            let link = &mut server.parent_link;
            let last = if up {
                &mut link.last_up
            } else {
                &mut link.last_down
            };
            at = at.max(*last);
            *last = at;
        }
        self.deliver(at, message);
    }

    /// Stalls a connection that lost a message in a partition: the one of that number, or the
    /// present one.
    pub(super) fn stall_connection(
        &mut self,
        child: ServerId,
        connection: Option<ConnectionNumber>,
    ) {
        if let Some(server) = self.server_of(child)
            && connection.is_none_or(|number| number == server.parent_link.session.connection())
        {
            server.parent_link.is_stalled = true;
        }
    }

    fn is_stalled(&mut self, child: ServerId) -> bool {
        let server = self.server_of(child);
        server.is_some_and(|server| server.parent_link.is_stalled)
    }

    /// Handles a message at a server of the parent.
    pub(super) fn handle_from_child(&mut self, message: UpMessage) {
        let (now, protocol) = (self.now, self.scenario.servers.parent_protocol);
        let (child, connection, to) = (message.child, message.connection, message.to);
        if self.is_cut(child.place) {
            return self.stall_connection(child, Some(connection));
        }
        let Some(server) = self.server_of(to) else {
            let answer = match message.what {
                Up::Connect => Down::Closed(ConnectionEnd::Unreachable),
                _ => Down::Closed(ConnectionEnd::Failed),
            };
            return self.send_down(child, connection, answer);
        };
        // The kernel accepts connections for a frozen process.
        if server.is_frozen(now) && !matches!(message.what, Up::Connect) {
            return server.inbox.push(Message::Up(message));
        }
        let answer = match message.what {
            Up::Connect => Down::Connected,
            Up::Discover => Down::Discovered(self.mastership_said_by(to)),
            Up::Open if protocol == ParentProtocol::Poll => {
                Down::Closed(ConnectionEnd::Unimplemented)
            }
            Up::Open => return self.open_stream(child, connection, to),
            Up::Ask(request) => {
                return self.serve_child(child, connection, to, Via::Stream, request);
            }
            Up::Call(request) => {
                return self.serve_child(child, connection, to, Via::Poll, request);
            }
        };
        self.send_down(child, connection, answer);
    }

    /// Handles a message from the parent.
    pub(super) fn handle_from_parent(&mut self, message: DownMessage) {
        let (id, connection, now) = (message.child, message.connection, self.now);
        // Both sides notice the end of a connection, even in a partition.
        if self.is_cut(id.place) && !matches!(message.what, Down::Closed(_)) {
            return self.stall_connection(id, Some(connection));
        }
        let chance = self.chance.uniform();
        let Some((server, at)) = self.server_at(id) else {
            return;
        };
        if server.is_frozen(now) {
            return server.inbox.push(Message::Down(message));
        }
        let leases_last = |node: &Node| {
            let end = node.upstream_leases_end(at);
            end.map_or(Duration::ZERO, |end| end.since(at))
        };
        let session = &mut server.parent_link.session;
        match message.what {
            Down::Connected => session.handle_connected(connection, at),
            Down::Opened => session.handle_opened(connection, at),
            Down::Closed(closed) => session.handle_closed(connection, closed, chance, at),
            Down::Discovered(mastership) => {
                let master = master_info(&mastership);
                let last = leases_last(&server.node);
                session.handle_discovered(connection, master, last, chance, at);
            }
            Down::NotMaster { call, mastership } => {
                let reply = Reply {
                    call,
                    not_master: Some(master_info(&mastership)),
                    answered: &[],
                };
                let last = leases_last(&server.node);
                let _drop = session.handle_reply(connection, &reply, last, chance, at);
            }
            Down::Reply { call, reply } => {
                let meta = Reply {
                    call,
                    not_master: None,
                    answered: &answered(&reply),
                };
                let verdict = session.handle_reply(connection, &meta, Duration::ZERO, chance, at);
                if verdict == Disposition::Keep {
                    server.node.handle_upstream_reply(&reply, at);
                    let granted: f64 = reply.leases.iter().map(|it| it.capacity.get()).sum();
                    self.note(4, id.place.into(), granted);
                    self.serve_waiting(id, true);
                }
            }
        }
        self.drive_parent_link(id);
        self.after(id);
    }
}

/// Converts what a server says about the master of its node.
fn master_info(mastership: &Mastership) -> session::MasterInfo<'_> {
    session::MasterInfo {
        is_master: mastership.is_master(),
        master: match mastership {
            Mastership::Elsewhere { master_address, .. } => Some(master_address),
            Mastership::Master { .. } | Mastership::Unknown => None,
        },
        epoch: mastership.epoch(),
    }
}

/// Lists the resources that a reply answers.
fn answered(reply: &GetServerCapacityReply) -> Vec<AnsweredResource> {
    let leases = reply.leases.iter().map(|it| (&it.resource, it.sequence));
    let refused = reply.refused.iter().map(|it| (&it.resource, None));
    let all = leases
        .chain(refused)
        .map(|(resource, to)| AnsweredResource {
            resource: AnsweredResource::number_of(resource.as_str()),
            to,
        });
    all.collect()
}

/// Returns the slow refresh round, as the server computes it.
fn slow_round(floor: Duration) -> Duration {
    (floor + floor / 16).max(Duration::from_millis(100))
}
