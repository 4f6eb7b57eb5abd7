//! A mastership that holds until a time, unless it is confirmed before: what a node does when that
//! time comes, whoever calls it first.

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
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::event::Event;
use doorward_engine::node::mastership::{Mastership, Outcome, Term};
use doorward_engine::node::{Config, Node, TimeoutReason};
use doorward_engine::request::server::{GetServerCapacity, ServerAsk, Via};
use doorward_engine::request::{Ask, GetCapacity, Has, ReleaseCapacity};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const NO_MASTER: Mastership = Mastership::Unknown;

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn amount(amount: f64) -> Amount {
    Amount::new(amount).unwrap()
}

/// A node with 100 of `r`, whose mastership of epoch 7 holds from 0 s to 10 s.
fn elected(has_parent: bool) -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        ..TemplateSpec::default()
    }]);
    let config = Config {
        has_parent,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut node = Node::new(config, templates.unwrap());
    node.handle_term(term(7, 0, 10), at(0));
    node
}

fn term(epoch: u64, vacant_since: u64, valid_until: u64) -> Term {
    Term {
        epoch,
        vacant_since: at(vacant_since),
        longer_leases: Duration::ZERO,
        valid_until: at(valid_until),
    }
}

fn has(capacity: f64) -> Option<Has> {
    Some(Has {
        granted_by: None,
        capacity: amount(capacity),
        expires_in: None,
    })
}

fn asking(sequence: u64, wants: f64, has: Option<Has>) -> GetCapacity {
    GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new("c").unwrap(),
        sequence: Some(sequence),
        asks: vec![Ask {
            resource: ResourceId::new("r").unwrap(),
            priority: 0,
            wants: amount(wants),
            has,
        }],
    }
}

fn child_asking(sequence: u64) -> GetServerCapacity {
    let wants = amount(10.0);
    GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        server: HolderName::new("eu").unwrap(),
        epoch: Some(3),
        sequence: Some(sequence),
        height: 1,
        asks: vec![ServerAsk {
            unheard: Amount::ZERO,
            told_of: Vec::new(),
            resource: ResourceId::new("r").unwrap(),
            demand: Arc::new(ServerDemand::new(vec![BandDemand {
                priority: 0,
                clients: 1.0,
                wants,
                curve: DemandCurve::of_equals(wants, 1.0),
            }])),
            has: None,
            outstanding: Some(Has::untimed(Amount::ZERO)),
            learning: false,
        }],
    }
}

/// What a client that says it has 30 is granted; learning mode confirms it.
fn granted(node: &mut Node, sequence: u64, now: Time) -> f64 {
    match node.handle_get_capacity(&asking(sequence, 50.0, has(30.0)), now) {
        Outcome::Served(reply) => reply.leases[0].capacity.get(),
        Outcome::NotMaster(_) => panic!("it is the master"),
    }
}

fn events(node: &mut Node) -> Vec<Event> {
    std::iter::from_fn(|| node.poll_event()).collect()
}

#[test]
fn whatever_comes_first_after_the_end_nothing_is_decided() {
    type Call = fn(&mut Node, Time) -> bool;
    let calls: [(&str, Call); 6] = [
        ("a client asks", |node, now| {
            node.handle_get_capacity(&asking(2, 50.0, has(30.0)), now)
                == Outcome::NotMaster(NO_MASTER)
        }),
        ("a client releases", |node, now| {
            let release = ReleaseCapacity {
                caller: None,
                incarnation: None,
                client: HolderName::new("c").unwrap(),
                sequence: Some(2),
                resources: vec![ResourceId::new("r").unwrap()],
            };
            node.handle_release_capacity(&release, now) == Outcome::NotMaster(NO_MASTER)
        }),
        ("a child server asks", |node, now| {
            let answer = node.handle_get_server_capacity(&child_asking(2), Via::Stream, now);
            answer == Ok(Outcome::NotMaster(NO_MASTER))
        }),
        ("pushes are asked for", |node, now| {
            node.poll_pushes(now).is_empty()
        }),
        ("the timer calls", |node, now| {
            node.handle_timeout(now);
            node.poll_timeout().is_none()
        }),
        ("somebody looks", |node, now| {
            node.mastership(now) == &NO_MASTER
        }),
    ];
    for (what, call) in calls {
        let mut node = elected(false);
        granted(&mut node, 1, at(1));
        let child = node.handle_get_server_capacity(&child_asking(1), Via::Stream, at(1));
        assert!(matches!(child, Ok(Outcome::Served(_))));
        node.handle_subscription(&HolderName::new("eu").unwrap(), true);
        // Frozen since then, and going on at the very moment the mastership ends.
        assert!(call(&mut node, at(10)), "{what}");
        node.handle_timeout(at(10));
        assert!(
            events(&mut node).contains(&Event::TermEnded { epoch: Some(7) }),
            "{what}"
        );
        assert_eq!(
            node.snapshot(at(10)).resources,
            [],
            "{what}: leases are forgotten"
        );
    }
}

