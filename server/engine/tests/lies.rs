//! Liars in learning mode: clients that say they have what they do not have. Honest clients beside them get
//! their max-min part, soon, and more than there is is never handed out.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::Via;
use doorward_engine::request::{Ask, GetCapacity, Has, Lease};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const TICK: Duration = Duration::from_millis(50);

const REFRESH: Duration = Duration::from_secs(5);

/// Two refresh intervals; and what it takes until who was told to come back soon has come.
const SOON: Duration = Duration::from_millis(11_500);

fn amount(n: f64) -> Amount {
    Amount::new(n).unwrap()
}

fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

fn templates(capacity: f64, wants_max: Option<f64>) -> Templates {
    Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(capacity),
        wants_max,
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(REFRESH),
        ..TemplateSpec::default()
    }])
    .unwrap()
}

fn node(name: &str, process: u64, templates: Option<Templates>) -> Node {
    let config = Config {
        incarnation: Incarnation::new(process).unwrap(),
        name: name.to_owned(),
        has_parent: templates.is_none(),
        ..Config::default()
    };
    Node::new(config, templates.unwrap_or_default())
}

fn asked(node: &mut Node, name: &str, wants: f64, has: Option<Has>, now: Time) -> Option<Lease> {
    let request = GetCapacity {
        caller: None,
        client: HolderName::new(name).unwrap(),
        incarnation: None,
        sequence: None,
        asks: vec![Ask {
            resource: resource(),
            priority: 0,
            wants: amount(wants),
            has,
        }],
    };
    match node.handle_get_capacity(&request, now) {
        Outcome::Served(reply) => reply.leases.first().cloned(),
        Outcome::NotMaster(_) => panic!("it is the master"),
    }
}

/// A client that does as the protocol says.
struct Honest {
    home: usize,
    name: String,
    wants: f64,
    lease: (f64, Time),
    granted_by: Option<MastershipId>,
    next: Time,
}

impl Honest {
    fn new(home: usize, name: &str, wants: f64, next: Time) -> Self {
        Self {
            home,
            name: name.to_owned(),
            wants,
            lease: (0.0, Time::ZERO),
            granted_by: None,
            next,
        }
    }

    fn uses(&self, now: Time) -> f64 {
        Some(self.lease.0)
            .filter(|_| self.lease.1 > now)
            .unwrap_or_default()
    }

    fn ask(&mut self, node: &mut Node, now: Time) {
        let uses = self.uses(now);
        let has = (uses > 0.0).then(|| Has {
            capacity: amount(uses),
            expires_in: Some(self.lease.1.since(now)),
            granted_by: self.granted_by,
        });
        self.next = now + Duration::from_secs(1);
        if let Some(lease) = asked(node, &self.name, self.wants, has, now) {
            self.lease = (lease.capacity.get(), now + lease.expires_in);
            self.granted_by = lease.granted_by;
            self.next = now + lease.refresh_in;
        }
    }
}

/// How a liar asks again.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// It does not.
    Once,
    /// When it is told to.
    AsTold,
    /// Every so many seconds, whatever it is told.
    Every(u64),
    /// As told, but it wants hardly anything: what it says that it has is all that counts.
    WantsLittle,
}

const MANNERS: [Manner; 5] = [
    Manner::Once,
    Manner::AsTold,
    Manner::Every(1),
    Manner::Every(4),
    Manner::WantsLittle,
];

struct Liar {
    home: usize,
    name: String,
    says: f64,
    manner: Manner,
    next: Time,
}

impl Liar {
    fn new(home: usize, name: &str, says: f64, manner: Manner, next: Time) -> Self {
        Self {
            home,
            name: name.to_owned(),
            says,
            manner,
            next,
        }
    }

    fn ask(&mut self, node: &mut Node, now: Time) {
        let wants = if matches!(self.manner, Manner::WantsLittle) {
            0.5
        } else {
            1e15
        };
        let has = Has::untimed(amount(self.says));
        let lease = asked(node, &self.name, wants, Some(has), now);
        self.next = match self.manner {
            Manner::Once => Time::MAX,
            Manner::Every(seconds) => now + Duration::from_secs(seconds),
            Manner::AsTold | Manner::WantsLittle => {
                now + lease.map_or(Duration::from_secs(1), |lease| lease.refresh_in)
            }
        };
    }
}

/// A root, and leaves below it if there are any; time goes by in ticks.
struct World {
    /// The root comes first.
    nodes: Vec<Node>,
    honest: Vec<Honest>,
    liars: Vec<Liar>,
    now: Time,
    capacity: f64,
}

