//! A random run of the stories' world, from one seed. The seed decides when each message arrives, whether it is lost or
//! comes twice, which process crashes, and what changes. Each step checks all invariants.
//!
//! A world is one root that may lose its mastership ([`ByChance::alone`]), or a tree whose servers crash
//! ([`ByChance::tree`]).

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{Incarnation, ResourceId};
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ResourceSnapshot, Via};
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, Shrink, Templates};
use doorward_engine::time::Time;

use super::chance::Chance;
use super::client::Client;
use super::mail::{Message, Way};
use super::mark_store::MarkStore;
use super::setup::{Faults, Setup};
use super::story_server::Server;
use super::world::{Arrived, PATIENCE, ROUND, World};
use crate::asking::served;

/// Returns the resource of all clients.
pub fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

/// State of a server's sessions with its parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// No message arrives before this time.
    cut_until: Option<Time>,
    /// Time at which the server gives up its newest request.
    give_up: Option<Time>,
    /// Arrival of the last message on the stream, which keeps their order.
    last_up: Time,
    last_down: Time,
    /// Time of the next push to the children.
    push_at: Option<Time>,
    /// Number of starts of the server.
    epoch: u64,
}

pub struct ByChance {
    pub seed: u64,
    pub chance: Chance,
    pub world: World,
    pub setup: Setup,
    pub floor: Duration,
    pub faults: Faults,
    /// Whether the world is a single root, whose mastership changes hands.
    pub is_alone: bool,
    /// Links by the number of the server.
    pub links: Vec<Link>,
    /// Marks of the root, and whether its masters keep any.
    pub marks: Option<MarkStore>,
    /// Decides the results of writes to it.
    marks_chance: Chance,
    /// Time since which there is no master of the root.
    vacant_since: Time,
    /// Arrival of each message.
    arrivals: BTreeSet<(Time, u64)>,
    /// Until this time, leases from before a reduction may be above the capacity.
    pub excused_until: Time,
    pub longest_lease: Duration,
    pub reserved_before: Option<f64>,
    /// All answers, for comparing runs.
    pub history: String,
}

/// Returns an algorithm that divides a capacity, by the seed.
pub fn sharing(seed: u64) -> AlgorithmKind {
    let kinds = [
        AlgorithmKind::FairShare,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::PriorityBands,
    ];
    kinds[(seed % 3) as usize]
}

/// Connection of the servers of a tree to their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Streams,
    Calls,
    Mixed,
}

impl ByChance {
    /// Returns one root, and clients.
    pub fn alone(seed: u64, kind: AlgorithmKind, shrink: Shrink) -> Self {
        let mut chance = Chance(seed);
        let capacity = chance.one_of(&[0.0, 1.0, 77.7, 100.0, 1e6]);
        let mut play = Self::new(seed, chance, kind, capacity, shrink);
        play.is_alone = true;
        play.marks = play.marks_chance.happens(0.7).then(MarkStore::default);
        play.setup.refresh = Duration::from_secs(8);
        play.grow(None, 1, Links::Streams);
        for number in 0..1 + play.chance.below(12) {
            play.add_client(number, 0, &[0, 1, 7, i64::MIN, i64::MAX]);
        }
        play.faults = Faults::some(&mut play.chance);
        play
    }

    /// Returns a tree of that depth, and clients anywhere in it.
    pub fn tree(seed: u64, kind: AlgorithmKind, depth: usize, links: Links) -> Self {
        let mut chance = Chance(seed);
        let capacity = chance.one_of(&[1.0, 77.7, 100.0, 1e6]);
        let mut play = Self::new(seed, chance, kind, capacity, Shrink::Acknowledged);
        play.faults = Faults::some(&mut play.chance);
        play.grow(None, depth, links);
        for number in 0..1 + play.chance.below(16) {
            let home = play.chance.below(play.world.servers.len());
            play.add_client(number, home, &[0, 1, 7]);
        }
        play
    }

