//! When what a node has of its parent is over.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::{Config, Node};
use doorward_engine::request::server::{GetServerCapacityReply, ServerLease};
use doorward_engine::request::{Ask, GetCapacity};
use doorward_engine::supply::Told;
use doorward_engine::time::Time;

fn id(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

/// A node below the root that has asked its parent for two resources.
fn asking() -> Node {
    let config = Config {
        name: "leaf".to_owned(),
        has_parent: true,
        ..Config::default()
    };
    let mut node = Node::new(config, doorward_engine::template::Templates::default());
    node.handle_mastership(Mastership::Master { epoch: None }, Time::ZERO);
    let ask = |resource| Ask {
        resource: id(resource),
        priority: 0,
        wants: Amount::new(1.0).unwrap(),
        has: None,
    };
    let request = GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new("c").unwrap(),
        sequence: None,
        asks: vec![ask("a"), ask("b")],
    };
    node.handle_get_capacity(&request, Time::ZERO);
    node
}

fn lease(resource: &str, seconds: u64, sequence: Option<u64>) -> ServerLease {
    ServerLease {
        decided: None,
        granted_by: None,
        resource: id(resource),
        capacity: Amount::new(1.0).unwrap(),
        expires_in: Duration::from_secs(seconds),
        refresh_in: Duration::from_secs(1),
        algorithm: None,
        told: Told::default(),
        sequence,
    }
}

#[test]
fn the_last_lease_of_the_parent_ends_with_the_longest() {
    let mut node = asking();
    assert_eq!(node.upstream_leases_end(Time::ZERO), None, "no answer yet");
    let request = node.poll_upstream_request(1, Time::from_secs(1)).unwrap();
    let reply = GetServerCapacityReply {
        leases: vec![
            lease("a", 20, request.sequence),
            lease("b", 40, request.sequence),
        ],
        ..GetServerCapacityReply::default()
    };
    node.handle_upstream_reply(&reply, Time::from_secs(1));
    // Counted from when it was asked for, less a thousandth.
    let end = Time::from_secs(41) - Duration::from_millis(40);
    assert_eq!(node.upstream_leases_end(Time::from_secs(1)), Some(end));
    assert_eq!(node.upstream_leases_end(Time::from_secs(30)), Some(end));
    assert_eq!(node.upstream_leases_end(end), None, "it is over");
}
