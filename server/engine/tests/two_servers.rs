//! Two live processes that speak for one node: what its parent grants the first one, and what the
//! later one does when it was refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::DemandCurve;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{
    GetServerCapacity, GetServerCapacityReply, ServerAsk, ServerLease, Via,
};
use doorward_engine::request::{Ask, GetCapacity, Has, Refusal, RefusalReason};
use doorward_engine::supply::Told;
use doorward_engine::template::{Algorithm, AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

fn resource() -> ResourceId {
    ResourceId::new("r").unwrap()
}

fn amount(number: f64) -> Amount {
    Amount::new(number).unwrap()
}

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A root with 100, leases of 60 s, which has learned.
fn root() -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(8)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }]);
    let config = Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut node = Node::new(config, templates.unwrap());
    node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
    node
}

/// What a process of the node `leaf` says.
#[derive(Clone, Copy)]
struct Says {
    process: u64,
    sequence: u64,
    wants: f64,
    has: f64,
    outstanding: f64,
    learning: bool,
}

/// The first process of it, which has nothing yet and wants all.
const FIRST: Says = Says {
    process: 1,
    sequence: 1,
    wants: 100.0,
    has: 0.0,
    outstanding: 0.0,
    learning: false,
};

fn ask(root: &mut Node, says: Says, now: Time) -> Result<ServerLease, RefusalReason> {
    let wants = amount(says.wants);
    let band = BandDemand {
        priority: 0,
        clients: 1.0,
        wants,
        curve: DemandCurve::of_equals(wants, 1.0),
    };
    let lasts = Some(Duration::from_secs(60));
    let has = |capacity| Has {
        expires_in: lasts,
        ..Has::untimed(amount(capacity))
    };
    let request = GetServerCapacity {
        caller: None,
        server: HolderName::new("leaf").unwrap(),
        epoch: None,
        incarnation: Incarnation::new(says.process),
        mastership: Some(MastershipId::new(says.process)),
        sequence: Some(says.sequence),
        height: 1,
        asks: vec![ServerAsk {
            resource: resource(),
            demand: Arc::new(ServerDemand::new(vec![band])),
            has: (says.has > 0.0).then(|| has(says.has)),
            outstanding: Some(has(says.outstanding)),
            told_of: Vec::new(),
            unheard: Amount::ZERO,
            learning: says.learning,
        }],
    };
    match root.handle_get_server_capacity(&request, Via::Stream, now) {
        Ok(Outcome::Served(reply)) => match reply.refused.first() {
            Some(refusal) => Err(refusal.reason),
            None => Ok(reply.leases[0].clone()),
        },
        other => panic!("{other:?}"),
    }
}

/// The first process is granted all, and is heard no more; at 30 s another one is started, which has
/// learned by then and hands out all.
fn taken_over(root: &mut Node) {
    let first = FIRST;
    assert_eq!(ask(root, first, at(0)).unwrap().capacity, amount(100.0));
    let later = Says {
        process: 2,
        learning: true,
        ..first
    };
    assert_eq!(ask(root, later, at(30)).unwrap().capacity, amount(100.0));
    for (sequence, second) in [(2, 38), (3, 46), (4, 54)] {
        let goes_on = Says {
            sequence,
            has: 100.0,
            outstanding: 100.0,
            ..later
        };
        let lease = ask(root, goes_on, at(second)).unwrap();
        assert_eq!(lease.capacity, amount(100.0), "at {second} s");
    }
}

#[test]
fn who_comes_back_when_its_lease_is_over_gets_nothing_of_what_the_later_one_has() {
    let mut root = root();
    taken_over(&mut root);
    let later = Says {
        process: 2,
        sequence: 5,
        wants: 100.0,
        has: 100.0,
        outstanding: 100.0,
        learning: false,
    };
    ask(&mut root, later, at(62)).unwrap();
    // It was frozen, and has nothing any more.
    let first = Says {
        process: 1,
        sequence: 2,
        has: 0.0,
        outstanding: 0.0,
        ..later
    };
    root.handle_timeout(at(70));
    let lease = ask(&mut root, first, at(70)).unwrap();
    assert_eq!(
        lease.capacity,
        Amount::ZERO,
        "the later one has it until 122 s"
    );
    let again = Says {
        sequence: 6,
        ..later
    };
    let refused = ask(&mut root, again, at(71));
    assert!(matches!(refused, Err(RefusalReason::AnotherProcess(_))));
    let first = Says {
        sequence: 3,
        ..first
    };
    assert_eq!(
        ask(&mut root, first, at(100)).unwrap().capacity,
        Amount::ZERO
    );
    root.handle_timeout(at(123));
    let first = Says {
        sequence: 4,
        ..first
    };
    assert_eq!(
        ask(&mut root, first, at(123)).unwrap().capacity,
        amount(100.0)
    );
    root.assert_consistent();
}

#[test]
fn who_comes_back_in_time_gets_no_new_lease_of_what_the_later_one_has() {
    let mut root = root();
    taken_over(&mut root);
    let first = Says {
        sequence: 2,
        has: 100.0,
        outstanding: 100.0,
        ..FIRST
    };
    let lease = ask(&mut root, first, at(56)).unwrap();
    assert_eq!(
        lease.capacity,
        Amount::ZERO,
        "the later one has it until 114 s"
    );
    root.assert_consistent();
}