    fn new(
        seed: u64,
        mut chance: Chance,
        kind: AlgorithmKind,
        capacity: f64,
        shrink: Shrink,
    ) -> Self {
        let setup = Setup {
            kind,
            capacity,
            lease: chance.one_of(&[Duration::from_secs(20), Duration::from_secs(60)]),
            refresh: Duration::from_secs(5),
            shrink,
            exists: true,
        };
        let floor = chance.one_of(&[Duration::ZERO, Duration::from_secs(1)]);
        let mut world = World::default();
        world.now = Time::from_secs(1000);
        Self {
            seed,
            chance,
            world,
            setup,
            floor,
            faults: Faults::NONE,
            is_alone: false,
            links: Vec::new(),
            marks: None,
            marks_chance: Chance(seed),
            vacant_since: Time::ZERO,
            arrivals: BTreeSet::new(),
            excused_until: Time::ZERO,
            longest_lease: setup.lease,
            reserved_before: None,
            history: String::new(),
        }
    }

    fn add_client(&mut self, number: usize, home: usize, priorities: &[i64]) {
        let mut client = Client::new(&format!("client-{number}"), home, "r");
        client.next_send = self.world.now + self.chance.span(Duration::from_secs(5));
        client.wants = self.chance.wants();
        client.priority = self.chance.one_of(priorities);
        client.gauge = self.chance.happens(0.3);
        // One client of three sends no incarnation.
        let process = 1 + number as u64 * 1_000_000;
        client.incarnation = Incarnation::new(process).filter(|_| number % 3 != 2);
        self.world.add_client(client);
    }

    fn grow(&mut self, parent: Option<usize>, levels: usize, links: Links) {
        let number = self.world.servers.len();
        let via = match links {
            Links::Streams => Via::Stream,
            Links::Calls => Via::Poll,
            Links::Mixed => self.chance.one_of(&[Via::Stream, Via::Poll]),
        };
        let config = Config {
            name: format!("node-{number}"),
            has_parent: parent.is_some(),
            seed: self.seed + number as u64,
            refresh_floor: self.floor,
            ..Config::default()
        };
        self.world.add_server(Server::new(config, parent, via));
        self.links.push(Link::default());
        self.start(number);
        if levels > 1 {
            for _ in 0..1 + self.chance.below(3) {
                self.grow(Some(number), levels - 1, links);
            }
        }
    }

    /// Starts the server, for the first time or again, without any knowledge.
    pub fn start(&mut self, number: usize) {
        let is_root = self.world.servers[number].parent.is_none();
        let templates = if is_root {
            self.setup.templates()
        } else {
            Templates::default()
        };
        let link = &mut self.links[number];
        link.epoch += 1;
        (link.push_at, link.give_up) = (None, None);
        let process = number as u64 * 1_000_000 + link.epoch;
        self.world.start(number, process, templates);
        self.forget_questions(number);
        self.win(number);
    }

    pub fn crash(&mut self, number: usize) {
        self.vacant_since = self.world.now;
        self.world.crash(number);
        self.forget_questions(number);
    }

    /// Renews the connections from and to a server: no call waits for an answer.
    fn forget_questions(&mut self, number: usize) {
        let all = self.world.servers.iter().zip(&mut self.links);
        for (place, (server, link)) in all.enumerate() {
            if place == number || server.parent == Some(number) {
                link.give_up = None;
            }
        }
    }

    /// Makes the server the master, of a newer epoch.
    pub fn win(&mut self, number: usize) {
        let link = &mut self.links[number];
        link.epoch += 1;
        let epoch = Some(link.epoch);
        self.reserved_before = None;
        // A new master counts reported leases as granted. If a predecessor's leases exceed a lowered capacity, so may
        // its own, until they have run down.
        if self.world.servers[number].parent.is_none() && self.excused_until > self.world.now {
            self.excuse();
        }
        let now = self.world.now;
        let node = &mut self.world.servers[number].node;
        if let (Some(marks), Some(epoch)) = (&mut self.marks, epoch) {
            let term = Term {
                epoch,
                vacant_since: Some(self.vacant_since),
                longer_leases: Duration::ZERO,
                valid_until: Time::MAX,
            };
            let last = Some(marks.epoch).filter(|_| self.marks_chance.happens(0.9));
            marks.begin(node, term, last, now);
        }
        // It lasts until it is lost.
        node.handle_mastership(Mastership::Master { epoch }, now);
    }

