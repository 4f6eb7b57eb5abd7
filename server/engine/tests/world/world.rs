//! One node, clients, and a network between them that delays, loses and repeats; all on virtual
//! time and from one seed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::snapshot::ResourceSnapshot;
use doorward_engine::template::{AlgorithmKind, Shrink, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::chance::Chance;
use crate::client::{Client, resource};

/// What may go wrong, per message or per step.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: f64,
    pub duplication: f64,
    pub delay: Duration,
    /// Per step: a client crashes, restarts, releases or wants something else; the templates or
    /// the master change.
    pub upheaval: f64,
}

impl Faults {
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        delay: Duration::from_millis(2),
        upheaval: 0.0,
    };

    pub fn some(chance: &mut Chance) -> Self {
        Self {
            loss: chance.one_of(&[0.0, 0.05, 0.3]),
            duplication: chance.one_of(&[0.0, 0.05, 0.3]),
            delay: chance.one_of(&[
                Duration::from_millis(5),
                Duration::from_millis(800),
                Duration::from_secs(7),
            ]),
            upheaval: chance.one_of(&[0.02, 0.1, 0.4]),
        }
    }
}

#[derive(Clone, Debug)]
enum Message {
    Request(usize, GetCapacity),
    Answer(usize, u64, GetCapacityReply),
    Release(ReleaseCapacity),
}

/// How the resource is set up at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub kind: AlgorithmKind,
    pub capacity: f64,
    pub lease: Duration,
    pub refresh: Duration,
    pub shrink: Shrink,
    pub exists: bool,
}

impl Setup {
    /// Whether Σ uses ≤ capacity is promised at all.
    pub fn promises(&self) -> bool {
        self.kind.promises_total() && self.shrink == Shrink::Acknowledged
    }

    pub fn templates(&self) -> Templates {
        if !self.exists {
            return Templates::default();
        }
        let shrink = match self.shrink {
            Shrink::Acknowledged => "acknowledged",
            Shrink::Immediate => "immediate",
        };
        let mut parameters = vec![("shrink".to_owned(), Some(shrink.to_owned()))];
        if self.kind == AlgorithmKind::PriorityBands {
            parameters.push(("min_share.0".to_owned(), Some("0.25".to_owned())));
        }
        Templates::parse(&[TemplateSpec {
            identifier_glob: Some("r".to_owned()),
            capacity: Some(self.capacity),
            kind: Some(self.kind),
            lease_length: Some(self.lease),
            refresh_interval: Some(self.refresh),
            parameters,
            ..TemplateSpec::default()
        }])
        .unwrap()
    }
}