#[test]
fn what_a_later_one_was_granted_counts_when_it_was_started_again_before_the_first_came_back() {
    let mut root = root();
    let first = Says {
        wants: 40.0,
        ..FIRST
    };
    assert_eq!(ask(&mut root, first, at(0)).unwrap().capacity, amount(40.0));
    let later = Says {
        process: 2,
        wants: 100.0,
        learning: true,
        ..first
    };
    assert_eq!(
        ask(&mut root, later, at(1)).unwrap().capacity,
        amount(100.0)
    );
    // It has handed out 60, and is started again.
    let anew = Says {
        process: 3,
        wants: 0.0,
        ..later
    };
    ask(&mut root, anew, at(2)).unwrap();
    let first = Says {
        sequence: 2,
        wants: 100.0,
        has: 40.0,
        outstanding: 40.0,
        ..first
    };
    let lease = ask(&mut root, first, at(8)).unwrap();
    assert_eq!(lease.capacity, amount(40.0));
    root.assert_consistent();
}

/// A client of the node `leaf` that wants 100 and has nothing.
fn client(leaf: &mut Node, name: &str, now: Time) -> Result<f64, RefusalReason> {
    let request = GetCapacity {
        caller: None,
        client: HolderName::new(name).unwrap(),
        incarnation: None,
        sequence: None,
        asks: vec![Ask {
            resource: resource(),
            priority: 0,
            wants: amount(100.0),
            has: None,
        }],
    };
    match leaf.handle_get_capacity(&request, now) {
        Outcome::Served(reply) => match reply.refused.first() {
            Some(refusal) => Err(refusal.reason),
            None => Ok(reply.leases[0].capacity.get()),
        },
        other @ Outcome::NotMaster(_) => panic!("{other:?}"),
    }
}

#[test]
fn who_was_refused_as_the_later_one_hands_out_nothing_though_it_hears_no_more() {
    let config = Config {
        name: "leaf".to_owned(),
        has_parent: true,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut leaf = Node::new(config, Templates::default());
    leaf.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
    client(&mut leaf, "a", at(1)).unwrap_err();
    let request = leaf.poll_upstream_request(1, at(1)).unwrap();
    let lease = ServerLease {
        decided: None,
        resource: resource(),
        capacity: amount(100.0),
        expires_in: Duration::from_secs(60),
        refresh_in: Duration::from_secs(8),
        algorithm: Some(Algorithm {
            lease_length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(8),
            ..Algorithm::default()
        }),
        told: Told {
            inherited_for: Some(Duration::from_secs(15)),
            inherited: Some(amount(100.0)),
            predecessor_for: Some(Duration::from_secs(6)),
            ..Told::default()
        },
        granted_by: Some(MastershipId::new(7)),
        sequence: request.sequence,
    };
    let reply = GetServerCapacityReply {
        leases: vec![lease],
        ..GetServerCapacityReply::default()
    };
    leaf.handle_upstream_reply(&reply, at(1));
    let request = leaf.poll_upstream_request(2, at(9));
    assert!(request.is_some());
    let wait = Duration::from_secs(8);
    let refused = GetServerCapacityReply {
        refused: vec![Refusal {
            resource: resource(),
            reason: RefusalReason::AnotherProcess(wait),
        }],
        ..GetServerCapacityReply::default()
    };
    leaf.handle_upstream_reply(&refused, at(9));
    for second in [10, 14, 15, 17, 20, 40] {
        leaf.handle_timeout(at(second));
        // Its question is lost.
        leaf.poll_upstream_request(second, at(second));
        let got = client(&mut leaf, "b", at(second));
        assert!(got.unwrap_or(0.0) <= 0.0, "{got:?} at {second} s");
    }
    leaf.assert_consistent();
}

#[test]
fn who_was_refused_and_has_the_name_again_leaves_what_the_first_one_handed_out() {
    let mut root = root();
    let first = FIRST;
    assert_eq!(
        ask(&mut root, first, at(0)).unwrap().capacity,
        amount(100.0)
    );
    let later = Says {
        process: 2,
        learning: true,
        ..first
    };
    ask(&mut root, later, at(1)).unwrap();
    let first = |sequence| Says {
        sequence,
        has: 100.0,
        outstanding: 100.0,
        ..first
    };
    // The first one lives until 80 s, and hands out all.
    for sequence in 2..12 {
        let now = at(8 * (sequence - 1));
        ask(&mut root, first(sequence), now).unwrap();
        let refused = Says { sequence, ..later };
        let refused = ask(&mut root, refused, now + Duration::from_secs(1));
        assert!(matches!(refused, Err(RefusalReason::AnotherProcess(_))));
    }
    // By then the later one has learned.
    let later = Says {
        sequence: 100,
        learning: false,
        ..later
    };
    let lease = ask(&mut root, later, at(95)).unwrap();
    assert_eq!(
        lease.capacity,
        Amount::ZERO,
        "the first one's holders have it"
    );
    root.handle_timeout(at(141));
    let later = Says {
        sequence: 101,
        ..later
    };
    assert_eq!(
        ask(&mut root, later, at(141)).unwrap().capacity,
        amount(100.0)
    );
    root.assert_consistent();
}