    /// Asks the root until it is ready.
    pub fn serve(&mut self, request: &GetCapacity) -> GetCapacityReply {
        let now = self.world.now;
        let node = &mut self.world.servers[0].node;
        let reply = served(node.handle_get_capacity(request, now));
        let Some(marks) = self.marks.as_mut().filter(|_| !reply.is_ready()) else {
            return reply;
        };
        marks.write_all(node, now);
        served(node.handle_get_capacity(request, now))
    }

    /// Lets the store of marks execute or confirm a write, or lose its answer.
    fn write_marks(&mut self) {
        let now = self.world.now;
        let (Some(marks), node) = (&mut self.marks, &mut self.world.servers[0].node) else {
            return;
        };
        marks.take(node, now);
        if self.marks_chance.happens(0.5) {
            marks.execute();
            if self.marks_chance.happens(0.8) {
                marks.confirm(node, now);
            }
        }
    }

    /// Ends the mastership.
    pub fn lose(&mut self, number: usize) {
        self.reserved_before = None;
        let now = self.world.now;
        self.vacant_since = now;
        let node = &mut self.world.servers[number].node;
        node.handle_mastership(Mastership::Unknown, now);
    }

    /// Breaks the connection to the parent. No message arrives for some time.
    pub fn disconnect(&mut self, number: usize, length: Duration) {
        let is_cut = !length.is_zero();
        self.links[number].cut_until = Some(self.world.now + length).filter(|_| is_cut);
        self.links[number].give_up = None;
        self.world.servers[number].is_cut = is_cut;
        self.world.disconnect(number);
    }

    /// Allows leases above the capacity from now on for a lease length.
    pub fn excuse(&mut self) {
        self.excused_until = self.world.now + self.longest_lease;
    }

    pub fn root(&mut self) -> &mut Node {
        &mut self.world.servers[0].node
    }

    pub fn snapshot(&self, number: usize) -> Option<ResourceSnapshot> {
        let node = &self.world.servers[number].node;
        node.resource_snapshot(&resource(), self.world.now)
    }

    /// Returns the amount that each client may use.
    pub fn uses(&self) -> Vec<Amount> {
        let clients = self.world.clients.iter();
        clients.map(|it| it.uses(self.world.now)).collect()
    }

    pub fn steps(&mut self, steps: usize) {
        (0..steps).for_each(|_| self.step());
    }

    pub fn run_until(&mut self, end: Time) {
        while self.world.now < end {
            self.step();
        }
    }

    /// Handles the next event, and checks all invariants.
    pub fn step(&mut self) {
        if self.chance.happens(self.faults.upheaval) {
            self.upheaval();
        }
        let message = self.arrivals.first().copied();
        let clients = self.world.clients.iter().enumerate();
        let client = clients
            .filter(|(_, client)| !client.crashed)
            .map(|(number, client)| (client.next_send, number))
            .min();
        let servers = 0..self.world.servers.len();
        let server = servers
            .filter_map(|number| Some((self.server_due(number)?, number)))
            .min();
        let soonest = [message.map(|(at, _)| at), client.map(|(at, _)| at)];
        let soonest = soonest.into_iter().flatten().min();
        let server = server.filter(|(at, _)| soonest.is_none_or(|soonest| *at < soonest));
        let Some(next) = server.map(|(at, _)| at).or(soonest) else {
            self.world.now = self.world.now + Duration::from_secs(1);
            return;
        };
        // The check also runs just before time passes, since leases end between events.
        self.check();
        self.world.now = self.world.now.max(next);
        self.check();
        if let Some((_, number)) = server {
            self.run_server(number);
        } else if let Some((at, number)) = message.filter(|(at, _)| *at <= self.world.now) {
            self.arrivals.remove(&(at, number));
            self.deliver(number);
        } else if let Some((_, number)) = client {
            let sent = self.world.client_asks(number);
            self.sent(sent);
        }
        self.after();
        self.check();
    }