pub struct World {
    pub seed: u64,
    pub chance: Chance,
    pub node: Node,
    pub setup: Setup,
    pub clients: Vec<Client>,
    pub now: Time,
    pub floor: Duration,
    pub faults: Faults,
    network: BTreeMap<(Time, u64), Message>,
    messages: u64,
    epoch: u64,
    master_since: Option<Time>,
    /// Until then, leases from before something was changed for the smaller may be out.
    pub excused_until: Time,
    longest_lease: Duration,
    reserved_before: Option<f64>,
    /// Everything that was answered, for comparing runs.
    pub history: String,
}

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl World {
    pub fn new(seed: u64, kind: AlgorithmKind, shrink: Shrink) -> Self {
        let mut chance = Chance(seed);
        let setup = Setup {
            kind,
            capacity: chance.one_of(&[0.0, 1.0, 77.7, 100.0, 1e6]),
            lease: chance.one_of(&[Duration::from_secs(20), Duration::from_secs(60)]),
            refresh: Duration::from_secs(8),
            shrink,
            exists: true,
        };
        let floor = chance.one_of(&[Duration::ZERO, Duration::from_secs(1)]);
        let config = Config {
            seed,
            refresh_floor: floor,
            ..Config::default()
        };
        let start = Time::from_secs(1000);
        let clients = (0..1 + chance.below(12)).map(|number| {
            let at = start + chance.span(Duration::from_secs(5));
            let (wants, priority) = (
                chance.wants(),
                chance.one_of(&[0, 1, 7, i64::MIN, i64::MAX]),
            );
            Client::new(number, wants, priority, chance.happens(0.3), at)
        });
        let clients = clients.collect();
        let faults = Faults::some(&mut chance);
        let node = Node::new(config, setup.templates());
        let mut world = Self {
            seed,
            chance,
            node,
            setup,
            clients,
            now: start,
            floor,
            faults,
            network: BTreeMap::new(),
            messages: 0,
            epoch: 0,
            master_since: None,
            excused_until: Time::ZERO,
            longest_lease: setup.lease,
            reserved_before: None,
            history: String::new(),
        };
        world.win();
        world
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
        let timeout = self.node.poll_timeout().map(|timeout| timeout.at);
        let soonest = [message.map(|(at, _)| at), client.map(|(at, _)| at), timeout];
        let Some(next) = soonest.into_iter().flatten().min() else {
            self.now = self.now + Duration::from_secs(1);
            return;
        };
        // Time is looked at just before it passes, too: leases end between events.
        self.check();
        self.now = self.now.max(next);
        self.check();
        if timeout.is_some_and(|at| at <= self.now) {
            self.node.handle_timeout(self.now);
        }
        if let Some(key) = message.filter(|(at, _)| *at <= self.now) {
            let message = self.network.remove(&key).unwrap();
            self.deliver(message);
        } else if let Some((at, number)) = client
            && at <= self.now
        {
            let request = self.clients[number].request(PATIENCE, self.now);
            self.send(&Message::Request(number, request));
        }
        while self.node.poll_event().is_some() {}
        self.check();
    }

    /// Steps until a time.
    pub fn run_until(&mut self, end: Time) {
        while self.now < end {
            self.step();
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Request(number, request) => {
                let sequence = request.sequence.unwrap();
                if let Outcome::Served(reply) = self.node.handle_get_capacity(&request, self.now) {
                    self.check_reply(&request, &reply);
                    writeln!(self.history, "{} {sequence} {reply:?}", self.now).unwrap();
                    self.send(&Message::Answer(number, sequence, reply));
                }
            }
            Message::Answer(number, sequence, reply) => {
                let lingers = self.chance.span(Duration::from_secs(20));
                self.clients[number].answer(sequence, reply.leases.first(), lingers, self.now);
            }
            Message::Release(release) => {
                self.node.handle_release_capacity(&release, self.now);
            }
        }
    }

    /// bounded_gets and nested_leases, for one answer.
    fn check_reply(&self, request: &GetCapacity, reply: &GetCapacityReply) {
        let seed = self.seed;
        assert_eq!(
            reply.leases.len() + reply.refused.len(),
            request.asks.len(),
            "seed {seed}"
        );
        for lease in &reply.leases {
            assert!(lease.capacity.get().is_finite(), "seed {seed}");
            assert!(
                lease.expires_in <= self.longest_lease,
                "seed {seed}: outlives its length"
            );
            assert!(
                lease.refresh_in < lease.expires_in,
                "seed {seed}: refresh comes too late"
            );
        }
    }

    fn send(&mut self, message: &Message) {
        let copies = if self.chance.happens(self.faults.loss) {
            0
        } else {
            1 + usize::from(self.chance.happens(self.faults.duplication))
        };
        for _ in 0..copies {
            self.messages += 1;
            let at = self.now + self.chance.span(self.faults.delay);
            self.network.insert((at, self.messages), message.clone());
        }
    }

    fn upheaval(&mut self) {
        let number = self.chance.below(self.clients.len());
        match self.chance.below(20) {
            0 => self.clients[number].crashed = true,
            1..=3 => {
                if self.clients[number].crashed {
                    self.clients[number].restart(self.now);
                }
            }
            4 => {
                let client = &mut self.clients[number];
                let sequence = Some(client.release());
                let release = ReleaseCapacity {
                    caller: client.caller(),
                    incarnation: client.incarnation,
                    client: client.name.clone(),
                    sequence,
                    resources: vec![resource()],
                };
                client.next_send = self.now + Duration::from_secs(3);
                self.send(&Message::Release(release));
            }
            5 => self.change_templates(),
            6 if self.chance.happens(0.3) => self.lose(),
            6 => {}
            _ => self.clients[number].wants = self.chance.wants(),
        }
        if self.master_since.is_none() && self.chance.happens(0.3) {
            self.win();
        }
    }

    pub fn change_templates(&mut self) {
        let before = self.setup;
        match self.chance.below(6) {
            0 => self.setup.exists = !self.setup.exists,
            1 => self.setup.lease = self.chance.one_of(&[20, 60, 90].map(Duration::from_secs)),
            2 => self.setup.capacity = self.chance.one_of(&[0.0, 1.0, 50.0, 100.0]),
            _ => self.setup.capacity = (before.capacity * 2.0 * self.chance.uniform()).min(1e9),
        }
        self.longest_lease = self.longest_lease.max(self.setup.lease);
        self.node.handle_templates(self.setup.templates(), self.now);
        let gone = before.exists && !self.setup.exists;
        if self.setup.capacity < before.capacity || gone {
            self.excuse();
        }
    }

    /// From now on for a lease length, more may be out than there is.
    pub fn excuse(&mut self) {
        self.excused_until = self.now + self.longest_lease;
    }

    pub fn lose(&mut self) {
        self.master_since = None;
        self.reserved_before = None;
        self.node.handle_mastership(Mastership::Unknown, self.now);
    }

    pub fn win(&mut self) {
        self.epoch += 1;
        self.master_since = Some(self.now);
        self.reserved_before = None;
        // The new master takes what holders have for granted. If a predecessor's leases are
        // above a capacity that was lowered, so may its own be, until they have run down.
        if self.excused_until > self.now {
            self.excuse();
        }
        self.node.handle_mastership(
            Mastership::Master {
                epoch: Some(self.epoch),
            },
            self.now,
        );
    }

    pub fn snapshot(&self) -> Option<ResourceSnapshot> {
        self.node.resource_snapshot(&resource(), self.now)
    }

    /// What there is to share now.
    pub fn capacity(&self) -> f64 {
        if self.setup.exists {
            self.setup.capacity
        } else {
            0.0
        }
    }

    /// no_overshoot, and that no sum is anything but what its parts add up to.
    fn check(&mut self) {
        let (seed, now) = (self.seed, self.now);
        self.node.assert_consistent();
        if !self.setup.promises() {
            return;
        }
        let capacity = Amount::new(self.capacity()).unwrap();
        let mut used = ExactSum::ZERO;
        self.clients
            .iter()
            .for_each(|client| used.add(client.uses(now)));
        // A lease that was given at the very moment ends at the very end.
        let excused = now <= self.excused_until;
        assert!(
            excused || !used.exceeds(capacity),
            "seed {seed}, at {now}: {} used of {capacity}\n{:#?}",
            used.rounded_down(),
            self.clients
        );
        let Some(snapshot) = self.snapshot() else {
            self.reserved_before = None;
            return;
        };
        let reserved = snapshot.reserved;
        if reserved > capacity.get() {
            assert!(
                excused,
                "seed {seed}, at {now}: {reserved} reserved of {capacity}"
            );
            let before = self.reserved_before.unwrap_or(f64::INFINITY);
            assert!(
                reserved <= before,
                "seed {seed}, at {now}: {reserved} after {before}"
            );
        }
        self.reserved_before = Some(reserved);
    }
}
