//! A tree of nodes, clients at any of them, and a network between them all; on virtual time and
//! from one seed.
//!
//! Between servers there are calls, which may be lost, late and repeated, and streams, which keep
//! their order and may break. Any server may crash, and come back knowing nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::algorithm::Reason;
use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply, Via};
use doorward_engine::request::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::resource::upstream::Pace;
use doorward_engine::snapshot::ResourceSnapshot;
use doorward_engine::template::{AlgorithmKind, Templates};
use doorward_engine::time::Time;

use crate::chance::Chance;
use crate::client::{Client, resource};
use crate::world::{Faults, Setup};

/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How changes are gathered on streams.
const ROUND: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
enum Message {
    Request(usize, GetCapacity),
    Answer(usize, u64, GetCapacityReply),
    Release(usize, ReleaseCapacity),
    /// From a server to its parent, on the connection of that number.
    ServerRequest(usize, u64, GetServerCapacity),
    /// To a server from its parent.
    ServerAnswer(usize, u64, GetServerCapacityReply),
}

pub struct Server {
    pub node: Node,
    pub parent: Option<usize>,
    pub depth: usize,
    pub up: bool,
    /// Whether it speaks to its parent on a stream.
    pub via: Via,
    /// Counts connections to the parent; a stream that broke takes what is on its way with it.
    connection: u64,
    /// Until then, nothing gets through to the parent.
    cut_until: Time,
    /// When the newest call is given up.
    give_up: Option<Time>,
    /// When the last message of a stream arrives: it keeps its order.
    last_up: Time,
    last_down: Time,
    push_at: Option<Time>,
    epoch: u64,
}

pub struct TreeWorld {
    pub seed: u64,
    pub chance: Chance,
    pub servers: Vec<Server>,
    pub clients: Vec<Client>,
    /// Which server each client asks.
    pub homes: Vec<usize>,
    pub setup: Setup,
    pub now: Time,
    pub floor: Duration,
    pub faults: Faults,
    network: BTreeMap<(Time, u64), Message>,
    messages: u64,
    pub excused_until: Time,
    pub pushes: u64,
}

/// What the tree looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Streams,
    Calls,
    Mixed,
}

impl TreeWorld {
    pub fn new(seed: u64, kind: AlgorithmKind, depth: usize, links: Links) -> Self {
        let mut chance = Chance(seed);
        let setup = Setup {
            kind,
            capacity: chance.one_of(&[1.0, 77.7, 100.0, 1e6]),
            lease: chance.one_of(&[Duration::from_secs(20), Duration::from_secs(60)]),
            refresh: Duration::from_secs(5),
            shrink: doorward_engine::template::Shrink::Acknowledged,
            exists: true,
        };
        let floor = chance.one_of(&[Duration::ZERO, Duration::from_secs(1)]);
        let start = Time::from_secs(1000);
        let mut world = Self {
            seed,
            faults: Faults::some(&mut chance),
            chance,
            servers: Vec::new(),
            clients: Vec::new(),
            homes: Vec::new(),
            setup,
            now: start,
            floor,
            network: BTreeMap::new(),
            messages: 0,
            excused_until: Time::ZERO,
            pushes: 0,
        };
        world.grow(None, depth, links);
        for number in 0..1 + world.chance.below(16) {
            let home = world.chance.below(world.servers.len());
            let at = start + world.chance.span(Duration::from_secs(5));
            let (wants, priority) = (world.chance.wants(), world.chance.one_of(&[0, 1, 7]));
            let gauge = world.chance.happens(0.3);
            world
                .clients
                .push(Client::new(number, wants, priority, gauge, at));
            world.homes.push(home);
        }
        world
    }

    fn grow(&mut self, parent: Option<usize>, levels: usize, links: Links) {
        let number = self.servers.len();
        let via = match links {
            Links::Streams => Via::Stream,
            Links::Calls => Via::Poll,
            Links::Mixed => self.chance.one_of(&[Via::Stream, Via::Poll]),
        };
        self.servers.push(Server {
            node: Node::new(self.config(number, parent), Templates::default()),
            parent,
            depth: parent.map_or(0, |parent| self.servers[parent].depth + 1),
            up: false,
            via,
            connection: 0,
            cut_until: Time::ZERO,
            give_up: None,
            last_up: Time::ZERO,
            last_down: Time::ZERO,
            push_at: None,
            epoch: 0,
        });
        self.start(number);
        if levels > 1 {
            for _ in 0..1 + self.chance.below(3) {
                self.grow(Some(number), levels - 1, links);
            }
        }
    }

    fn config(&self, number: usize, parent: Option<usize>) -> Config {
        Config {
            name: format!("node-{number}"),
            has_parent: parent.is_some(),
            incarnation: Incarnation::new(
                1 + number as u64 * 1_000_000 + self.servers.get(number).map_or(0, |it| it.epoch),
            )
            .unwrap(),
            seed: self.seed + number as u64,
            refresh_floor: self.floor,
            ..Config::default()
        }
    }