impl World {
    fn new(capacity: f64, wants_max: Option<f64>, leaves: usize) -> Self {
        let mut nodes = vec![node("root", 1, Some(templates(capacity, wants_max)))];
        nodes.extend((1..=leaves).map(|number| node(&format!("leaf-{number}"), 1, None)));
        let mut world = Self {
            nodes,
            honest: Vec::new(),
            liars: Vec::new(),
            now: Time::from_secs(1000),
            capacity,
        };
        (0..=leaves).for_each(|number| world.restart(number, 1));
        world
    }

    /// Another process of a node becomes its master, and knows nothing.
    fn restart(&mut self, number: usize, process: u64) {
        let now = self.now;
        let (name, templates) = match number {
            0 => ("root".to_owned(), Some(self.nodes[0].templates().clone())),
            _ => (format!("leaf-{number}"), None),
        };
        self.nodes[number] = node(&name, process, templates);
        let mastership = Mastership::Master {
            epoch: Some(process),
        };
        self.nodes[number].handle_mastership(mastership, now);
        for leaf in 1..self.nodes.len() {
            self.nodes[0]
                .handle_subscription(&HolderName::new(&format!("leaf-{leaf}")).unwrap(), true);
            if number == 0 {
                self.nodes[leaf].handle_upstream_lost(now);
            }
        }
    }

    fn tick(&mut self) {
        self.now = self.now + TICK;
        let now = self.now;
        self.nodes
            .iter_mut()
            .for_each(|node| node.handle_timeout(now));
        for liar in self.liars.iter_mut().filter(|liar| liar.next <= now) {
            liar.ask(&mut self.nodes[liar.home], now);
        }
        for honest in self.honest.iter_mut().filter(|honest| honest.next <= now) {
            honest.ask(&mut self.nodes[honest.home], now);
        }
        let [root, leaves @ ..] = &mut self.nodes[..] else {
            panic!("there is a root");
        };
        for leaf in leaves.iter_mut() {
            if let Some(request) = leaf.poll_upstream_request(now.as_nanos() / 1000, now) {
                match root.handle_get_server_capacity(&request, Via::Stream, now) {
                    Ok(Outcome::Served(reply)) => leaf.handle_upstream_reply(&reply, now),
                    other => panic!("{other:?}"),
                };
            }
        }
        for (name, reply) in root.poll_pushes(now) {
            let number: usize = name.as_str()["leaf-".len()..].parse().unwrap();
            leaves[number - 1].handle_upstream_reply(&reply, now);
        }
        self.check();
    }

    /// What is handed out is no more than there is, and all sums are what their parts add up to.
    fn check(&self) {
        for node in &self.nodes {
            node.assert_consistent();
        }
        for snapshot in self.nodes[0].snapshot(self.now).resources {
            assert!(snapshot.reserved <= self.capacity, "{snapshot:?}");
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.tick();
        }
    }

    fn uses(&self) -> Vec<f64> {
        self.honest.iter().map(|it| it.uses(self.now)).collect()
    }
}

/// What is more than there is, by a little and by far.
const LIES: [f64; 4] = [100.000_001, 250.0, 1e9, 1e15];

#[test]
fn an_honest_client_that_comes_second_gets_its_part_within_two_refresh_intervals() {
    for says in LIES {
        for manner in MANNERS {
            for (honest, liars) in [(1, 1), (4, 1), (2, 3)] {
                let mut world = World::new(100.0, None, 0);
                let now = world.now;
                let name = |kind: &str, number: u32| format!("{kind}-{number}");
                for number in 0..liars {
                    let liar = Liar::new(0, &name("liar", number), says, manner, now);
                    world.liars.push(liar);
                }
                world.run(TICK);
                for number in 0..honest {
                    let mut it = Honest::new(0, &name("honest", number), 50.0, now);
                    it.lease = (20.0, now + Duration::from_secs(50));
                    world.honest.push(it);
                }
                world.run(SOON);
                let part = (100.0 / f64::from(honest + liars)).min(20.0);
                let all_have = |uses: &[f64]| uses.iter().all(|it| *it >= part * (1.0 - 1e-9));
                let about = format!("{honest} beside {liars} that say {says}, {manner:?}");
                assert!(all_have(&world.uses()), "{about}: {:?}", world.uses());
                // And for as long as it is learning.
                for _ in 0..40 {
                    world.run(Duration::from_secs(1));
                    assert!(all_have(&world.uses()), "{about}: {:?}", world.uses());
                }
            }
        }
    }
}

