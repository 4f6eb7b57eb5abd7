//! Trees that are lists, and what only files of chance say.

use super::*;
use crate::scenario::fault::{Event, NodeChoice};

#[test]
fn nodes_in_a_list_stand_in_its_order() {
    let scenario = read(&format!(
        "{SHARED}clients: [{{wants: 1}}]\n\
         tree: [{{name: top, candidates: 3}}, {{name: b, parent: top}}, {{name: a, parent: top}}, \
         {{name: c, parent: b, candidates: 2}}]"
    ));
    assert_eq!(names(&scenario), ["top", "b", "a", "c"]);
    let parents: Vec<_> = scenario.nodes.iter().map(|node| node.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(1)]);
    assert_eq!(scenario.leaves(), [2, 3]);
    assert_eq!(scenario.clients[0].nodes, [2, 3]);
    assert_eq!(scenario.nodes[3].candidates, 2);
}

#[test]
fn etcd_is_wiped_or_restored_and_all_servers_of_a_node_stop() {
    let scenario = read(&format!(
        "{SHARED}clients: [{{wants: 1}}]
faults:
- {{at: 1s, etcd: wiped}}
- {{at: 1s, etcd: restored, back: [10s, 1m]}}
- {{at: 1s, stop: root, for: 5s}}"
    ));
    let events: Vec<&Event> = scenario.faults.iter().map(|it| &it.choices[0].1).collect();
    assert!(matches!(
        events[0],
        Event::Etcd {
            back: None,
            length: None
        }
    ));
    assert!(
        matches!(events[1], Event::Etcd { back: Some(back), length: None } if *back == (s(10), s(60)))
    );
    assert!(matches!(events[2], Event::Stop { length, .. } if *length == (s(5), s(5))));
}

#[test]
fn second_processes_run_of_nodes_and_of_clients() {
    let scenario = read(&format!(
        "{SHARED}clients: [{{wants: 1}}]
tree: {{root: {{children: [leaf]}}}}
faults:
- {{at: 1s, twin: leaf, for: 5s}}
- {{at: 1s, twin: {{clients: 1}}, for: 5s}}"
    ));
    for fault in &scenario.faults {
        let event = &fault.choices[0].1;
        assert!(matches!(event, Event::Twin { length, .. } if *length == (s(5), s(5))));
    }
}

#[test]
fn a_file_may_say_that_faults_concern_nobody() {
    let scenario = read(&format!(
        "{SHARED}clients: [{{wants: 1, at: root}}]
tree: {{root: {{children: [leaf]}}}}
idle_faults: true
heal_at: 5m
right_at: [6m, 7m]
limits: {{settled_unfairness: 0.01}}
faults:
- {{at: 1s, crash: {{clients: 3}}}}
- {{at: 1s, crash: {{clients: 3, at: leaf}}}}
- {{at: 1s, isolate: root, for: 1s}}
- {{at: 1s, redirect_loop: root, for: 1s}}
- {{at: 1s, stale_addresses: root, for: 1s}}
- {{at: 1s, partition: root, side: parent, for: 1s}}
- {{at: 1s, elect: [root]}}"
    ));
    assert_eq!(scenario.faults.len(), 7);
    assert_eq!(scenario.heal_at, Some(s(300)));
    assert_eq!(scenario.right_at, [s(360), s(420)]);
    assert_eq!(scenario.limits.settled_unfairness_max, Some(0.01));
    // Chance chooses from a list, also of one.
    let last = &scenario.faults[6].choices[0].1;
    assert!(
        matches!(last, Event::Elect { node } if *node == NodeChoice::AnyOf(vec![0])),
        "{last:?}"
    );
    let text = scenario.to_yaml().unwrap();
    assert!(text.contains("idle_faults: true"), "{text}");
    assert_eq!(
        format!("{:?}", parse(&text).unwrap()),
        format!("{scenario:?}")
    );
}

#[test]
fn older_names_of_keys_are_read_and_written_by_their_new_ones() {
    let scenario = read(&format!(
        "{SHARED}clients: [{{wants: 1}}]\nservers: {{way_up: poll}}\nlimits: {{rest: 0.01}}"
    ));
    assert_eq!(scenario.servers.parent_protocol, ParentProtocol::Poll);
    assert_eq!(scenario.limits.settled_unfairness_max, Some(0.01));
    let text = scenario.to_yaml().unwrap();
    assert!(text.contains("settled_unfairness: 0.01") && text.contains("parent_protocol: poll"));
    let both = format!(
        "{SHARED}clients: [{{wants: 1}}]\nlimits: {{rest: 0.01, settled_unfairness: 0.02}}"
    );
    let error = parse(&both).unwrap_err().to_string();
    let expected = "s.yaml:3:22: limits.settled_unfairness: is given twice; remove one";
    assert_eq!(error, expected);
}