    /// Returns when a server has something to do without a message.
    fn server_due(&self, number: usize) -> Option<Time> {
        let server = &self.world.servers[number];
        if !server.up {
            return None;
        }
        let link = &self.links[number];
        let question = self.world.question_due(number);
        let question = question.filter(|_| link.give_up.is_none() || server.via == Via::Stream);
        let timer = self.world.timer_due(number);
        let all = [timer, question, link.give_up, link.push_at, link.cut_until];
        all.into_iter().flatten().min()
    }

    fn run_server(&mut self, number: usize) {
        let now = self.world.now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.world.timer_due(number)) {
            self.world.serve_timer(number);
        }
        let link = self.links[number];
        if is_due(link.give_up) || is_due(link.cut_until) {
            // A stream without an answer counts as broken.
            self.disconnect(number, Duration::ZERO);
        }
        let link = &mut self.links[number];
        let is_stream = self.world.servers[number].via == Via::Stream;
        if (link.give_up.is_none() || is_stream)
            && let Some(sent) = self.world.ask_parent(number)
        {
            link.give_up = Some(link.give_up.unwrap_or(now + PATIENCE));
            self.sent(sent);
        }
        if is_due(self.links[number].push_at) {
            self.links[number].push_at = None;
            for sent in self.world.push(number) {
                self.sent(sent);
            }
        }
    }

    /// Handles the results of an event at a node.
    fn after(&mut self) {
        self.write_marks();
        let push_at = self.world.now + ROUND;
        for (server, link) in self.world.servers.iter_mut().zip(&mut self.links) {
            while server.node.poll_event().is_some() {}
            if server.up && server.node.has_pushes() {
                link.push_at = link.push_at.or(Some(push_at));
            }
        }
    }

    fn deliver(&mut self, number: u64) {
        let mut lingers = Duration::ZERO;
        match self.world.mail.get(number) {
            Some(Message::Answer(..)) => lingers = self.chance.span(Duration::from_secs(20)),
            Some(Message::ServerAnswer(child, connection, _)) => {
                let server = &self.world.servers[*child];
                if server.up && server.connection == *connection {
                    self.links[*child].give_up = None;
                }
            }
            _ => {}
        }
        if let Arrived::Answered(answer) = self.world.deliver(number, lingers) {
            self.check_answer(answer);
            if let Some(Message::Answer(client, sequence, reply)) = self.world.mail.get(answer) {
                let now = self.world.now;
                writeln!(self.history, "{now} {client} {sequence} {reply:?}").unwrap();
            }
            self.sent(answer);
        }
    }

    /// Draws the arrivals of a message: none, one or two.
    pub fn sent(&mut self, number: u64) {
        let Some(message) = self.world.mail.get(number) else {
            return;
        };
        let now = self.world.now;
        if let Some((child, _, way)) = message.link()
            && self.world.servers[child].via == Via::Stream
        {
            let arrives = now + self.chance.span(self.faults.delay.min(PATIENCE));
            let link = &mut self.links[child];
            let last = match way {
                Way::Up => &mut link.last_up,
                Way::Down => &mut link.last_down,
            };
            *last = arrives.max(*last);
            self.arrivals.insert((*last, number));
            return;
        }
        if self.chance.happens(self.faults.loss) {
            self.world.mail.take(number);
            return;
        }
        let twice = self.chance.happens(self.faults.duplication);
        let copy = twice.then(|| self.world.mail.copy(number)).flatten();
        for number in [Some(number), copy].into_iter().flatten() {
            let at = now + self.chance.span(self.faults.delay);
            self.arrivals.insert((at, number));
        }
    }
}
