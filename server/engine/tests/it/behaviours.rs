//! Behaviours of a node that no story shows.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand};
use doorward_engine::division::{ParentTerms, Reason};
use doorward_engine::id::ResourceId;
use doorward_engine::messages::{
    ClientLease, GetServerCapacity, GetServerCapacityReply, Has, ServerLease, Via,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{Algorithm, AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{self, amount, holder, server_ask, server_request, template};
use crate::whole::Whole as _;

fn resource() -> ResourceId {
    asking::resource("r")
}

fn node(capacity: Option<f64>) -> Node {
    let specs: Vec<TemplateSpec> = capacity
        .map(|capacity| template("r", AlgorithmKind::FairShare, capacity))
        .into_iter()
        .collect();
    let config = Config {
        name: "node".to_owned(),
        has_parent: capacity.is_none(),
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut node = Node::new(config, Templates::parse(&specs).unwrap());
    node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
    node
}

/// Returns the lease of a client with these wants, or nothing if the client must ask again later.
fn ask(node: &mut Node, client: &str, wants: f64, now: u64) -> Option<ClientLease> {
    ask_having(node, client, wants, None, now)
}

fn ask_having(
    node: &mut Node,
    client: &str,
    wants: f64,
    has: Option<f64>,
    now: u64,
) -> Option<ClientLease> {
    let request = asking::request(
        holder(client),
        vec![asking::ask(
            resource(),
            0,
            amount(wants),
            has.map(|has| Has {
                expires_in: Some(Duration::from_secs(30)),
                ..Has::untimed(amount(has))
            }),
        )],
    );
    match node.handle_get_capacity(&request, Time::from_secs(now)) {
        Outcome::Served(reply) => reply.leases.into_iter().next(),
        Outcome::NotMaster(_) => panic!("it is the master"),
    }
}

/// Delivers a parent's answer: 60, for a minute.
fn answer(
    node: &mut Node,
    sequence: Option<u64>,
    algorithm: Algorithm,
    terms: ParentTerms,
    now: u64,
) {
    let lease = ServerLease {
        budget: None,
        resource: resource(),
        capacity: amount(60.0),
        expires_in: Duration::from_secs(60),
        refresh_in: Duration::from_secs(5),
        algorithm: Some(algorithm),
        terms: ParentTerms {
            share: amount(60.0),
            ..terms
        },
        granted_by: None,
        sequence,
        decided: Some(true),
    };
    let reply = GetServerCapacityReply {
        leases: vec![lease],
        ..GetServerCapacityReply::default()
    };
    node.handle_upstream_reply(&reply, Time::from_secs(now));
}

#[test]
fn a_request_without_a_number_does_not_wait_for_the_parent() {
    let mut node = node(Some(100.0));
    let mut request = asking::request_for("a", resource(), 0, 10.0, 0.0);
    let mut is_ready = |sequence| {
        request.sequence = sequence;
        let reply = asking::served(node.handle_get_capacity(&request, Time::from_secs(1)));
        (reply.refused.is_empty(), reply.is_ready())
    };
    assert_eq!(is_ready(Some(1)), (true, true));
    assert_eq!(is_ready(None), (false, true));
}

#[test]
fn a_repeated_ask_is_decided_again_after_any_change() {
    let mut node = node(Some(100.0));
    let mut has = None;
    let mut a = |node: &mut Node, now| {
        let lease = ask_having(node, "a", 80.0, has, now).unwrap();
        has = Some(lease.capacity.get());
        (lease.capacity.get(), lease.expires_in.as_secs())
    };
    // Nothing changes: the client gets the same again, for longer.
    for now in [1, 5, 10, 15, 20] {
        assert_eq!(a(&mut node, now), (80.0, 60), "at {now}");
    }
    // Another client wants something, and then more.
    assert_eq!(ask(&mut node, "b", 30.0, 21).unwrap().capacity.get(), 20.0);
    assert_eq!(a(&mut node, 25), (70.0, 60));
    assert_eq!(a(&mut node, 30), (70.0, 60));
    ask_having(&mut node, "b", 50.0, Some(20.0), 31).unwrap();
    assert_eq!(a(&mut node, 35), (50.0, 60));
    assert_eq!(a(&mut node, 40), (50.0, 60));
    // The other client's lease ends.
    assert_eq!(a(&mut node, 95).0, 80.0);
    assert_eq!(a(&mut node, 100).0, 80.0);
    let lowered = Templates::parse(&[template("r", AlgorithmKind::FairShare, 30.0)]);
    node.handle_templates(lowered.unwrap(), Time::from_secs(101));
    assert_eq!(a(&mut node, 105).0, 30.0);
    node.assert_consistent();
}

#[test]
fn a_capacity_that_is_one_rounding_short_is_enough_for_all() {
    // As f64, 0.1 + 0.2 is a little above 0.3.
    let mut root = node(Some(0.3));
    ask(&mut root, "a", 0.1, 1).unwrap();
    ask(&mut root, "b", 0.2, 1).unwrap();
    let leases = root.lease_snapshots(&resource(), 2, Time::from_secs(1));
    assert_eq!(leases[1].why.reason, Reason::EnoughForAll, "{leases:?}");
}

#[test]
fn an_ask_of_a_child_by_an_older_epoch_does_not_count() {
    let mut root = node(Some(100.0));
    let mut wants = |epoch, sequence, wants| {
        let band = BandDemand {
            priority: 0,
            clients: 1.0,
            wants: amount(wants),
            curve: DemandCurve::of_equals(amount(wants), 1.0),
        };
        let request = GetServerCapacity {
            epoch: Some(epoch),
            sequence: Some(sequence),
            ..server_request(
                holder("child"),
                vec![server_ask(
                    resource(),
                    Arc::new(ServerDemand::new(vec![band])),
                )],
            )
        };
        let now = Time::from_secs(sequence);
        root.handle_get_server_capacity(&request, Via::Stream, now)
            .unwrap();
        let children = root.child_snapshots(&resource(), now);
        children[0].wants()
    };
    let of_newer = wants(2, 1, 50.0);
    assert_eq!(wants(1, 2, 10.0), of_newer);
    assert_ne!(wants(2, 3, 10.0), of_newer);
}

#[test]
fn the_equal_share_is_that_of_the_whole_tree() {
    let mut leaf = node(None);
    let clients = [("a", 100.0), ("b", 40.0), ("c", 5.0)];
    for (client, wants) in clients {
        assert_eq!(ask(&mut leaf, client, wants, 1), None);
    }
    let request = leaf.poll_upstream_request(1, Time::from_secs(2)).unwrap();
    let terms = ParentTerms {
        per_client: Some(amount(10.0)),
        ..ParentTerms::default()
    };
    let algorithm = Algorithm {
        kind: AlgorithmKind::ProportionalShare,
        learning_mode_duration: Duration::ZERO,
        ..Algorithm::default()
    };
    answer(&mut leaf, request.sequence, algorithm, terms, 2);
    let gets = clients.map(|(client, wants)| {
        let lease = ask(&mut leaf, client, wants, 3).unwrap();
        lease.capacity.get()
    });
    // 35 are left beyond the equal shares, and 120 are wanted beyond them.
    let expected = [10.0 + 90.0 * 35.0 / 120.0, 10.0 + 30.0 * 35.0 / 120.0, 5.0];
    for (gets, expected) in gets.into_iter().zip(expected) {
        assert!((gets - expected).abs() < 1e-9, "{gets}, not {expected}");
    }
}

#[test]
fn a_lease_that_runs_down_is_not_extended_while_a_server_learns() {
    let algorithm = Algorithm {
        kind: AlgorithmKind::FairShare,
        learning_mode_duration: Duration::from_secs(60),
        ..Algorithm::default()
    };
    let check = |reserved, is_confirmed| {
        let mut leaf = node(None);
        assert_eq!(ask(&mut leaf, "a", 1.0, 1), None);
        let request = leaf.poll_upstream_request(1, Time::from_secs(2)).unwrap();
        let terms = ParentTerms {
            reserved: Some(amount(reserved)),
            ..ParentTerms::default()
        };
        answer(&mut leaf, request.sequence, algorithm.clone(), terms, 2);
        let lease = ask_having(&mut leaf, "b", 30.0, Some(30.0), 3);
        assert_eq!(lease.is_some(), is_confirmed, "{reserved}: {lease:?}");
    };
    check(60.0, true);
    check(100.0, false);
}

#[test]
fn an_answer_to_an_older_request_does_not_count() {
    let mut leaf = node(None);
    assert_eq!(ask(&mut leaf, "a", 30.0, 1), None);
    let request = |leaf: &mut Node, now| leaf.poll_upstream_request(1, Time::from_secs(now));
    let first = request(&mut leaf, 2).unwrap();
    leaf.handle_upstream_lost(Time::from_secs(3));
    let second = request(&mut leaf, 5).unwrap();
    let algorithm = Algorithm {
        learning_mode_duration: Duration::ZERO,
        ..Algorithm::default()
    };
    for (sequence, is_heard) in [(first.sequence, false), (second.sequence, true)] {
        answer(
            &mut leaf,
            sequence,
            algorithm.clone(),
            ParentTerms::default(),
            6,
        );
        assert_eq!(ask(&mut leaf, "a", 30.0, 6).is_some(), is_heard);
    }
}
