//! Why a node is in learning mode, in one word.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]
#![allow(missing_docs, reason = "a test")]

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::learning::Learning;
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{GetServerCapacityReply, ServerLease};
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

/// Leases of a minute.
fn templates(kind: AlgorithmKind, learning: Option<u64>) -> Templates {
    let parsed = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(kind),
        lease_length: Some(secs(60)),
        refresh_interval: Some(secs(5)),
        learning_mode_duration: learning.map(secs),
        ..TemplateSpec::default()
    }]);
    parsed.unwrap()
}

fn node(templates: Templates, has_parent: bool) -> Node {
    let config = Config {
        has_parent,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    Node::new(config, templates)
}

/// How a mastership begins.
#[derive(Clone, Copy, Debug)]
enum Begins {
    /// At 0 s, without an election.
    Alone,
    /// At 100 s, nobody having decided since then, where leases of that many seconds may be out.
    Elected(u64, u64),
    /// Not at all.
    Never,
}

#[track_caller]
fn check(begins: Begins, learning: Option<u64>, looks: &[(u64, Learning)]) {
    let mut node = node(templates(AlgorithmKind::FairShare, learning), false);
    match begins {
        Begins::Alone => node.handle_mastership(Mastership::Master { epoch: None }, at(0)),
        Begins::Elected(vacant_since, longer_leases) => {
            let term = Term {
                epoch: 3,
                vacant_since: at(vacant_since),
                longer_leases: secs(longer_leases),
                valid_until: at(1_000_000),
            };
            node.handle_term(term, at(100));
        }
        Begins::Never => {}
    }
    for (when, expected) in looks {
        let found = node.learning(at(*when));
        assert_eq!(
            found, *expected,
            "{begins:?}, learning {learning:?}, at {when} s"
        );
        // It is the same in numbers.
        let is_learning = !matches!(expected, Learning::Standby | Learning::Over);
        assert_eq!(node.learning_remaining(at(*when)).is_some(), is_learning);
    }
}

#[test]
fn a_root_learns_for_as_long_as_anything_may_be_out_and_says_why() {
    use Learning::{Elected, LongerLeases, Over, Standby, Started};
    check(Begins::Never, None, &[(0, Standby), (1_000, Standby)]);
    check(
        Begins::Alone,
        None,
        &[(0, Started), (59, Started), (61, Over)],
    );
    check(Begins::Alone, Some(0), &[(0, Over)]);
    check(
        Begins::Elected(100, 0),
        None,
        &[(100, Elected), (159, Elected), (161, Over)],
    );
    // What its predecessor granted ends the sooner the longer nobody decided.
    check(
        Begins::Elected(70, 0),
        None,
        &[(100, Elected), (129, Elected), (131, Over)],
    );
    check(Begins::Elected(20, 0), None, &[(100, Over)]);
    check(
        Begins::Elected(100, 300),
        None,
        &[
            (100, Elected),
            (159, Elected),
            (161, LongerLeases),
            (399, LongerLeases),
            (401, Over),
        ],
    );
    check(
        Begins::Elected(20, 300),
        None,
        &[(100, LongerLeases), (321, Over)],
    );
    // An operator who has it learn for less has decided so.
    check(
        Begins::Elected(100, 300),
        Some(10),
        &[(109, Elected), (111, Over)],
    );
}

#[test]
fn a_term_that_is_over_leaves_a_server_that_decides_nothing() {
    let mut node = node(templates(AlgorithmKind::FairShare, None), false);
    let term = Term {
        epoch: 3,
        vacant_since: at(0),
        longer_leases: Duration::ZERO,
        valid_until: at(10),
    };
    node.handle_term(term, at(0));
    assert_eq!(node.learning(at(9)), Learning::Elected);
    // Nobody has called it since: it is as over as if somebody had.
    assert_eq!(node.learning(at(10)), Learning::Standby);
}

#[test]
fn where_claims_decide_there_is_nothing_to_learn() {
    let mut node = node(templates(AlgorithmKind::Static, None), false);
    node.handle_mastership(Mastership::Master { epoch: None }, at(0));
    assert_eq!(node.learning(at(0)), Learning::Over);
}

fn client_asks(node: &mut Node, now: Time) {
    let request = GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new("c").unwrap(),
        sequence: None,
        asks: vec![Ask {
            resource: ResourceId::new("r").unwrap(),
            priority: 0,
            wants: Amount::new(50.0).unwrap(),
            has: Some(Has::untimed(Amount::new(30.0).unwrap())),
        }],
    };
    let _ = node.handle_get_capacity(&request, now);
}

/// The parent answers: leases last `lease` seconds, and it learns for so many itself.
fn parent_answers(node: &mut Node, lease: u64, learns: Option<u64>, now: Time) {
    let asked = node.poll_upstream_request(1, now).unwrap();
    let reply = GetServerCapacityReply {
        leases: vec![ServerLease {
            decided: None,
            resource: ResourceId::new("r").unwrap(),
            capacity: Amount::new(50.0).unwrap(),
            expires_in: secs(600),
            refresh_in: secs(500),
            algorithm: Some(Algorithm {
                kind: AlgorithmKind::FairShare,
                lease_length: secs(lease),
                learning_mode_duration: secs(lease),
                ..Algorithm::default()
            }),
            told: Told {
                share: Amount::new(50.0).unwrap(),
                learning: learns.is_some(),
                learning_for: learns.map(secs),
                ..Told::default()
            },
            granted_by: None,
            sequence: asked.sequence,
        }],
        ..GetServerCapacityReply::default()
    };
    node.handle_upstream_reply(&reply, now);
}

#[test]
fn below_the_root_what_the_parent_tells_says_why() {
    let mut leaf = node(Templates::default(), true);
    leaf.handle_mastership(Mastership::Master { epoch: None }, at(0));
    assert_eq!(
        leaf.learning(at(0)),
        Learning::Over,
        "nobody holds anything"
    );
    client_asks(&mut leaf, at(1));
    parent_answers(&mut leaf, 60, Some(300), at(1));
    for (when, expected) in [
        (2, Learning::Started),
        (59, Learning::Started),
        (61, Learning::Above),
        (300, Learning::Above),
        (302, Learning::Over),
    ] {
        leaf.handle_timeout(at(when));
        assert_eq!(leaf.learning(at(when)), expected, "at {when} s");
    }
}
