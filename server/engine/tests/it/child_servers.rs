//! The record of child servers: states, bounds and ends.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand};
use doorward_engine::messages::{GetServerCapacity, Via};
use doorward_engine::node::Node;
use doorward_engine::node::child_servers::{CHILD_SERVERS_MAX, ChildServer, ChildState, GONE_KEPT};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::AlgorithmKind;
use doorward_engine::time::Time;

use crate::asking::{
    amount, holder, master, no_floor, parsed, resource, server_ask, server_request, template,
};

fn at(seconds: u64) -> Time {
    Time::from_secs(1_000 + seconds)
}

/// Returns a root with leases of a minute and refreshes every five seconds.
fn root() -> Node {
    let templates = parsed(template("*", AlgorithmKind::FairShare, 100.0));
    master(no_floor(), templates)
}

/// Asks for a resource on behalf of so many clients.
fn asks(node: &mut Node, child: &str, id: &str, clients: u32, via: Via, now: Time) {
    let clients = f64::from(clients);
    let wants = amount(10.0 * clients);
    let band = BandDemand {
        priority: 0,
        clients,
        wants,
        curve: DemandCurve::of_equals(wants, clients),
    };
    let demand = Arc::new(ServerDemand::new(vec![band]));
    let request = GetServerCapacity {
        address: Some(format!("{child}:6970").into()),
        height: 2,
        ..server_request(holder(child), vec![server_ask(resource(id), demand)])
    };
    assert!(node.handle_get_server_capacity(&request, via, now).is_ok());
}

fn children(node: &Node, now: Time) -> Vec<ChildServer> {
    node.child_servers_after(None, usize::MAX, now)
}

#[track_caller]
fn check(node: &Node, now: Time, state: ChildState, since: Time) -> ChildServer {
    let [child] = children(node, now).try_into().unwrap();
    assert_eq!((child.state, child.since), (state, since));
    child
}

#[test]
fn a_child_streams_is_gone_and_polls_and_is_forgotten_a_day_after_its_leases() {
    let mut node = root();
    let eu = holder("eu");
    node.handle_subscription(&eu, true, at(0));
    asks(&mut node, "eu", "a", 3, Via::Stream, at(1));
    asks(&mut node, "eu", "b", 7, Via::Stream, at(2));
    let child = check(&node, at(30), ChildState::Streaming, at(1));
    assert_eq!(child.address.as_deref(), Some("eu:6970"));
    assert_eq!((child.heard_at, child.height), (at(2), 2));
    assert_eq!((child.clients, child.learning), (7.0, false));
    asks(&mut node, "eu", "b", 1, Via::Stream, at(3));
    asks(&mut node, "eu", "a", 3, Via::Stream, at(3));
    let lasts = at(3) + Duration::from_secs(60);
    let child = check(&node, at(30), ChildState::Streaming, at(1));
    assert!(
        child.leases_until <= lasts && child.leases_until > at(60),
        "{child:?}"
    );
    assert_eq!(child.clients, 3.0);
    node.handle_subscription(&eu, false, at(40));
    check(&node, at(41), ChildState::Gone, at(40));
    // It comes back without a stream, and misses more than two refreshes later.
    asks(&mut node, "eu", "a", 3, Via::Poll, at(50));
    asks(&mut node, "eu", "a", 3, Via::Poll, at(55));
    check(&node, at(62), ChildState::Polling, at(50));
    let child = check(&node, at(71), ChildState::Gone, at(55));
    let end = child.leases_until + GONE_KEPT;
    check(
        &node,
        end - Duration::from_millis(1),
        ChildState::Gone,
        at(55),
    );
    assert_eq!(children(&node, end), []);
}

#[test]
fn a_call_beside_a_stream_changes_no_state() {
    let mut node = root();
    node.handle_subscription(&holder("eu"), true, at(0));
    asks(&mut node, "eu", "a", 1, Via::Poll, at(1));
    check(&node, at(100), ChildState::Streaming, at(1));
}

#[test]
fn another_mastership_knows_no_child() {
    let mut node = root();
    asks(&mut node, "eu", "a", 1, Via::Poll, at(0));
    node.handle_mastership(Mastership::Master { epoch: Some(2) }, at(1));
    assert_eq!(children(&node, at(1)), []);
    // The end of its stream is no news of it.
    node.handle_subscription(&holder("eu"), false, at(2));
    assert_eq!(children(&node, at(2)), []);
}

#[test]
fn who_asks_for_nothing_is_not_noted() {
    let mut node = root();
    node.handle_subscription(&holder("eu"), true, at(0));
    assert!(children(&node, at(0)).is_empty());
}

#[test]
fn a_full_record_drops_a_child_that_is_gone_and_without_leases_first() {
    let mut node = root();
    let name = |number: usize| format!("c{number:04}");
    let joins = |node: &mut Node, name: &str, now: Time| {
        node.handle_subscription(&holder(name), true, now);
        asks(node, name, "a", 1, Via::Stream, now);
    };
    for number in 0..CHILD_SERVERS_MAX {
        joins(&mut node, &name(number), at(0));
    }
    // Without a child that is gone, another one is not noted.
    joins(&mut node, "late", at(1));
    assert_eq!(children(&node, at(1)).len(), CHILD_SERVERS_MAX);
    asks(&mut node, &name(3), "a", 1, Via::Stream, at(50));
    for (number, gone) in [(3, 51), (7, 53), (9, 54)] {
        node.handle_subscription(&holder(&name(number)), false, at(gone));
    }
    // By then, only the third one's leases last.
    joins(&mut node, "late", at(70));
    let names: Vec<_> = children(&node, at(70))
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names.len(), CHILD_SERVERS_MAX);
    assert!(names.contains(&holder("late")) && names.contains(&holder("c0003")));
    assert!(!names.contains(&holder("c0007")));
    // A reader sees all of them part by part.
    let (mut seen, mut last) = (Vec::new(), None);
    loop {
        let part = node.child_servers_after(last.as_ref(), 64, at(70));
        seen.extend(part.iter().map(|it| it.name.clone()));
        last = part.last().map(|it| it.name.clone());
        if part.len() < 64 {
            break;
        }
    }
    assert_eq!(seen, names);
}