#[test]
fn where_a_template_says_what_one_client_can_have_a_liar_takes_no_more_at_all() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = World::new(100.0, Some(40.0), 0);
            let now = world.now;
            world.liars.push(Liar::new(0, "liar", says, manner, now));
            world.run(TICK);
            for name in ["a", "b"] {
                let mut it = Honest::new(0, name, 50.0, now);
                it.lease = (30.0, now + Duration::from_secs(50));
                world.honest.push(it);
            }
            world.run(TICK);
            for _ in 0..50 {
                assert_eq!(world.uses(), [30.0, 30.0], "{says}, {manner:?}");
                world.run(Duration::from_secs(1));
            }
        }
    }
}

#[test]
fn what_all_say_is_confirmed_in_full_for_a_lease_length_as_long_as_it_fits() {
    let mut world = World::new(100.0, None, 0);
    let now = world.now;
    for (name, has) in [("a", 60.0), ("b", 30.0), ("c", 10.0)] {
        let mut it = Honest::new(0, name, 100.0, now);
        it.lease = (has, now + Duration::from_secs(50));
        world.honest.push(it);
    }
    world.run(TICK);
    for it in &world.honest {
        assert_eq!(it.lease.1, world.now + Duration::from_secs(60));
    }
    world.run(Duration::from_secs(40));
    assert_eq!(world.uses(), [60.0, 30.0, 10.0]);
}

/// The capacity is lowered from 100 to 50, and then the master is another one.
#[test]
fn honest_words_above_a_lowered_capacity_are_shared_out() {
    let mut world = World::new(50.0, None, 0);
    let now = world.now;
    for (name, has) in [("a", 60.0), ("b", 40.0)] {
        let mut it = Honest::new(0, name, 100.0, now);
        it.lease = (has, now + Duration::from_secs(50));
        world.honest.push(it);
    }
    world.run(SOON);
    assert_eq!(world.uses(), [25.0, 25.0]);
}

#[test]
fn who_is_gone_is_not_counted_any_more() {
    let mut world = World::new(100.0, None, 0);
    let now = world.now;
    world
        .liars
        .push(Liar::new(0, "liar", 1e15, Manner::Once, now));
    world.run(TICK);
    let mut it = Honest::new(0, "a", 100.0, now);
    it.lease = (80.0, now + Duration::from_secs(50));
    world.honest.push(it);
    world.run(SOON);
    assert_eq!(world.uses(), [80.0]);
}

/// Leaves whose clients have what they should have by the root, which has learned.
fn settled(leaves: usize, clients: &[(usize, &str, f64)]) -> World {
    let mut world = World::new(100.0, None, leaves);
    world.run(Duration::from_secs(61));
    let now = world.now;
    for (home, name, wants) in clients {
        world.honest.push(Honest::new(*home, name, *wants, now));
    }
    world.run(Duration::from_secs(20));
    for honest in &world.honest {
        let uses = honest.uses(world.now);
        assert!(
            (uses - honest.wants).abs() < 1e-9,
            "{}: {uses}",
            honest.name
        );
    }
    world
}

/// Everybody has its part from then on, without a gap.
#[track_caller]
fn check_parts(world: &mut World, span: Duration, parts: &[f64], about: &str) {
    let end = world.now + span;
    while world.now < end {
        world.tick();
        for (honest, part) in world.honest.iter().zip(parts) {
            let uses = honest.uses(world.now);
            let enough = uses >= part * (1.0 - 1e-9);
            assert!(
                enough,
                "{about}: {} uses {uses} at {}",
                honest.name, world.now
            );
        }
    }
}

#[test]
fn a_liar_at_a_leaf_that_begins_anew_takes_no_honest_clients_part() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = settled(1, &[(1, "a", 20.0), (1, "b", 20.0), (1, "c", 20.0)]);
            world.restart(1, 2);
            let now = world.now;
            world.liars.push(Liar::new(1, "liar", says, manner, now));
            world.run(TICK);
            world.honest.iter_mut().for_each(|it| it.next = now);
            let about = format!("{says}, {manner:?}");
            // The leaf has 60, and more only if the liar wants more.
            let part = if matches!(manner, Manner::WantsLittle) {
                15.0
            } else {
                20.0
            };
            check_parts(&mut world, Duration::from_secs(90), &[part; 3], &about);
        }
    }
}

#[test]
fn a_liar_at_one_leaf_takes_no_part_of_the_other_when_all_begin_anew() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = settled(2, &[(1, "a", 20.0), (2, "b", 20.0), (2, "c", 20.0)]);
            for number in 0..3 {
                world.restart(number, 2);
            }
            let now = world.now;
            world.liars.push(Liar::new(1, "liar", says, manner, now));
            world.run(Duration::from_millis(500));
            world.honest.iter_mut().for_each(|it| it.next = now);
            world.run(SOON);
            let about = format!("{says}, {manner:?}");
            check_parts(&mut world, Duration::from_secs(90), &[20.0; 3], &about);
        }
    }
}
