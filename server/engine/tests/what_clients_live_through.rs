//! What clients of a tree live through: a root, a region, two leaves with streams. Messages arrive at once;
//! what matters here is what is said.
//!
//! A template that is removed takes nothing back; nobody is told to wait longer than a minute; safe
//! capacities add up; learning mode is told of.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, Incarnation, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::Via;
use doorward_engine::request::{Ask, GetCapacity, Has, Lease, LimitedBy, RefusalReason};
use doorward_engine::template::{AlgorithmKind, SafeCapacity, TemplateSpec, Templates};
use doorward_engine::time::Time;

const SECOND: Duration = Duration::from_secs(1);

/// `r`: 100 to share, leases of a minute.
fn template() -> TemplateSpec {
    TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(60 * SECOND),
        refresh_interval: Some(5 * SECOND),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }
}

fn safe(capacity: f64) -> TemplateSpec {
    TemplateSpec {
        safe_capacity: Some(capacity),
        ..template()
    }
}

/// Nodes by name; each is asked by its clients and by the child servers below it.
struct Tree {
    nodes: BTreeMap<&'static str, Node>,
    /// What each client was told last, and at which node.
    told: BTreeMap<String, (&'static str, Result<Lease, RefusalReason>)>,
    sequence: u64,
    now: Time,
}

/// Each child server and its parent, from the leaves up.
const PARENTS: [(&str, &str); 3] = [("eu-1", "eu"), ("eu-2", "eu"), ("eu", "root")];

impl Tree {
    fn new(spec: &TemplateSpec) -> Self {
        let mut nodes = BTreeMap::new();
        for (number, name) in (1..).zip(["root", "eu", "eu-1", "eu-2"]) {
            let is_root = name == "root";
            let config = Config {
                incarnation: Incarnation::new(number).unwrap(),
                name: name.to_owned(),
                has_parent: !is_root,
                ..Config::default()
            };
            let templates = if is_root {
                Templates::parse(std::slice::from_ref(spec)).unwrap()
            } else {
                Templates::default()
            };
            let mut node = Node::new(config, templates);
            node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
            nodes.insert(name, node);
        }
        let mut tree = Self {
            nodes,
            told: BTreeMap::new(),
            sequence: 0,
            now: Time::from_secs(1),
        };
        for (child, parent) in PARENTS {
            tree.node(parent).handle_subscription(&name(child), true);
        }
        tree
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.get_mut(name).unwrap()
    }

    fn edit(&mut self, specs: &[TemplateSpec]) {
        let (templates, now) = (Templates::parse(specs).unwrap(), self.now);
        self.node("root").handle_templates(templates, now);
        self.push();
    }

    /// A client asks, and has what it was told last.
    fn ask(&mut self, at: &'static str, client: &str, wants: f64) -> Result<Lease, RefusalReason> {
        self.sequence += 1;
        let before = self
            .told
            .get(client)
            .and_then(|(_, told)| told.as_ref().ok());
        let request = GetCapacity {
            caller: None,
            client: name(client),
            incarnation: Incarnation::new(99),
            sequence: Some(self.sequence),
            asks: vec![Ask {
                resource: ResourceId::new("r").unwrap(),
                priority: 0,
                wants: Amount::new(wants).unwrap(),
                has: before.map(|lease| Has {
                    granted_by: lease.granted_by,
                    ..Has::untimed(lease.capacity)
                }),
            }],
        };
        let now = self.now;
        let Outcome::Served(reply) = self.node(at).handle_get_capacity(&request, now) else {
            panic!("it is the master");
        };
        let answer = match reply.leases.first() {
            Some(lease) => Ok(lease.clone()),
            None => Err(reply.refused[0].reason),
        };
        self.told.insert(client.to_owned(), (at, answer.clone()));
        answer
    }

