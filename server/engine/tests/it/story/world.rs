//! Servers of a tree, clients at any of them, and the messages in flight between them, in virtual time.
//!
//! The world does nothing by itself. A story, or a random test, decides when a message arrives, is lost or comes twice,
//! and when time passes. The world calls the public methods of the engine's [`Node`].
//!
//! Between servers there are calls, which may be lost, late and repeated, and streams, which keep their order and may
//! break. Any server may crash, and start again without any knowledge.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::messages::{GetCapacity, GetCapacityReply, Via};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;

use super::client::Client;
use super::mail::{Mail, Message, Way};
use super::story_server::Server;

/// Longest time that a client waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Time for which changes for child servers are gathered.
pub const ROUND: Duration = Duration::from_millis(50);

/// Largest number of calls of a timer at one time. Each does a bounded amount of work, and more may be due.
const TIMEOUTS_MAX: usize = 10_000;

/// Result of a message that arrived.
#[derive(Debug)]
pub enum Arrived {
    /// There is no receiver: the process has ended, or the stream broke.
    Nowhere,
    /// It was received, and needs no answer.
    Received,
    /// It was answered. The answer is in flight under that number.
    Answered(u64),
    /// The receiver is not the master, and says which server is.
    NotMaster(Mastership),
    /// The child that asks is an ancestor.
    Cycle(String),
}

#[derive(Default)]
pub struct World {
    pub now: Time,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    pub mail: Mail,
    /// Number of processes of servers so far.
    started: u64,
}

impl World {
    pub fn add_server(&mut self, server: Server) -> usize {
        self.servers.push(server);
        self.servers.len() - 1
    }

    pub fn add_client(&mut self, client: Client) -> usize {
        self.clients.push(client);
        self.clients.len() - 1
    }

    pub fn server_named(&self, name: &str) -> Option<usize> {
        let mut servers = self.servers.iter();
        servers.position(|it| it.name.as_str() == name)
    }

    pub fn client_named(&self, name: &str) -> Option<usize> {
        let mut clients = self.clients.iter();
        clients.position(|it| it.name.as_str() == name)
    }

    /// Returns the number of servers above one.
    pub fn depth(&self, number: usize) -> usize {
        let parent = self.servers[number].parent;
        parent.map_or(0, |parent| 1 + self.depth(parent))
    }

    /// Returns the time of a server's clock.
    pub fn shown(&self, number: usize) -> Time {
        self.servers[number].shows(self.now)
    }

    /// Returns the number of the next process.
    pub fn next_process(&mut self) -> u64 {
        self.started += 1;
        self.started
    }

    /// Starts the server, for the first time or again. The new process knows nothing, and is no master yet.
    pub fn start(&mut self, number: usize, process: u64, templates: Templates) {
        self.servers[number].start(process, templates);
        self.connect(number);
        self.disconnect_children(number);
    }

    /// Makes the node again, as the shell does when it cannot trust the node any more.
    pub fn remake(&mut self, number: usize, process: u64) {
        self.servers[number].remake(process);
        self.connect(number);
        self.disconnect_children(number);
    }

    pub fn crash(&mut self, number: usize) {
        self.servers[number].up = false;
        self.disconnect(number);
        self.disconnect_children(number);
    }

    /// Renews the streams of its children.
    fn disconnect_children(&mut self, number: usize) {
        for child in 0..self.servers.len() {
            if self.servers[child].parent == Some(number) {
                self.disconnect(child);
            }
        }
    }

    /// Opens a connection to the parent.
    fn connect(&mut self, number: usize) {
        let now = self.shown(number);
        let server = &mut self.servers[number];
        server.connection += 1;
        server.node.handle_upstream_lost(now);
        let name = server.name.clone();
        let is_stream = server.up && !server.is_cut && server.via == Via::Stream;
        if let Some(parent) = server.parent
            && is_stream
            && self.servers[parent].up
        {
            let at = self.shown(parent);
            let parent = &mut self.servers[parent].node;
            parent.handle_subscription(&name, true, at);
        }
    }

    /// Breaks the connection to the parent. Messages on a stream are lost.
    pub fn disconnect(&mut self, number: usize) {
        let name = self.servers[number].name.clone();
        if let Some(parent) = self.servers[number].parent {
            let at = self.shown(parent);
            let parent = &mut self.servers[parent].node;
            parent.handle_subscription(&name, false, at);
        }
        self.connect(number);
    }

    /// Whether a server can reach its parent now.
    pub fn reaches(&self, number: usize) -> bool {
        let server = &self.servers[number];
        let parent = server.parent.map(|parent| &self.servers[parent]);
        server.up && !server.is_cut && parent.is_some_and(|parent| parent.up)
    }

    /// Returns when the timer of a server is due.
    pub fn timer_due(&self, number: usize) -> Option<Time> {
        let server = &self.servers[number];
        let timeout = server.node.poll_timeout().filter(|_| server.up);
        timeout.map(|at| server.truly(at))
    }

    /// Returns when a server has something to ask its parent, if it can.
    pub fn question_due(&self, number: usize) -> Option<Time> {
        let server = &self.servers[number];
        let due = server.node.poll_upstream_timeout();
        let due = due.filter(|_| self.reaches(number));
        due.map(|at| server.truly(at))
    }

    /// Handles the timer of a server, as often as it is due.
    pub fn serve_timer(&mut self, number: usize) {
        let now = self.shown(number);
        let server = &mut self.servers[number];
        if !server.up {
            return;
        }
        for _ in 0..TIMEOUTS_MAX {
            if (server.node.poll_timeout()).is_none_or(|due| due > now) {
                return;
            }
            server.node.handle_timeout(now);
        }
        panic!("at {now}: the timer of {} is due for ever", server.name);
    }

