//! Leases were longer before: a root learns for as long as they may last, and not for longer than
//! anything may be out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::DemandCurve;
use doorward_engine::id::{HolderName, Incarnation, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome, Term};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease, Via,
};
use doorward_engine::request::{Ask, GetCapacity, Has};
use doorward_engine::supply::Told;
use doorward_engine::template::{Algorithm, AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Of every resource 100, for so many seconds; learning as long as that, unless it is said.
fn templates(lease: u64, learning: Option<u64>) -> Templates {
    Templates::parse(&[TemplateSpec {
        identifier_glob: Some("*".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(secs(lease)),
        refresh_interval: Some(secs(1)),
        learning_mode_duration: learning.map(secs),
        ..TemplateSpec::default()
    }])
    .unwrap()
}

fn node(templates: Templates) -> Node {
    let config = Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    Node::new(config, templates)
}

/// Mastership is won, and nobody has decided anything since then.
fn win(node: &mut Node, vacant_since: u64, longer_leases: u64, now: u64) {
    let term = Term {
        epoch: now + 1,
        vacant_since: at(vacant_since),
        longer_leases: secs(longer_leases),
        valid_until: at(1_000_000),
    };
    node.handle_term(term, at(now));
}

/// What somebody gets who has nothing and wants everything.
fn newcomer_gets(node: &mut Node, resource: &str, now: Time) -> f64 {
    node.handle_timeout(now);
    let request = GetCapacity {
        caller: None,
        client: HolderName::new("newcomer").unwrap(),
        incarnation: None,
        sequence: None,
        asks: vec![Ask {
            resource: ResourceId::new(resource).unwrap(),
            priority: 0,
            wants: Amount::new(100.0).unwrap(),
            has: None,
        }],
    };
    match node.handle_get_capacity(&request, now) {
        // Below the root it may be refused: not ready.
        Outcome::Served(reply) => reply.leases.first().map_or(0.0, |it| it.capacity.get()),
        Outcome::NotMaster(_) => panic!("it is the master"),
    }
}

/// Asserts that somebody who has nothing gets something from then on, and not before.
#[track_caller]
fn check_learns_until(node: &mut Node, resource: &str, seconds: u64) {
    let end = at(seconds);
    let before = newcomer_gets(node, resource, end - Duration::from_millis(1));
    let after = newcomer_gets(node, resource, end);
    assert_eq!((before, after), (0.0, 100.0), "until {seconds} s");
}

#[test]
fn a_root_learns_for_as_long_as_leases_lasted_before() {
    for (lease, learning, longer, until) in [
        (5, None, 0, 25),
        (5, None, 40, 60),
        (60, None, 40, 80),
        (5, Some(90), 40, 110),
        // The operator wants it so.
        (5, Some(3), 40, 23),
    ] {
        let mut node = node(templates(lease, learning));
        win(&mut node, 20, longer, 21);
        check_learns_until(&mut node, "r", until);
    }
    let mut node = node(templates(5, Some(0)));
    win(&mut node, 20, 40, 21);
    assert_eq!(newcomer_gets(&mut node, "r", at(21)), 100.0);
}

#[test]
fn leases_that_become_shorter_do_not_shorten_learning() {
    let mut node = node(templates(40, None));
    win(&mut node, 0, 0, 1);
    assert_eq!(newcomer_gets(&mut node, "known", at(1)), 0.0);
    node.handle_templates(templates(5, None), at(2));
    node.handle_templates(templates(4, None), at(3));
    check_learns_until(&mut node, "known", 40);

    node.handle_mastership(Mastership::Unknown, at(100));
    node.handle_templates(templates(40, None), at(100));
    win(&mut node, 100, 0, 101);
    node.handle_templates(templates(5, None), at(102));
    // Nobody has asked for it before.
    check_learns_until(&mut node, "unknown", 140);
    // Whatever is out now, it has granted itself.
    assert_eq!(newcomer_gets(&mut node, "third", at(141)), 100.0);
}

#[test]
fn a_server_without_an_election_learns_for_as_long_as_leases_lasted_before() {
    let mut node = node(templates(40, None));
    node.handle_mastership(Mastership::Master { epoch: None }, at(0));
    node.handle_templates(templates(5, None), at(10));
    check_learns_until(&mut node, "r", 40);
}

#[test]
fn an_operator_may_end_learning() {
    let mut node = node(templates(40, None));
    win(&mut node, 0, 0, 1);
    assert_eq!(newcomer_gets(&mut node, "r", at(1)), 0.0);
    node.handle_templates(templates(5, Some(0)), at(2));
    assert_eq!(newcomer_gets(&mut node, "r", at(3)), 100.0);
}

#[test]
fn a_change_makes_nobody_begin_to_learn() {
    let mut node = node(templates(3600, Some(0)));
    win(&mut node, 0, 0, 1);
    assert_eq!(newcomer_gets(&mut node, "known", at(1)), 100.0);
    node.handle_templates(templates(5, None), at(20));
    assert_eq!(newcomer_gets(&mut node, "known", at(21)), 100.0);
    assert_eq!(newcomer_gets(&mut node, "unknown", at(21)), 100.0);
}

#[test]
fn a_change_of_capacities_makes_nobody_learn_longer() {
    let mut node = node(templates(40, None));
    win(&mut node, 0, 0, 50);
    for second in 51..60 {
        node.handle_templates(templates(40, None), at(second));
        assert_eq!(newcomer_gets(&mut node, "r", at(second)), 100.0);
    }
    let resources = node.snapshot(at(60)).resources;
    assert_eq!(resources.first().unwrap().learning_remaining, None);
}

#[test]
fn a_master_that_was_confirmed_too_late_learns_for_what_it_had_granted_before_a_change() {
    let mut node = node(templates(40, None));
    let term = |valid_until, longer_leases| Term {
        epoch: 7,
        vacant_since: at(0),
        longer_leases,
        valid_until: at(valid_until),
    };
    node.handle_term(term(100, Duration::ZERO), at(50));
    assert_eq!(newcomer_gets(&mut node, "r", at(90)), 100.0);
    node.handle_templates(templates(5, None), at(95));
    // Its time is over at 100 s, and everything forgotten: also a lease that lasts until 130 s.
    node.handle_timeout(at(100));
    node.handle_term(term(200, Duration::ZERO), at(101));
    check_learns_until(&mut node, "r", 135);
}

/// A leaf that is master and has heard nothing yet.
fn leaf() -> Node {
    let config = Config {
        name: "leaf".to_owned(),
        has_parent: true,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut leaf = Node::new(config, Templates::default());
    win(&mut leaf, 0, 0, 0);
    leaf
}

/// The parent grants the leaf so much, and says how long leases last; of what the leaf's predecessor
/// had, something is out for 30 s. Returns how much the leaf had said is out below it.
fn parent_answers(leaf: &mut Node, capacity: f64, lease: u64, now: u64) -> f64 {
    let sequence = now;
    let now = at(now);
    leaf.handle_timeout(now);
    let asked = leaf.poll_upstream_request(sequence, now).unwrap();
    let told = Told {
        inherited_for: Some(secs(30)),
        ..Told::default()
    };
    let lease = ServerLease {
        decided: None,
        resource: ResourceId::new("r").unwrap(),
        capacity: Amount::new(capacity).unwrap(),
        expires_in: secs(100),
        refresh_in: secs(1),
        algorithm: Some(Algorithm {
            kind: AlgorithmKind::FairShare,
            lease_length: secs(lease),
            learning_mode_duration: secs(lease),
            ..Algorithm::default()
        }),
        told,
        sequence: asked.sequence,
        granted_by: None,
    };
    let reply = GetServerCapacityReply {
        leases: vec![lease],
        ..GetServerCapacityReply::default()
    };
    leaf.handle_upstream_reply(&reply, now);
    let outstanding = asked.asks.first().and_then(|ask| ask.outstanding);
    outstanding.map_or(0.0, |has| has.capacity.get())
}

#[test]
fn a_leaf_learns_for_what_its_predecessor_had_although_leases_become_shorter() {
    let mut leaf = leaf();
    assert_eq!(newcomer_gets(&mut leaf, "r", at(0)), 0.0);
    parent_answers(&mut leaf, 100.0, 40, 1);
    assert_eq!(newcomer_gets(&mut leaf, "r", at(2)), 0.0);
    parent_answers(&mut leaf, 100.0, 5, 10);
    assert_eq!(newcomer_gets(&mut leaf, "r", at(30)), 0.0);
    assert_eq!(newcomer_gets(&mut leaf, "r", at(32)), 100.0);
}

#[test]
fn what_a_holder_has_of_a_longer_lease_is_out_for_as_long_as_that_lasts() {
    for (what, asks_at) in [("before the parent answers", 0), ("after that", 2)] {
        let mut leaf = leaf();
        let hears = |leaf: &mut Node| {
            let ask = Ask {
                resource: ResourceId::new("r").unwrap(),
                priority: 0,
                wants: Amount::new(60.0).unwrap(),
                has: Some(Has {
                    expires_in: Some(secs(25)),
                    ..Has::untimed(Amount::new(60.0).unwrap())
                }),
            };
            let request = GetCapacity {
                caller: None,
                client: HolderName::new("holder").unwrap(),
                incarnation: None,
                sequence: None,
                asks: vec![ask],
            };
            leaf.handle_get_capacity(&request, at(asks_at));
        };
        newcomer_gets(&mut leaf, "r", at(0));
        if asks_at == 0 {
            hears(&mut leaf);
        }
        // Leases last 5 s now, and so little is no more than a part of what it has.
        parent_answers(&mut leaf, 10.0, 5, 1);
        if asks_at != 0 {
            hears(&mut leaf);
        }
        for (now, out) in [(3, 60.0), (12, 60.0), (24, 60.0), (29, 0.0)] {
            let told = parent_answers(&mut leaf, 10.0, 5, now);
            assert_eq!(told, out, "{what}, at {now} s");
        }
    }
}

#[test]
fn a_node_that_is_made_anew_learns_for_what_the_one_before_may_have_granted() {
    for (what, longer, changed, until) in [
        ("by the templates in force", 0, None, 105),
        ("by others before", 0, Some(90), 130),
        ("by a predecessor", 120, None, 120),
    ] {
        let mut before = node(templates(changed.map_or(5, |_| 40), None));
        win(&mut before, 0, longer, 1);
        if let Some(changed) = changed {
            before.handle_templates(templates(5, None), at(changed));
        }
        let mut anew = before.anew(Incarnation::FIRST);
        anew.handle_mastership(Mastership::Master { epoch: None }, at(100));
        check_learns_until(&mut anew, what, until);
    }
}

#[test]
fn a_mastership_that_is_confirmed_too_late_knows_what_it_was_told_of_its_predecessors() {
    let mut node = node(templates(5, None));
    let term = |vacant_since, longer_leases, valid_until| Term {
        epoch: 1,
        vacant_since: at(vacant_since),
        longer_leases: secs(longer_leases),
        valid_until: at(valid_until),
    };
    node.handle_term(term(0, 120, 10), at(1));
    // It is over, and confirmed again: everything is forgotten but that.
    node.handle_term(term(12, 0, 1_000), at(12));
    check_learns_until(&mut node, "its predecessor's leases last on", 120);
}

/// What the root grants a leaf of two clients that wants this, and says that all of it is out that it has.
fn leaf_gets(root: &mut Node, sequence: u64, wants: f64, has: Option<(f64, u64)>, now: u64) -> f64 {
    let amount = |it: f64| Amount::new(it).unwrap();
    let word = has.map(|(capacity, lasts)| Has {
        expires_in: Some(secs(lasts)),
        ..Has::untimed(amount(capacity))
    });
    let band = BandDemand {
        priority: 0,
        clients: 2.0,
        wants: amount(wants),
        curve: DemandCurve::of_equals(amount(wants), 2.0),
    };
    let request = GetServerCapacity {
        caller: None,
        server: HolderName::new("leaf").unwrap(),
        epoch: None,
        incarnation: Incarnation::new(1),
        mastership: None,
        sequence: Some(sequence),
        height: 1,
        asks: vec![ServerAsk {
            resource: ResourceId::new("r").unwrap(),
            demand: Arc::new(ServerDemand::new(vec![band])),
            has: word,
            outstanding: Some(word.unwrap_or(Has::untimed(Amount::ZERO))),
            told_of: Vec::new(),
            unheard: Amount::ZERO,
            learning: false,
        }],
    };
    match root.handle_get_server_capacity(&request, Via::Stream, at(now)) {
        Ok(Outcome::Served(reply)) => reply.leases.first().unwrap().capacity.get(),
        other => panic!("{other:?}"),
    }
}

/// One client of the leaf has 30 for 90 s. Then leases become shorter, and the other one gets 20 by a lease of 50.
/// That shrinks to 25, by which the second client goes on with its 20, while the first has not been heard again.
#[test]
fn a_shorter_lease_of_more_counts_until_a_longer_one_of_less_is_over() {
    let mut root = node(templates(90, Some(0)));
    win(&mut root, 0, 0, 0);
    assert_eq!(leaf_gets(&mut root, 1, 30.0, None, 0), 30.0);
    root.handle_templates(templates(20, Some(0)), at(5));
    assert_eq!(leaf_gets(&mut root, 2, 50.0, Some((30.0, 80)), 10), 50.0);
    assert_eq!(leaf_gets(&mut root, 3, 25.0, Some((50.0, 78)), 12), 25.0);
    let newcomer = newcomer_gets(&mut root, "r", at(31));
    assert!(newcomer <= 50.0, "{newcomer}, and 50 are out");
    assert_eq!(newcomer_gets(&mut root, "r", at(90)), 100.0);
}