    /// What servers have to say to each other is said, up and down, until nobody has anything more.
    fn settle(&mut self) {
        for _ in 0..8 {
            for (child, parent) in PARENTS {
                let now = self.now;
                self.sequence += 1;
                let sequence = self.sequence;
                let Some(request) = self.node(child).poll_upstream_request(sequence, now) else {
                    continue;
                };
                let answer =
                    self.node(parent)
                        .handle_get_server_capacity(&request, Via::Stream, now);
                let Ok(Outcome::Served(reply)) = answer else {
                    panic!("{answer:?}");
                };
                self.node(child).handle_upstream_reply(&reply, now);
            }
            self.push();
        }
    }

    fn push(&mut self) {
        for parent in ["root", "eu"] {
            let now = self.now;
            for (child, reply) in self.node(parent).poll_pushes(now) {
                self.node(child.as_str()).handle_upstream_reply(&reply, now);
            }
        }
    }

    fn advance(&mut self, seconds: u64) {
        for _ in 0..seconds * 4 {
            self.now = self.now + SECOND / 4;
            let now = self.now;
            for node in self.nodes.values_mut() {
                node.handle_timeout(now);
            }
            self.settle();
        }
    }

    /// Everybody asks again, a while after the last time.
    fn refresh(&mut self, wants: f64) {
        self.advance(2);
        let clients: Vec<_> = self
            .told
            .iter()
            .map(|(c, (at, _))| (c.clone(), *at))
            .collect();
        for (client, at) in clients {
            let _ = self.ask(at, &client, wants);
        }
    }

