//! Faults.

use super::*;
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice, Side, When};

/// One fault, in a tree of two nodes with ten clients.
#[track_caller]
fn fault(fault: &str) -> (When, Vec<(f64, Event)>) {
    let scenario = read(&format!(
        "{SHARED}tree: {{root: {{children: [leaf]}}}}\nclients: [{{count: 10, wants: 1}}]\n\
         faults: [{fault}]"
    ));
    let fault = scenario.faults.into_iter().next().unwrap();
    (fault.when, fault.choices)
}

#[test]
fn a_fault_happens_at_a_time_every_so_often_or_by_chance() {
    assert_eq!(fault("{at: 2m, elect: any}").0, When::At(s(120)));
    let every = |from, until| When::Every {
        interval: s(60),
        from,
        until,
    };
    assert_eq!(fault("{every: 1m, elect: any}").0, every(s(60), None));
    assert_eq!(
        fault("{every: 1m, from: 0, until: 5m, elect: any}").0,
        every(s(0), Some(s(300)))
    );
    let by_chance = When::Random {
        per_hour: 6.0,
        from: s(0),
        until: None,
    };
    assert_eq!(fault("{per_hour: 6, elect: any}").0, by_chance);
    let (_, choices) = fault("{at: 1, one_of: [{weight: 3, elect: any}, {kill: leaf}]}");
    let weights: Vec<f64> = choices.iter().map(|(weight, _)| *weight).collect();
    assert_eq!(weights, [3.0, 1.0]);
}

#[test]
fn every_event_is_read() {
    for (text, expected) in [
        ("kill: root", "Kill { node: Node(0), length: None }"),
        (
            "kill: any, for: [0s, 60s]",
            "Kill { node: Any, length: Some((0ns, 60s)) }",
        ),
        (
            "restart: leaf",
            "Restart { node: Node(1), length: (1s, 1s) }",
        ),
        (
            "restart: any, for: [1s, 3s]",
            "Restart { node: Any, length: (1s, 3s) }",
        ),
        (
            "isolate: any, for: 5s",
            "Isolate { node: Any, servers: Master, way: Both, length: (5s, 5s) }",
        ),
        (
            "isolate: any, servers: some, way: back, for: 5s",
            "Isolate { node: Any, servers: Some, way: Back, length: (5s, 5s) }",
        ),
        (
            "etcd_link: any, loss: 0.2, late: [0s, 2s], for: 5s",
            "EtcdLink { node: Any, loss: 0.2, late: (0ns, 2s), length: (5s, 5s) }",
        ),
        (
            "etcd: wiped, for: 5s",
            "Etcd { back: None, length: Some((5s, 5s)) }",
        ),
        (
            "etcd: restored, back: 1m, for: 5s",
            "Etcd { back: Some((60s, 60s)), length: Some((5s, 5s)) }",
        ),
        (
            "etcd_link: any, late: 1s, for: 5s",
            "EtcdLink { node: Any, loss: 0.0, late: (1s, 1s), length: (5s, 5s) }",
        ),
        (
            "redirect_loop: any, for: 5s",
            "RedirectLoop { node: Any, length: (5s, 5s) }",
        ),
        (
            "stale_addresses: below_root, for: [1s, 5s]",
            "StaleAddresses { node: AnyBelowRoot, length: (1s, 5s) }",
        ),
        ("elect: below_root", "Elect { node: AnyBelowRoot }"),
        ("elect: leaves", "Elect { node: Node(1) }"),
        ("elect: [root, leaf]", "Elect { node: AnyOf([0, 1]) }"),
        (
            "elections: [20s, 40s]",
            "Elections { take: (20s, 40s), length: None }",
        ),
        (
            "elections: 20s, for: 5m",
            "Elections { take: (20s, 20s), length: Some((300s, 300s)) }",
        ),
        (
            "freeze: leaf, for: 5s",
            "Freeze { node: Node(1), length: (5s, 5s) }",
        ),
        (
            "crash: {clients: 3}",
            "Crash { clients: ClientChoice { count: 3, groups: None, nodes: None }, length: None }",
        ),
        (
            "crash: {clients: 3}, for: 1s",
            "Crash { clients: ClientChoice { count: 3, groups: None, nodes: None }, length: Some((1s, 1s)) }",
        ),
        (
            "surge: {clients: 1}, by: 100",
            "Surge { clients: ClientChoice { count: 1, groups: None, nodes: None }, by: 100.0, resource: None }",
        ),
        (
            "demand: {clients: 2}, wants: 1000",
            "Demand { clients: ClientChoice { count: 2, groups: None, nodes: None }, wants: 1000.0, resource: None }",
        ),
    ] {
        let (_, choices) = fault(&format!("{{at: 1s, {text}}}"));
        assert_eq!(format!("{:?}", choices[0].1), expected);
    }
    let event = |text: &str| fault(&format!("{{at: 1s, {text}}}")).1.remove(0).1;
    for (side, expected) in [
        ("", Side::All),
        (", side: all", Side::All),
        (", side: parent", Side::Parent),
        (", side: below", Side::Below),
    ] {
        let Event::Partition { from, node, length } =
            event(&format!("partition: leaf, for: 5s{side}"))
        else {
            panic!("is no partition");
        };
        assert_eq!((from, node), (expected, NodeChoice::Node(1)));
        assert_eq!(length, (s(5), s(5)));
    }
    let Event::Drift { clock, speed } = event("drift: any, speed: 1.01") else {
        panic!("is no drift");
    };
    assert_eq!((clock, speed), (ClockChoice::Node(NodeChoice::Any), 1.01));
    let Event::Jump { clock, by } = event("jump: {clients: 2}, by: 5s") else {
        panic!("is no jump");
    };
    assert_eq!(
        (clock, by),
        (ClockChoice::Clients(ClientChoice::any(2)), s(5))
    );
    let Event::Edit { templates } = event("edit: good.yaml") else {
        panic!("is no edit");
    };
    assert_eq!(templates.len(), 1);
}

