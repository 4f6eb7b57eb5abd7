//! Limits of a template on a single holder: the capacity of one client (`wants_max`), and the clients
//! below one child server (`subclients_max`).

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand, Subclients};
use doorward_engine::messages::{ClientLease, Has, LimitedBy, ServerAsk, ServerLease, Via};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, HolderBounds, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{
    LEASED, amount, holder, master, parsed, request_for, resource, served, server_ask,
    server_request, template,
};
use crate::whole::Whole as _;

const NOW: Time = Time::from_secs(1);

fn templates(
    kind: AlgorithmKind,
    wants_max: Option<f64>,
    subclients_max: Option<f64>,
) -> Templates {
    parsed(TemplateSpec {
        wants_max,
        subclients_max,
        ..template("r", kind, 100.0)
    })
}

fn node(name: &str, has_parent: bool, templates: Templates) -> Node {
    let config = Config {
        name: name.to_owned(),
        has_parent,
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    master(config, templates)
}

fn root(kind: AlgorithmKind, wants_max: Option<f64>) -> Node {
    node("root", false, templates(kind, wants_max, None))
}

fn client(node: &mut Node, name: &str, wants: f64, has: f64) -> Option<ClientLease> {
    let request = request_for(name, resource("r"), 0, wants, has);
    let reply = served(node.handle_get_capacity(&request, NOW));
    reply.leases.into_iter().next()
}

/// Returns the lease of a child of which the parent knows only counts and sums.
fn child(node: &mut Node, name: &str, clients: f64, wants: f64) -> ServerLease {
    let band = BandDemand {
        priority: 0,
        clients,
        wants: amount(wants),
        curve: DemandCurve::of_equals(amount(wants), clients),
    };
    let ask = ServerAsk {
        outstanding: Some(Has::untimed(Amount::ZERO)),
        ..server_ask(resource("r"), Arc::new(ServerDemand::new(vec![band])))
    };
    let request = server_request(holder(name), vec![ask]);
    let answer = node.handle_get_server_capacity(&request, Via::Stream, NOW);
    served(answer.unwrap()).leases.remove(0)
}

#[test]
fn no_algorithm_gives_a_client_more_than_one_can_have() {
    for kind in LEASED {
        for (wants_max, expected) in [(Some(30.0), 30.0), (None, 70.0)] {
            let mut root = root(kind, wants_max);
            let lease = client(&mut root, "a", 70.0, 0.0).unwrap();
            assert_eq!(lease.capacity.get(), expected, "{kind}");
        }
    }
}

#[test]
fn wants_beyond_the_limit_take_nothing_from_others() {
    for kind in [AlgorithmKind::ProportionalShare, AlgorithmKind::FairShare] {
        let mut root = root(kind, Some(30.0));
        client(&mut root, "greedy", 1e15, 0.0);
        let lease = client(&mut root, "modest", 70.0, 0.0).unwrap();
        assert_eq!(lease.capacity.get(), 30.0, "{kind}");
        let more = client(&mut root, "another", 30.0, 0.0).unwrap();
        assert_eq!(more.capacity.get(), 30.0, "{kind}");
    }
}

#[test]
fn a_client_at_the_limit_is_limited_by_its_share_and_not_by_its_wants() {
    let mut root = root(AlgorithmKind::FairShare, Some(30.0));
    let limited = |lease: Option<ClientLease>| lease.unwrap().limited_by;
    assert_eq!(limited(client(&mut root, "a", 70.0, 0.0)), LimitedBy::Share);
    let enough = client(&mut root, "a", 30.0, 30.0);
    assert_eq!(limited(enough), LimitedBy::Wants);
    let more = client(&mut root, "a", 31.0, 30.0);
    assert_eq!(limited(more), LimitedBy::Share);
}

#[test]
fn each_client_of_a_child_counts_up_to_the_limit_of_one() {
    let mut root = root(AlgorithmKind::FairShare, Some(10.0));
    let lease = child(&mut root, "old", 4.0, 4000.0);
    assert_eq!(lease.capacity.get(), 40.0);
    assert_eq!(root.snapshot(NOW).resources[0].wants, 40.0);
}

#[test]
fn a_child_stands_for_no_more_clients_than_one_can() {
    let fair = AlgorithmKind::FairShare;
    for (subclients_max, expected) in [(Some(9.0), 10.0), (Some(1.0), 50.0)] {
        let mut root = node("root", false, templates(fair, None, subclients_max));
        client(&mut root, "honest", 1000.0, 0.0);
        child(&mut root, "liar", 1e12, 1e15);
        let lease = client(&mut root, "honest", 1000.0, 0.0).unwrap();
        let share = root.lease_snapshots(&resource("r"), 9, NOW);
        let share = share.iter().find(|it| it.holder.name.as_str() == "honest");
        assert!((share.unwrap().share - expected).abs() < 1e-9, "{lease:?}");
    }
    // Without a word, as many as a resource may have leases.
    let mut root = node("root", false, templates(fair, None, None));
    child(&mut root, "liar", 1e12, 1e15);
    assert_eq!(root.snapshot(NOW).resources[0].clients, 2e6);
}

#[test]
fn a_child_server_is_told_and_does_as_its_parent_says() {
    let mut root = node(
        "root",
        false,
        templates(AlgorithmKind::NoAlgorithm, Some(10.0), Some(3.0)),
    );
    let own = templates(AlgorithmKind::NoAlgorithm, Some(99.0), None);
    let mut leaf = node("leaf", true, own);
    assert_eq!(client(&mut leaf, "a", 70.0, 0.0), None);
    let request = leaf.poll_upstream_request(1, NOW).unwrap();
    let Ok(Outcome::Served(mut reply)) =
        root.handle_get_server_capacity(&request, Via::Stream, NOW)
    else {
        panic!("it is the master");
    };
    let bounds = HolderBounds {
        wants_max: Some(amount(10.0)),
        subclients_max: Subclients::new(3.0).ok(),
    };
    assert_eq!(reply.leases[0].terms.holder_bounds, bounds);
    leaf.handle_upstream_reply(&reply, NOW);
    assert_eq!(
        client(&mut leaf, "a", 70.0, 0.0).unwrap().capacity.get(),
        10.0
    );
    // A parent that says how to divide and nothing of it leaves no bound; one that does not even say how
    // to divide leaves it to the leaf's own templates.
    for (tells_algorithm, expected) in [(true, None), (false, Some(99.0))] {
        let later = NOW + Duration::from_secs(5);
        let request = leaf.poll_upstream_request(2, later);
        let lease = &mut reply.leases[0];
        lease.terms.holder_bounds = HolderBounds::NONE;
        lease.algorithm = lease.algorithm.take().filter(|_| tells_algorithm);
        lease.sequence = request.and_then(|it| it.sequence).or(lease.sequence);
        leaf.handle_upstream_reply(&reply, later);
        let ask = client(&mut leaf, "b", 1000.0, 0.0).unwrap();
        let wants = leaf.lease_snapshots(&resource("r"), 9, NOW);
        let wants = wants
            .iter()
            .find(|it| it.holder.name.as_str() == "b")
            .unwrap()
            .wants();
        assert_eq!(wants, expected.unwrap_or(1000.0), "{ask:?}");
    }
}