    /// What all clients may use in safe mode, together.
    fn safe_sum(&self) -> f64 {
        let safe = self.told.values().map(|(_, told)| match told {
            Ok(lease) => match lease.safe_capacity {
                Some(SafeCapacity::Limited(amount)) => amount.get(),
                other => panic!("{other:?}"),
            },
            Err(_) => 0.0,
        });
        safe.sum()
    }
}

fn name(text: &str) -> HolderName {
    HolderName::new(text).unwrap()
}

#[test]
fn a_template_that_is_removed_takes_nothing_back_at_any_level() {
    let mut tree = Tree::new(&template());
    for (at, client) in [("root", "a"), ("eu", "b"), ("eu-1", "c"), ("eu-2", "d")] {
        let _ = tree.ask(at, client, 20.0);
    }
    tree.refresh(20.0);
    tree.refresh(20.0);
    let before: Vec<_> = tree.told.values().cloned().collect();
    assert!(
        before
            .iter()
            .all(|(_, told)| told.as_ref().is_ok_and(|it| it.capacity.get() == 20.0))
    );
    tree.edit(&[]);
    // Clients come before the servers above them have asked again.
    tree.now = tree.now + 2 * SECOND;
    for _ in 0..10 {
        let clients: Vec<_> = tree
            .told
            .iter()
            .map(|(c, (at, _))| (c.clone(), *at))
            .collect();
        for (client, at) in clients {
            let lease = tree.told[&client].1.clone();
            match tree.ask(at, &client, 20.0) {
                // A server below may not have heard of it yet.
                Ok(again) => assert_eq!(again.capacity.get(), 20.0, "{client} at {at}"),
                Err(reason) => {
                    assert_eq!(reason, RefusalReason::UnknownResource, "{client} at {at}");
                    tree.told.insert(client, (at, lease));
                }
            }
        }
        tree.advance(3);
    }
    for (client, at) in [("a", "root"), ("b", "eu"), ("c", "eu-1"), ("d", "eu-2")] {
        assert_eq!(
            tree.ask(at, client, 20.0),
            Err(RefusalReason::UnknownResource)
        );
    }
}

#[test]
fn nobody_is_told_to_wait_longer_than_a_minute() {
    let hour = TemplateSpec {
        lease_length: Some(7_200 * SECOND),
        refresh_interval: Some(3_600 * SECOND),
        ..template()
    };
    let mut tree = Tree::new(&hour);
    let _ = tree.ask("eu-1", "c", 20.0);
    tree.settle();
    tree.advance(2);
    let at_leaf = tree.ask("eu-1", "c", 20.0).unwrap();
    assert_eq!(
        (at_leaf.capacity.get(), at_leaf.refresh_in),
        (20.0, 60 * SECOND)
    );
    let at_root = tree.ask("root", "a", 20.0).unwrap();
    assert_eq!(at_root.refresh_in, 60 * SECOND);
    // Faster than the floor, and told the same again.
    assert!(tree.ask("root", "a", 20.0).unwrap().refresh_in <= 60 * SECOND);
    let now = tree.now;
    let due = tree.node("eu").poll_upstream_timeout();
    assert!(
        due.is_some_and(|at| at.since(now) <= 60 * SECOND),
        "{due:?}"
    );
}

#[test]
fn a_child_waits_no_longer_than_a_minute_whatever_its_parent_says() {
    let mut tree = Tree::new(&template());
    let _ = tree.ask("eu", "b", 20.0);
    tree.advance(2);
    let _ = tree.ask("eu", "b", 20.0);
    tree.advance(2);
    // Nothing is new when it asks again.
    tree.now = tree.node("eu").poll_upstream_timeout().unwrap();
    let now = tree.now;
    let request = tree.node("eu").poll_upstream_request(1, now).unwrap();
    let answer = tree
        .node("root")
        .handle_get_server_capacity(&request, Via::Stream, now);
    let Ok(Outcome::Served(mut reply)) = answer else {
        panic!("{answer:?}");
    };
    reply.leases[0].expires_in = 7_200 * SECOND;
    reply.leases[0].refresh_in = 3_600 * SECOND;
    tree.node("eu").handle_upstream_reply(&reply, now);
    assert_eq!(
        tree.node("eu").poll_upstream_timeout(),
        Some(now + 60 * SECOND)
    );
}

#[test]
fn safe_capacities_add_up_once_everybody_has_refreshed_since_the_last_one_joined() {
    let joins = ["eu-1", "eu-1", "root", "eu", "eu-2", "eu-2", "eu-1", "root"];
    let mut tree = Tree::new(&template());
    for number in 0..80 {
        let at = joins[number % joins.len()];
        let _ = tree.ask(at, &format!("client-{number}"), 1.0);
        // Before the newcomer is known elsewhere, and after it is.
        if number % 3 > 0 {
            tree.settle();
        }
        let clients: Vec<_> = tree
            .told
            .iter()
            .map(|(c, (at, _))| (c.clone(), *at))
            .collect();
        tree.now = tree.now + SECOND / 100;
        tree.push();
        for (client, at) in clients {
            let _ = tree.ask(at, &client, 1.0);
        }
        if number % 3 > 0 {
            let sum = tree.safe_sum();
            assert!(
                sum <= 100.0 * (1.0 + 1e-9),
                "{sum} with {} clients",
                number + 1
            );
        }
    }
    tree.refresh(1.0);
    let sum = tree.safe_sum();
    assert!(
        (95.0..=100.0 + 1e-9).contains(&sum),
        "{sum}: little is lost"
    );
}

#[test]
fn a_leaf_divides_by_its_own_newcomers_before_it_has_told_of_them() {
    let mut tree = Tree::new(&template());
    for number in 0..11 {
        let _ = tree.ask("eu-1", &format!("client-{number}"), 1.0);
        tree.settle();
    }
    tree.refresh(1.0);
    assert!((tree.safe_sum() - 100.0).abs() < 1e-6);
    // Nothing is said upward meanwhile.
    let _ = tree.ask("eu-1", "newcomer", 1.0);
    tree.now = tree.now + SECOND;
    for number in 0..11 {
        let _ = tree.ask("eu-1", &format!("client-{number}"), 1.0);
    }
    let sum = tree.safe_sum();
    assert!(sum <= 100.0 + 1e-9, "{sum}");
}

#[test]
fn while_a_server_learns_a_static_safe_capacity_counts_and_a_dynamic_one_is_0() {
    for (spec, told) in [(template(), 0.0), (safe(7.0), 7.0)] {
        let mut tree = Tree::new(&TemplateSpec {
            learning_mode_duration: Some(60 * SECOND),
            ..spec
        });
        let at_root = tree.ask("root", "a", 20.0).unwrap();
        assert_eq!(at_root.limited_by, LimitedBy::Learning);
        assert_eq!(at_root.learning_for, Some(59 * SECOND));
        let _ = tree.ask("eu-1", "c", 20.0);
        tree.settle();
        tree.advance(1);
        let at_leaf = tree.ask("eu-1", "c", 20.0).unwrap();
        assert!(
            matches!(
                at_leaf.limited_by,
                LimitedBy::Learning | LimitedBy::ParentLearning
            ),
            "{at_leaf:?}"
        );
        let learning_for = at_leaf.learning_for.unwrap();
        assert!(
            (56 * SECOND..=62 * SECOND).contains(&learning_for),
            "{learning_for:?}"
        );
        for lease in [at_root, at_leaf] {
            let expected = SafeCapacity::Limited(Amount::new(told).unwrap());
            assert_eq!(lease.safe_capacity, Some(expected));
            assert_eq!(lease.capacity, Amount::ZERO);
        }
    }
}

#[test]
fn a_lease_says_why_it_is_no_larger() {
    let mut tree = Tree::new(&template());
    let mut check = |client: &str, wants: f64, gets: f64, limit: LimitedBy| {
        let lease = tree.ask("root", client, wants).unwrap();
        let told = (
            lease.capacity.get(),
            lease.limited_by,
            lease.learning_for,
            lease.decided,
        );
        assert_eq!(told, (gets, limit, None, true), "{client}");
    };
    check("a", 70.0, 70.0, LimitedBy::Wants);
    check("b", 70.0, 30.0, LimitedBy::Others);
    check("a", 80.0, 50.0, LimitedBy::Share);
    tree.edit(&[TemplateSpec {
        capacity: Some(40.0),
        ..template()
    }]);
    tree.advance(2);
    let newcomer = tree.ask("root", "c", 10.0).unwrap();
    assert_eq!(newcomer.limited_by, LimitedBy::CapacityLowered);
}

#[test]
fn a_template_that_is_put_back_with_less_cuts_nobody_to_nothing() {
    for is_gone_before in [false, true] {
        let mut tree = Tree::new(&template());
        let _ = tree.ask("root", "a", 50.0);
        let _ = tree.ask("root", "b", 50.0);
        tree.now = tree.now + 2 * SECOND;
        if is_gone_before {
            tree.edit(&[]);
            tree.now = tree.now + 2 * SECOND;
        }
        tree.edit(&[TemplateSpec {
            capacity: Some(50.0),
            ..template()
        }]);
        let lease = tree.ask("root", "a", 50.0).unwrap();
        assert!(
            (lease.capacity.get() - 25.0).abs() < 1e-9,
            "{is_gone_before}: {lease:?}"
        );
    }
}

#[test]
fn a_parent_that_did_not_decide_has_not_counted_the_newcomers() {
    let mut tree = Tree::new(&template());
    tree.node("root").handle_subscription(&name("eu"), false);
    let mut undecided = 0;
    for number in 0..30 {
        let _ = tree.ask("eu", &format!("client-{number}"), 1.0);
        let (now, sequence) = (tree.now, 10_000 + number);
        if let Some(request) = tree.node("eu").poll_upstream_request(sequence, now) {
            let root = tree.node("root");
            let answer = root.handle_get_server_capacity(&request, Via::Poll, now);
            let Ok(Outcome::Served(mut reply)) = answer else {
                panic!("{answer:?}");
            };
            // As a parent with a longer floor answers: with what it knew before.
            if number % 2 == 1 {
                reply.leases[0].decided = Some(false);
                reply.leases[0].told.safe_capacity = tree
                    .told
                    .values()
                    .find_map(|(_, told)| told.as_ref().ok().and_then(|lease| lease.safe_capacity));
                undecided += 1;
            }
            tree.node("eu").handle_upstream_reply(&reply, now);
        }
        tree.now = tree.now + 2 * SECOND;
        let clients: Vec<_> = tree.told.keys().cloned().collect();
        for client in clients {
            let _ = tree.ask("eu", &client, 1.0);
        }
        let sum = tree.safe_sum();
        assert!(
            sum <= 100.0 * (1.0 + 1e-9),
            "{sum} with {} clients",
            number + 1
        );
    }
    assert!(undecided > 5, "{undecided}");
}

#[test]
fn who_waits_in_vain_is_invited_less_often() {
    let mut tree = Tree::new(&template());
    let _ = tree.ask("root", "dead", 100.0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let lease = tree.ask("root", "waiter", 50.0).unwrap();
        assert_eq!((lease.capacity.get(), lease.decided), (0.0, true));
        waits.push(lease.refresh_in.as_secs_f64());
        tree.now = tree.now + lease.refresh_in;
    }
    assert!((0.15..0.2).contains(&waits[0]), "{waits:?}");
    assert!(waits[1] > 0.3 && waits[2] > 0.6, "{waits:?}");
    assert!(
        waits[3..].iter().all(|wait| (1.0..1.4).contains(wait)),
        "{waits:?}"
    );
    // As soon as anything moves, it begins anew.
    let _ = tree.ask("root", "another", 50.0);
    let lease = tree.ask("root", "waiter", 50.0).unwrap();
    assert!(lease.refresh_in.as_secs_f64() < 0.2, "{lease:?}");
}

#[test]
fn a_leaf_says_that_it_asks_its_parent_before_it_speaks_of_shares() {
    let mut tree = Tree::new(&template());
    let _ = tree.ask("eu-1", "first", 10.0);
    tree.settle();
    tree.advance(2);
    assert_eq!(
        tree.ask("eu-1", "first", 10.0).unwrap().capacity.get(),
        10.0
    );
    tree.advance(2);
    let lease = tree.ask("eu-1", "second", 5.0).unwrap();
    assert!(lease.capacity.get() < 5.0, "{lease:?}");
    assert_eq!(lease.limited_by, LimitedBy::Parent);
    tree.advance(2);
    let lease = tree.ask("eu-1", "second", 5.0).unwrap();
    assert_eq!(
        (lease.capacity.get(), lease.limited_by),
        (5.0, LimitedBy::Wants)
    );
    // Once the parent has answered, it is a share.
    let _ = tree.ask("eu-1", "second", 500.0);
    tree.advance(2);
    let lease = tree.ask("eu-1", "second", 500.0).unwrap();
    assert_eq!(lease.limited_by, LimitedBy::Share, "{lease:?}");
}

#[test]
fn a_root_tells_that_it_learns_before_anybody_holds_anything() {
    let learning = TemplateSpec {
        learning_mode_duration: Some(60 * SECOND),
        ..template()
    };
    let tree = Tree::new(&learning);
    let left = |name: &str, seconds| tree.nodes[name].learning_remaining(Time::from_secs(seconds));
    assert_eq!(left("root", 19), Some(41 * SECOND));
    assert_eq!(left("root", 60), None);
    assert_eq!(left("eu", 19), None, "only the parent can tell");
}

#[test]
fn a_refused_resource_below_the_root_says_that_its_template_is_gone() {
    let mut tree = Tree::new(&template());
    let _ = tree.ask("eu-1", "a", 10.0);
    tree.advance(4);
    let _ = tree.ask("eu-1", "a", 10.0);
    tree.edit(&[]);
    tree.advance(10);
    let resource = ResourceId::new("r").unwrap();
    let rows = tree.nodes["eu-1"].lease_snapshots(&resource, 9, tree.now);
    assert_eq!(rows.len(), 1);
    assert!(
        rows[0].why.to_string().contains("template is gone"),
        "{rows:?}"
    );
}