    /// The server comes (back) to life, knowing nothing.
    pub fn start(&mut self, number: usize) {
        let parent = self.servers[number].parent;
        let templates = if parent.is_none() {
            self.setup.templates()
        } else {
            Templates::default()
        };
        let mut node = Node::new(self.config(number, parent), templates);
        let server = &mut self.servers[number];
        server.epoch += 1;
        node.handle_mastership(
            Mastership::Master {
                epoch: Some(server.epoch),
            },
            self.now,
        );
        server.node = node;
        server.up = true;
        server.push_at = None;
        server.give_up = None;
        self.connect(number);
        // Streams of its children are new ones.
        for child in 0..self.servers.len() {
            if self.servers[child].parent == Some(number) {
                self.disconnect(child, Duration::ZERO);
            }
        }
        // What was lowered and is not down yet is learned from the holders as it is.
        if parent.is_none() && self.excused_until > self.now {
            self.excuse();
        }
    }

    pub fn crash(&mut self, number: usize) {
        self.servers[number].up = false;
        self.disconnect(number, Duration::ZERO);
        for child in 0..self.servers.len() {
            if self.servers[child].parent == Some(number) {
                self.disconnect(child, Duration::ZERO);
            }
        }
    }

    fn name(&self, number: usize) -> HolderName {
        HolderName::new(&format!("node-{number}")).unwrap()
    }

    /// A new connection to the parent.
    fn connect(&mut self, number: usize) {
        let name = self.name(number);
        let server = &mut self.servers[number];
        server.connection += 1;
        let pace = match server.via {
            Via::Stream => Pace {
                round: ROUND,
                slow: Duration::from_millis(500),
            },
            Via::Poll => {
                let floor = self.floor.max(Duration::from_millis(100));
                let floor = floor + floor / 16;
                Pace {
                    round: floor,
                    slow: floor,
                }
            }
        };
        server.node.handle_upstream_pace(pace);
        server.node.handle_upstream_lost(self.now);
        server.give_up = None;
        let via = server.via;
        if let (Some(parent), Via::Stream) = (server.parent, via)
            && self.servers[parent].up
        {
            self.servers[parent].node.handle_subscription(&name, true);
        }
    }

    /// The connection to the parent breaks, and nothing gets through for some time.
    pub fn disconnect(&mut self, number: usize, length: Duration) {
        let name = self.name(number);
        let server = &mut self.servers[number];
        server.connection += 1;
        server.cut_until = self.now + length;
        server.node.handle_upstream_lost(self.now);
        server.give_up = None;
        if let Some(parent) = server.parent {
            self.servers[parent].node.handle_subscription(&name, false);
        }
        self.connect(number);
    }

    /// Whether a server can reach its parent now.
    fn reaches(&self, number: usize) -> bool {
        let server = &self.servers[number];
        let parent = server.parent.map(|parent| &self.servers[parent]);
        server.up && server.cut_until <= self.now && parent.is_some_and(|parent| parent.up)
    }

    /// Does what comes next, and checks everything that must always hold.
    pub fn step(&mut self) {
        if self.chance.happens(self.faults.upheaval) {
            self.upheaval();
        }
        let message = self.network.keys().next().copied();
        let client = (0..self.clients.len())
            .filter(|number| !self.clients[*number].crashed)
            .map(|number| (self.clients[number].next_send, number))
            .min();
        let mut soonest = [message.map(|(at, _)| at), client.map(|(at, _)| at)]
            .into_iter()
            .flatten()
            .min();
        let mut server = None;
        for number in 0..self.servers.len() {
            if let Some(at) = self.server_due(number)
                && soonest.is_none_or(|before| at < before)
            {
                soonest = Some(at);
                server = Some(number);
            }
        }
        let Some(next) = soonest else {
            self.now = self.now + Duration::from_secs(1);
            return;
        };
        self.check();
        self.now = self.now.max(next);
        self.check();
        if let Some(number) = server {
            self.run_server(number);
        } else if let Some(key) = message.filter(|(at, _)| *at <= self.now) {
            let message = self.network.remove(&key).unwrap();
            self.deliver(message);
        } else if let Some((_, number)) = client {
            let request = self.clients[number].request(PATIENCE, self.now);
            self.send(&Message::Request(number, request));
        }
        self.check();
    }

    pub fn run_until(&mut self, end: Time) {
        while self.now < end {
            self.step();
        }
    }