#[test]
fn a_fault_may_be_one_of_several_nodes_or_of_some_clients() {
    let scenario = read(&format!(
        "{SHARED}
tree: {{root: {{children: {{leaf: {{count: 3}}}}}}}}
clients:
- {{name: web, count: 4, wants: 1}}
- {{name: batch, count: 2, at: leaf-3, wants: 1}}
faults:
- {{at: 1s, kill: leaf}}
- {{at: 1s, freeze: leaves, for: 1s}}
- {{at: 1s, restart: [leaf-3, leaf-1]}}
- {{at: 1s, crash: {{clients: 4, of: web}}}}
- {{at: 1s, crash: {{clients: 3, at: leaf-3}}}}
- {{at: 1s, crash: {{clients: 2, of: web, at: [leaf-1]}}}}
"
    ));
    let events: Vec<&Event> = scenario.faults.iter().map(|f| &f.choices[0].1).collect();
    let Event::Kill { node, .. } = events[0] else {
        panic!("is no kill");
    };
    assert_eq!(*node, NodeChoice::AnyOf(vec![1, 2, 3]));
    let Event::Freeze { node, .. } = events[1] else {
        panic!("is no freeze");
    };
    assert_eq!(*node, NodeChoice::AnyOf(vec![1, 2, 3]));
    let Event::Restart { node, .. } = events[2] else {
        panic!("is no restart");
    };
    assert_eq!(*node, NodeChoice::AnyOf(vec![1, 3]));
    let chosen = |event: &Event| match event {
        Event::Crash { clients, .. } => clients.clone(),
        _ => panic!("is no crash"),
    };
    let choice = |count, groups, nodes| ClientChoice {
        count,
        groups,
        nodes,
    };
    assert_eq!(chosen(events[3]), choice(4, Some(vec![0]), None));
    assert_eq!(chosen(events[4]), choice(3, None, Some(vec![3])));
    assert_eq!(chosen(events[5]), choice(2, Some(vec![0]), Some(vec![1])));
}
