//! A look at a node that goes on where the last one ended sees what one look at everything sees.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::DemandCurve;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::learning::Learning;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::totals::Totals;
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{GetServerCapacity, ServerAsk, Via};
use doorward_engine::request::{Ask, GetCapacity};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const RESOURCES: usize = 100;

fn amount(value: f64) -> Amount {
    Amount::new(value).unwrap()
}

fn id(number: usize) -> ResourceId {
    ResourceId::new(&format!("r{number:03}")).unwrap()
}

/// A root whose resources have one client each, every tenth a second one that has to wait, and every fifth a child.
fn busy() -> Node {
    let template = TemplateSpec {
        identifier_glob: Some("*".to_owned()),
        capacity: Some(10.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    let config = Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    };
    let mut node = Node::new(config, Templates::parse(&[template]).unwrap());
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    for number in 0..RESOURCES {
        client_asks(&mut node, "a", number);
        if number.is_multiple_of(10) {
            client_asks(&mut node, "b", number);
        }
        if number.is_multiple_of(5) {
            child_asks(&mut node, number);
        }
    }
    node
}

fn client_asks(node: &mut Node, client: &str, number: usize) {
    let request = GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new(client).unwrap(),
        sequence: None,
        asks: vec![Ask {
            resource: id(number),
            priority: 0,
            wants: amount(10.0),
            has: None,
        }],
    };
    node.handle_get_capacity(&request, Time::ZERO);
}

fn child_asks(node: &mut Node, number: usize) {
    let demand = ServerDemand::new(vec![BandDemand {
        priority: 0,
        clients: 3.0,
        wants: amount(3.0),
        curve: DemandCurve::of_equals(amount(3.0), 3.0),
    }]);
    let request = GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        epoch: None,
        server: HolderName::new("leaf").unwrap(),
        sequence: None,
        height: 1,
        asks: vec![ServerAsk {
            unreported: Amount::ZERO,
            reported: Vec::new(),
            resource: id(number),
            demand: Arc::new(demand),
            has: None,
            outstanding: None,
            learning: false,
        }],
    };
    let answer = node.handle_get_server_capacity(&request, Via::Stream, Time::ZERO);
    assert!(answer.is_ok());
}

#[test]
fn snapshots_of_parts_are_those_of_the_whole_and_no_part_is_larger_than_asked_for() {
    let node = busy();
    let whole = node.snapshot(Time::ZERO).resources;
    assert_eq!(whole.len(), RESOURCES);
    for size in [1, 7, 50, RESOURCES, usize::MAX] {
        let mut seen = Vec::new();
        loop {
            let after = seen
                .last()
                .map(|it: &doorward_engine::snapshot::ResourceSnapshot| it.resource.clone());
            let part = node.snapshots_after(after.as_ref(), size, Time::ZERO);
            assert!(part.len() <= size);
            if part.is_empty() {
                break;
            }
            seen.extend(part);
        }
        assert_eq!(seen, whole, "in parts of {size}");
    }
}

#[test]
fn sums_of_parts_are_those_of_the_whole() {
    let node = busy();
    let resources = node.snapshot(Time::ZERO).resources;
    let (whole, next) = node.totals_after(None, usize::MAX, Time::ZERO);
    assert_eq!(next, None);
    assert_eq!(whole.resources, resources.len());
    assert_eq!(whole.leases, resources.iter().map(|it| it.leases).sum());
    assert_eq!(whole.children, resources.iter().map(|it| it.children).sum());
    assert_eq!(whole.waiting, resources.iter().map(|it| it.waiting).sum());
    assert_eq!(whole.clients, resources.iter().map(|it| it.clients).sum());
    assert_eq!(whole.leases_per_resource, 3);
    assert_eq!((whole.leases, whole.children), (130, 20));
    assert!(whole.waiting > 0 && whole.clients == 170.0, "{whole:?}");
    for size in [1, 7, 50, RESOURCES] {
        let (mut sum, mut next) = (Totals::default(), None);
        loop {
            let (part, last) = node.totals_after(next.as_ref(), size, Time::ZERO);
            assert!(part.resources <= size);
            sum.add(&part);
            next = last;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(sum, whole, "in parts of {size}");
    }
}

#[test]
fn who_has_the_sums_knows_whether_the_node_learns_and_its_load() {
    let mut node = busy();
    let (totals, _) = node.totals_after(None, usize::MAX, Time::ZERO);
    assert_eq!(node.learning_by(&totals, Time::ZERO), Learning::Over);
    assert_eq!(node.load_with(totals.leases_per_resource), node.load());
    node.handle_mastership(Mastership::Unknown, Time::ZERO);
    assert_eq!(node.learning_by(&totals, Time::ZERO), Learning::Standby);
}