    /// When a server has something to do by itself.
    fn server_due(&self, number: usize) -> Option<Time> {
        let server = &self.servers[number];
        if !server.up {
            return None;
        }
        let timeout = server.node.poll_timeout().map(|timeout| timeout.at);
        let ask = server
            .node
            .poll_upstream_timeout()
            .filter(|_| server.give_up.is_none() || server.via == Via::Stream)
            .map(|at| at.max(server.cut_until))
            .filter(|_| server.parent.is_some_and(|parent| self.servers[parent].up));
        [timeout, ask, server.give_up, server.push_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn run_server(&mut self, number: usize) {
        let (now, reaches) = (self.now, self.reaches(number));
        let server = &mut self.servers[number];
        if server
            .node
            .poll_timeout()
            .is_some_and(|timeout| timeout.at <= now)
        {
            server.node.handle_timeout(now);
        }
        if server.give_up.is_some_and(|at| at <= now) {
            // A stream that does not answer is taken for broken.
            self.disconnect(number, Duration::ZERO);
        }
        let server = &mut self.servers[number];
        let may_ask = server.give_up.is_none() || server.via == Via::Stream;
        if reaches
            && may_ask
            && let Some(request) = server
                .node
                .poll_upstream_request(now.as_nanos() / 1000, now)
        {
            server.give_up = Some(server.give_up.unwrap_or(now + PATIENCE));
            let connection = server.connection;
            self.send(&Message::ServerRequest(number, connection, request));
        }
        let server = &mut self.servers[number];
        if server.push_at.is_some_and(|at| at <= now) {
            server.push_at = None;
            let pushes = server.node.poll_pushes(now);
            self.pushes += pushes.len() as u64;
            for (name, reply) in pushes {
                let child: usize = name.as_str().trim_start_matches("node-").parse().unwrap();
                let connection = self.servers[child].connection;
                self.send(&Message::ServerAnswer(child, connection, reply));
            }
        }
        self.after(number);
    }

    /// After a node was changed.
    fn after(&mut self, number: usize) {
        let server = &mut self.servers[number];
        while server.node.poll_event().is_some() {}
        if server.node.has_pushes() && server.push_at.is_none() {
            server.push_at = Some(self.now + ROUND);
        }
    }

    fn deliver(&mut self, message: Message) {
        let now = self.now;
        match message {
            Message::Request(number, request) => {
                let home = self.homes[number];
                if !self.servers[home].up {
                    return;
                }
                let sequence = request.sequence.unwrap();
                let node = &mut self.servers[home].node;
                if let Outcome::Served(reply) = node.handle_get_capacity(&request, now) {
                    self.check_reply(home, &reply);
                    self.send(&Message::Answer(number, sequence, reply));
                }
                self.after(home);
            }
            Message::Answer(number, sequence, reply) => {
                let lingers = self.chance.span(Duration::from_secs(20));
                self.clients[number].answer(sequence, reply.leases.first(), lingers, now);
            }
            Message::Release(number, release) => {
                let home = self.homes[number];
                if self.servers[home].up {
                    self.servers[home]
                        .node
                        .handle_release_capacity(&release, now);
                    self.after(home);
                }
            }
            Message::ServerRequest(number, connection, request) => {
                let server = &self.servers[number];
                let parent = server.parent.unwrap();
                // A call that was made still arrives when its caller is gone; a stream breaks.
                let stale = server.via == Via::Stream && server.connection != connection;
                if !self.servers[parent].up || stale {
                    return;
                }
                let via = server.via;
                let node = &mut self.servers[parent].node;
                let answer = node.handle_get_server_capacity(&request, via, now).unwrap();
                if let Outcome::Served(reply) = answer {
                    self.send(&Message::ServerAnswer(number, connection, reply));
                }
                self.after(parent);
            }
            Message::ServerAnswer(number, connection, reply) => {
                let server = &mut self.servers[number];
                if !server.up || server.connection != connection && server.via == Via::Stream {
                    return;
                }
                // Late answers to calls are handed in, too: the node must know them.
                if server.connection == connection {
                    server.give_up = None;
                }
                server.node.handle_upstream_reply(&reply, now);
                self.after(number);
            }
        }
    }

    /// nested_leases and bounded_gets, for an answer to a client: its lease ends no later than its
    /// server's own, by the books of the parent, who gives to others what has ended.
    fn check_reply(&self, home: usize, reply: &GetCapacityReply) {
        for lease in &reply.leases {
            assert!(lease.capacity.get().is_finite(), "seed {}", self.seed);
            let Some(parent) = self.servers[home].parent else {
                continue;
            };
            let name = self.name(home);
            let children = self.servers[parent]
                .node
                .child_snapshots(&resource(), self.now);
            let own = children.iter().find(|child| child.holder.name == name);
            // A parent that is gone or new has no book of it.
            let Some(own) = own.filter(|_| self.servers[parent].up) else {
                continue;
            };
            // A parent that learns does not believe a child that says it has more than there is, as
            // it does when the capacity was lowered, until the child has heard of that.
            let capacity = self.snapshot(parent).map_or(0.0, |it| it.capacity);
            let says = own.child.as_ref().and_then(|child| child.has);
            if own.why.reason == Reason::Learning && says.is_some_and(|has| has > capacity) {
                continue;
            }
            let ends = self.now + lease.expires_in;
            assert!(
                ends <= own.reserved_until || lease.capacity.is_zero(),
                "seed {}: {lease:?} ends at {ends}, outlives {own:?}",
                self.seed
            );
        }
    }

    fn send(&mut self, message: &Message) {
        let (up, ordered) = match message {
            Message::ServerRequest(number, ..) => (
                Some((*number, true)),
                self.servers[*number].via == Via::Stream,
            ),
            Message::ServerAnswer(number, ..) => (
                Some((*number, false)),
                self.servers[*number].via == Via::Stream,
            ),
            _ => (None, false),
        };
        if let (Some((number, upward)), true) = (up, ordered) {
            let arrives = self.now + self.chance.span(self.faults.delay.min(PATIENCE));
            let server = &mut self.servers[number];
            let last = if upward {
                &mut server.last_up
            } else {
                &mut server.last_down
            };
            *last = arrives.max(*last);
            let at = *last;
            self.put(at, message.clone());
            return;
        }
        if self.chance.happens(self.faults.loss) {
            return;
        }
        let copies = 1 + usize::from(self.chance.happens(self.faults.duplication));
        for _ in 0..copies {
            let at = self.now + self.chance.span(self.faults.delay);
            self.put(at, message.clone());
        }
    }

    fn put(&mut self, at: Time, message: Message) {
        self.messages += 1;
        self.network.insert((at, self.messages), message);
    }

    /// Something changes that nobody asked for.
    fn upheaval(&mut self) {
        let number = self.chance.below(self.clients.len());
        let server = self.chance.below(self.servers.len());
        match self.chance.below(14) {
            0 => self.clients[number].crashed = true,
            1 | 2 if self.clients[number].crashed => self.clients[number].restart(self.now),
            3 if !self.clients[number].crashed => {
                let release = ReleaseCapacity {
                    caller: self.clients[number].caller(),
                    incarnation: self.clients[number].incarnation,
                    client: self.clients[number].name.clone(),
                    sequence: Some(self.clients[number].release()),
                    resources: vec![resource()],
                };
                self.clients[number].next_send = self.now + Duration::from_secs(3);
                self.send(&Message::Release(number, release));
            }
            4 if self.servers[server].up => self.crash(server),
            5..=7 if !self.servers[server].up => self.start(server),
            8 if self.servers[server].up => {
                let length = self.chance.span(Duration::from_secs(40));
                self.disconnect(server, length);
            }
            9 if self.chance.happens(0.3) => {
                let capacity = self.setup.capacity * self.chance.one_of(&[0.5, 0.9, 1.1, 2.0]);
                self.set_capacity(capacity);
            }
            _ => {
                let wants = self.chance.wants();
                self.set_wants(number, wants);
            }
        }
    }

    pub fn set_wants(&mut self, number: usize, wants: f64) {
        let now = self.now;
        let client = &mut self.clients[number];
        client.wants = wants;
        client.next_send = client.next_send.min(now + crate::client::EARLY_GAP);
    }

    pub fn set_capacity(&mut self, capacity: f64) {
        if capacity < self.setup.capacity {
            self.excuse();
        }
        self.setup.capacity = capacity;
        if self.servers[0].up {
            let templates = self.setup.templates();
            self.servers[0].node.handle_templates(templates, self.now);
            self.after(0);
        }
    }

    /// From now on for a lease length, more may be out than there is.
    pub fn excuse(&mut self) {
        self.excused_until = self.now + self.setup.lease;
    }

    pub fn snapshot(&self, number: usize) -> Option<ResourceSnapshot> {
        self.servers[number]
            .node
            .resource_snapshot(&resource(), self.now)
    }

    /// What everyone is using now.
    pub fn used(&self) -> ExactSum {
        let mut used = ExactSum::ZERO;
        let using = self.clients.iter().map(|client| client.uses(self.now));
        using.for_each(|amount| used.add(amount));
        used
    }

    /// no_overshoot for the whole tree, and that no sum is anything but what its parts add up to.
    fn check(&self) {
        for server in self.servers.iter().filter(|server| server.up) {
            server.node.assert_consistent();
        }
        let capacity = Amount::new(self.setup.capacity).unwrap();
        let used = self.used();
        assert!(
            self.now <= self.excused_until || !used.exceeds(capacity),
            "seed {}, at {}: {} used of {capacity}",
            self.seed,
            self.now,
            used.rounded_down(),
        );
    }
}