    /// Lets a server send the request to its parent that is due, if there is one. Returns the number of the message.
    pub fn ask_parent(&mut self, number: usize) -> Option<u64> {
        let (now, reaches) = (self.shown(number), self.reaches(number));
        let wall_micros = self.now.as_nanos() / 1_000;
        let server = &mut self.servers[number];
        if !reaches {
            return None;
        }
        let request = server.node.poll_upstream_request(wall_micros, now)?;
        let connection = server.connection;
        let message = Message::ServerRequest(number, connection, request);
        Some(self.mail.send(message))
    }

    /// Lets a server push to its children. Returns the numbers of the messages.
    pub fn push(&mut self, number: usize) -> Vec<u64> {
        let now = self.shown(number);
        let pushes = self.servers[number].node.poll_pushes(now).children;
        let mut sent = Vec::new();
        for (name, reply) in pushes {
            if let Some(child) = self.server_named(name.as_str()) {
                let connection = self.servers[child].connection;
                let message = Message::ServerAnswer(child, connection, reply);
                sent.push(self.mail.send(message));
            }
        }
        sent
    }

    /// Lets a client ask. Returns the number of the message.
    pub fn client_asks(&mut self, number: usize) -> u64 {
        let request = self.clients[number].request(PATIENCE, self.now);
        self.mail.send(Message::Request(number, request))
    }

    /// Lets a client release its lease. Returns the number of the message.
    pub fn client_releases(&mut self, number: usize) -> u64 {
        let release = self.clients[number].release();
        self.mail.send(Message::Release(number, release))
    }

    /// Sends a request to a server, which answers at once.
    pub fn asked(&mut self, home: usize, request: &GetCapacity) -> Outcome<GetCapacityReply> {
        let now = self.shown(home);
        self.servers[home].node.handle_get_capacity(request, now)
    }

    /// Delivers a message. After an answer to a client, work that began under a larger lease continues for `lingers`.
    pub fn deliver(&mut self, number: u64, lingers: Duration) -> Arrived {
        match self.mail.take(number) {
            None => Arrived::Nowhere,
            Some(Message::Request(client, request)) => self.deliver_request(client, &request),
            Some(Message::Answer(client, sequence, reply)) => {
                let lease = reply.leases.first();
                self.clients[client].answer(sequence, lease, lingers, self.now);
                Arrived::Received
            }
            Some(Message::Release(client, release)) => {
                let home = self.clients[client].home;
                if !self.servers[home].up {
                    return Arrived::Nowhere;
                }
                let now = self.shown(home);
                let node = &mut self.servers[home].node;
                match node.handle_release_capacity(&release, now) {
                    Outcome::Served(_) => Arrived::Received,
                    Outcome::NotMaster(mastership) => Arrived::NotMaster(mastership),
                }
            }
            Some(message) => self.deliver_between_servers(message),
        }
    }

    fn deliver_request(&mut self, client: usize, request: &GetCapacity) -> Arrived {
        let home = self.clients[client].home;
        if !self.servers[home].up {
            return Arrived::Nowhere;
        }
        match self.asked(home, request) {
            Outcome::Served(reply) => {
                let sequence = request.sequence.unwrap_or_default();
                let answer = Message::Answer(client, sequence, reply);
                Arrived::Answered(self.mail.send(answer))
            }
            Outcome::NotMaster(mastership) => Arrived::NotMaster(mastership),
        }
    }

    fn deliver_between_servers(&mut self, message: Message) -> Arrived {
        let Some((child, connection, way)) = message.link() else {
            return Arrived::Nowhere;
        };
        let server = &self.servers[child];
        let Some(parent) = server.parent else {
            return Arrived::Nowhere;
        };
        // A call still arrives when its caller is gone. Late answers to calls reach the node as well, which must
        // recognise them. A broken stream loses its messages.
        let is_stale = server.via == Via::Stream && server.connection != connection;
        let receiver = if way == Way::Up { parent } else { child };
        if is_stale || !self.servers[receiver].up {
            return Arrived::Nowhere;
        }
        let (now, via) = (self.shown(receiver), server.via);
        let node = &mut self.servers[receiver].node;
        match message {
            Message::ServerRequest(_, _, request) => {
                match node.handle_get_server_capacity(&request, via, now) {
                    Ok(Outcome::Served(reply)) => {
                        let answer = Message::ServerAnswer(child, connection, reply);
                        Arrived::Answered(self.mail.send(answer))
                    }
                    Ok(Outcome::NotMaster(mastership)) => Arrived::NotMaster(mastership),
                    Err(cycle) => Arrived::Cycle(cycle.to_string()),
                }
            }
            Message::ServerAnswer(_, _, reply) => {
                node.handle_upstream_reply(&reply, now);
                Arrived::Received
            }
            _ => Arrived::Nowhere,
        }
    }

    /// Returns the amount that all clients are using now.
    pub fn used(&self) -> ExactSum {
        let mut used = ExactSum::ZERO;
        let using = self.clients.iter().map(|client| client.uses(self.now));
        using.for_each(|amount: Amount| used.add(amount));
        used
    }

    /// Asserts that all sums equal their parts, in all servers.
    pub fn assert_consistent(&self) {
        for server in self.servers.iter().filter(|server| server.up) {
            server.node.assert_consistent();
        }
    }
}
