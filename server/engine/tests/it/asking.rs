//! Templates, nodes and requests for several tests: plain ones, which each test changes as it needs.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{ServerDemand, Subclients};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{
    Ask, GetCapacity, GetServerCapacity, Has, ReleaseCapacity, ServerAsk,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

/// The kinds whose capacity is leased. A budget has [tests of its own](crate::budgets).
pub(crate) const LEASED: [AlgorithmKind; 5] = [
    AlgorithmKind::NoAlgorithm,
    AlgorithmKind::Static,
    AlgorithmKind::ProportionalShare,
    AlgorithmKind::FairShare,
    AlgorithmKind::PriorityBands,
];

pub(crate) fn amount(value: f64) -> Amount {
    Amount::new(value).unwrap()
}

pub(crate) fn resource(id: &str) -> ResourceId {
    ResourceId::new(id).unwrap()
}

pub(crate) fn holder(name: &str) -> HolderName {
    HolderName::new(name).unwrap()
}

/// Returns a template with leases of a minute, refreshes every five seconds, and no learning mode.
pub(crate) fn template(glob: &str, kind: AlgorithmKind, capacity: f64) -> TemplateSpec {
    TemplateSpec {
        identifier_glob: Some(glob.to_owned()),
        capacity: Some(capacity),
        kind: Some(kind),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }
}

pub(crate) fn parsed(template: TemplateSpec) -> Templates {
    Templates::parse(&[template]).unwrap()
}

/// Returns a configuration by which a node decides every request, however early it comes.
pub(crate) fn no_floor() -> Config {
    Config {
        refresh_floor: Duration::ZERO,
        ..Config::default()
    }
}

/// Returns a node that is the master from time zero on.
pub(crate) fn master(config: Config, templates: Templates) -> Node {
    let mut node = Node::new(config, templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    node
}

pub(crate) fn ask(resource: ResourceId, priority: i64, wants: Amount, has: Option<Has>) -> Ask {
    Ask {
        budget: None,
        resource,
        priority,
        weight: Subclients::ONE,
        wants,
        has,
    }
}

/// Returns a request without a number, from a client without an incarnation.
pub(crate) fn request(client: HolderName, asks: Vec<Ask>) -> GetCapacity {
    GetCapacity {
        caller: None,
        incarnation: None,
        client,
        sequence: None,
        asks,
    }
}

/// Returns a request of the same kind for one resource. The client reports its lease.
pub(crate) fn request_for(
    client: &str,
    resource: ResourceId,
    priority: i64,
    wants: f64,
    has: f64,
) -> GetCapacity {
    let has = Some(Has::untimed(amount(has)));
    let ask = ask(resource, priority, amount(wants), has);
    request(holder(client), vec![ask])
}

/// Returns a release of the same kind.
pub(crate) fn release_request(client: HolderName, resources: Vec<ResourceId>) -> ReleaseCapacity {
    ReleaseCapacity {
        words: std::collections::BTreeMap::new(),
        caller: None,
        incarnation: None,
        client,
        sequence: None,
        resources,
    }
}

/// Returns a request of a leaf, of the same kind.
pub(crate) fn server_request(server: HolderName, asks: Vec<ServerAsk>) -> GetServerCapacity {
    GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        epoch: None,
        server,
        sequence: None,
        height: 1,
        address: None,
        asks,
    }
}

/// Returns the ask of a child server that has nothing and does not learn.
pub(crate) fn server_ask(resource: ResourceId, demand: Arc<ServerDemand>) -> ServerAsk {
    ServerAsk {
        budget: None,
        unreported: Amount::ZERO,
        reported: Vec::new(),
        resource,
        demand,
        has: None,
        outstanding: None,
        learning: false,
    }
}

/// Returns the answer of a master.
pub(crate) fn served<T>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Served(reply) => reply,
        Outcome::NotMaster(_) => panic!("it is the master"),
    }
}

/// Handles all timers that are due, and returns the number of calls.
#[track_caller]
pub(crate) fn do_due(node: &mut Node, now: Time) -> usize {
    let mut calls = 0;
    while node.poll_timeout().is_some_and(|due| due <= now) {
        node.handle_timeout(now);
        calls += 1;
        assert!(calls < 100_000, "{:?} is due forever", node.poll_timeout());
    }
    calls
}

/// Calls a method for one resource after the other, with something else in between. Returns the answer and the number
/// of calls.
pub(crate) fn with_others<T>(
    node: &mut Node,
    mut next: impl FnMut(&mut Node) -> Poll<T>,
    mut others: impl FnMut(&mut Node),
) -> (T, usize) {
    let mut calls = 1;
    loop {
        if let Poll::Ready(answer) = next(node) {
            return (answer, calls);
        }
        others(node);
        calls += 1;
    }
}