#[test]
fn below_the_root_nothing_is_asked_of_the_parent_after_the_end() {
    let mut node = elected(true);
    let outcome = node.handle_get_capacity(&asking(1, 50.0, None), at(1));
    assert!(
        matches!(outcome, Outcome::Served(_)),
        "refused as not ready"
    );
    let mut other = elected(true);
    let _ = other.handle_get_capacity(&asking(1, 50.0, None), at(1));
    let asked = node
        .poll_upstream_request(1, at(3))
        .expect("it is the master");
    assert_eq!(asked.epoch, Some(7), "by which it speaks for its node");
    assert_eq!(other.poll_upstream_request(1, at(10)), None);
}

#[test]
fn a_mastership_that_is_confirmed_in_time_goes_on() {
    let mut node = elected(false);
    assert_eq!(granted(&mut node, 1, at(1)), 30.0);
    let end = node.poll_timeout().expect("it ends");
    assert_eq!((end.at, end.reason), (at(10), TimeoutReason::TermEnd));
    node.handle_term(term(7, 9, 20), at(9));
    assert_eq!(node.masterships(), 1, "it is the same");
    assert_eq!(
        node.snapshot(at(12)).resources.len(),
        1,
        "nothing is forgotten"
    );
    assert_eq!(granted(&mut node, 2, at(19)), 30.0);
    assert_eq!(node.valid_until(), Some(at(20)));
}

#[test]
fn a_mastership_that_is_confirmed_too_late_begins_anew() {
    for (what, vacant_since, learns_for) in [
        ("it granted nothing after its term was over, at 10 s", 0, 54),
        ("somebody else may have decided until now", 15, 59),
    ] {
        let mut node = elected(false);
        assert_eq!(granted(&mut node, 1, at(1)), 30.0);
        node.handle_term(term(7, vacant_since, 30), at(15));
        assert_eq!(node.snapshot(at(15)).resources, []);
        assert_eq!(node.masterships(), 3, "won, ended, won again");
        // In learning mode, as after any other change of master.
        assert_eq!(granted(&mut node, 2, at(16)), 30.0);
        let resource = &node.snapshot(at(16)).resources[0];
        let learns_for = Some(Duration::from_secs(learns_for));
        assert_eq!(resource.learning_remaining, learns_for, "{what}");
    }
}

#[test]
fn learning_is_over_a_lease_length_after_anybody_decided() {
    for (vacant_since, begins, learns_for) in [
        (100, 100, Some(60)),
        (60, 100, Some(20)),
        (40, 100, None),
        (0, 100, None),
        // Nobody knows the future.
        (200, 100, Some(60)),
    ] {
        let mut node = elected(false);
        node.handle_mastership(Mastership::Unknown, at(1));
        node.handle_term(term(8, vacant_since, 1_000), at(begins));
        granted(&mut node, 1, at(begins));
        let resource = &node.snapshot(at(begins)).resources[0];
        assert_eq!(
            resource.learning_remaining,
            learns_for.map(Duration::from_secs),
            "vacant since {vacant_since} s"
        );
    }
}

#[test]
fn a_term_that_is_over_when_it_is_told_is_none() {
    let mut node = elected(false);
    node.handle_mastership(Mastership::Unknown, at(1));
    node.handle_term(term(8, 6, 5), at(6));
    assert_eq!(node.mastership(at(6)), &NO_MASTER);
    assert_eq!(node.poll_timeout(), None);
}

#[test]
fn without_an_election_a_mastership_has_no_end() {
    let mut node = elected(false);
    node.handle_mastership(Mastership::Master { epoch: None }, at(1));
    assert_eq!(node.valid_until(), None);
    // Learning mode is long over.
    assert_eq!(granted(&mut node, 1, at(1_000_000)), 50.0);
}
