//! A child whose node has had several masterships, and a parent that may have begun anew: what may be in
//! use is never taken for free, and what is free is not withheld.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::Via;
use doorward_engine::request::{Ask, GetCapacity, Has};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

/// What a client has: how much, until when, by whom.
type Held = (Amount, Time, Option<MastershipId>);

/// A root with 100, a leaf below it, and clients at the leaf.
struct Tree {
    root: Node,
    leaf: Node,
    /// How many processes there were.
    started: u64,
    clients: BTreeMap<&'static str, Held>,
    sequence: u64,
}

impl Tree {
    /// Both have learned: nothing was there before.
    fn new(now: Time) -> Self {
        let mut tree = Self {
            root: Node::new(Config::default(), Templates::default()),
            leaf: Node::new(Config::default(), Templates::default()),
            started: 0,
            clients: BTreeMap::new(),
            sequence: 0,
        };
        tree.start_root(Time::ZERO);
        tree.start_leaf(now);
        tree
    }

    fn start(&mut self, name: &str, templates: Templates, now: Time) -> Node {
        self.started += 1;
        let config = Config {
            name: name.to_owned(),
            has_parent: name != "root",
            incarnation: Incarnation::new(self.started).unwrap(),
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let mut node = Node::new(config, templates);
        let epoch = Some(self.started);
        node.handle_mastership(Mastership::Master { epoch }, now);
        node
    }

    fn start_root(&mut self, now: Time) {
        let spec = TemplateSpec {
            identifier_glob: Some("r".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(5)),
            ..TemplateSpec::default()
        };
        self.root = self.start("root", Templates::parse(&[spec]).unwrap(), now);
    }

    fn start_leaf(&mut self, now: Time) {
        self.leaf = self.start("leaf", Templates::default(), now);
    }

    /// A client asks at a node, and is told what it gets; or None, if it is to ask again.
    fn asks(
        node: &mut Node,
        client: &str,
        wants: f64,
        held: Option<Held>,
        now: Time,
    ) -> Option<Held> {
        let has = held.filter(|(_, until, _)| *until > now);
        let request = GetCapacity {
            caller: None,
            client: HolderName::new(client).unwrap(),
            incarnation: None,
            sequence: None,
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has: has.map(|(capacity, until, granted_by)| Has {
                    capacity,
                    expires_in: Some(until.since(now)),
                    granted_by,
                }),
            }],
        };
        let Outcome::Served(reply) = node.handle_get_capacity(&request, now) else {
            panic!("it is the master");
        };
        let lease = reply.leases.first()?;
        Some((lease.capacity, now + lease.expires_in, lease.granted_by))
    }

    /// The leaf tells the root whatever is due, and hears the answer.
    fn exchange(&mut self, now: Time) {
        self.leaf.handle_timeout(now);
        self.root.handle_timeout(now);
        loop {
            self.sequence += 1;
            let micros = self.sequence + now.as_nanos() / 1_000;
            let Some(request) = self.leaf.poll_upstream_request(micros, now) else {
                return;
            };
            let answer = self
                .root
                .handle_get_server_capacity(&request, Via::Stream, now);
            let Ok(Outcome::Served(reply)) = answer else {
                panic!("it is the master");
            };
            self.leaf.handle_upstream_reply(&reply, now);
        }
    }

    /// A client of the leaf asks until it is answered, which takes at most a few seconds.
    fn serve(&mut self, client: &'static str, wants: f64, now: Time) -> f64 {
        let mut at = now;
        for _ in 0..5 {
            let held = self.clients.get(client).copied();
            if let Some(got) = Self::asks(&mut self.leaf, client, wants, held, at) {
                self.clients.insert(client, got);
                return got.0.get();
            }
            self.exchange(at);
            at = at + Duration::from_secs(1);
        }
        panic!("{client} was never answered");
    }

    /// What may be in use below the leaf, by the root's books.
    fn reserved(&self) -> f64 {
        let children = self.root.child_snapshots(&resource(), Time::ZERO);
        children.iter().map(|child| child.reserved).sum()
    }
}

const fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A client of the leaf with 30, `b` with 30, nobody else.
fn two_clients() -> Tree {
    let mut tree = Tree::new(at(100));
    for second in [100, 105, 110] {
        tree.serve("a", 30.0, at(second));
        tree.serve("b", 30.0, at(second));
        tree.exchange(at(second + 2));
    }
    assert_eq!(tree.clients["a"].0.get(), 30.0);
    assert_eq!(tree.clients["b"].0.get(), 30.0);
    tree
}

#[test]
fn claims_that_two_masters_of_a_child_heard_of_add_up_while_the_parent_learns() {
    let mut tree = two_clients();
    tree.start_root(at(115));
    // The first new master hears of one client, the second of the other.
    tree.start_leaf(at(115));
    assert_eq!(tree.serve("a", 30.0, at(116)), 30.0);
    tree.start_leaf(at(120));
    assert_eq!(tree.serve("b", 30.0, at(121)), 30.0);
    tree.exchange(at(124));
    assert!(tree.reserved() >= 60.0, "{}", tree.reserved());
    // And nobody is counted twice, when the first one has come, too.
    assert_eq!(tree.serve("a", 30.0, at(125)), 30.0);
    tree.exchange(at(128));
    assert_eq!(tree.reserved(), 60.0);
}

#[test]
fn what_a_parent_grants_above_what_is_inherited_is_handed_out_in_learning_mode() {
    let mut tree = two_clients();
    // Somebody else gives back what the leaf could use.
    let other = Tree::asks(&mut tree.root, "other", 10.0, None, at(111)).unwrap();
    assert_eq!(other.0.get(), 10.0);
    tree.start_leaf(at(115));
    assert_eq!(tree.serve("a", 30.0, at(116)), 30.0);
    // A third one comes, and a fourth: as many as before, so that its demand counts.
    assert!(tree.serve("c", 20.0, at(118)) <= 20.0);
    tree.exchange(at(119));
    tree.exchange(at(120));
    let learning = tree.leaf.resource_snapshot(&resource(), at(121)).unwrap();
    assert!(learning.learning_remaining.is_some());
    let got = tree.serve("c", 20.0, at(121));
    assert!(got > 0.0, "it grows although the leaf learns");
    // What `b` has, who was not heard of, is left for it.
    assert_eq!(tree.serve("b", 30.0, at(123)), 30.0);
    let all: f64 = tree.clients.values().map(|(amount, ..)| amount.get()).sum();
    tree.exchange(at(124));
    assert!(
        all <= tree.reserved() + 1e-9,
        "{all} of {}",
        tree.reserved()
    );
}

#[test]
fn a_child_that_asks_no_more_loses_what_it_has_though_a_stream_is_open() {
    let mut tree = two_clients();
    let leaf = HolderName::new("leaf").unwrap();
    tree.root.handle_subscription(&leaf, true);
    // Its master of before, of a higher epoch, is gone; others come and go.
    for second in 111..200 {
        tree.root.handle_timeout(at(second));
        let wants = if second % 2 == 0 { 90.0 } else { 10.0 };
        Tree::asks(&mut tree.root, "other", wants, None, at(second));
        tree.root.poll_pushes(at(second));
    }
    assert!(tree.root.child_snapshots(&resource(), at(200)).is_empty());
}

#[test]
fn a_client_that_is_started_again_and_again_does_not_take_what_is_free_each_time() {
    let mut tree = Tree::new(at(100));
    let mut start = |process: u64, second: u64| {
        let request = GetCapacity {
            caller: None,
            client: HolderName::new("loop").unwrap(),
            incarnation: Incarnation::new(process),
            sequence: Some(1),
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::new(10.0).unwrap(),
                has: None,
            }],
        };
        let Outcome::Served(reply) = tree.root.handle_get_capacity(&request, at(second)) else {
            panic!("it is the master");
        };
        reply.leases[0].capacity.get()
    };
    assert_eq!(start(1, 100), 10.0);
    assert_eq!(start(2, 101), 10.0);
    for process in 3..40 {
        assert_eq!(start(process, 101), 0.0);
    }
    // The first two were to be heard again, and were not.
    assert_eq!(start(40, 110), 10.0);
    let held = tree.root.resource_snapshot(&resource(), at(110)).unwrap();
    assert_eq!(held.reserved, 10.0);
}
