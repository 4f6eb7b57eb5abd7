//! What a server tells of its place in the tree: as JSON, by gRPC, on pages and as metrics.

use std::sync::Arc;

use doorward_server::metrics::Metrics;
use doorward_server::rpc::convert;
use doorward_server::status::ParentLink;
use doorward_server::status::tree::ChildStatus;
use serde_json::{Value, json};

use crate::family::{Family, WORD, Word, request};
use crate::running::{page, start};

/// `eu` with two child servers on `fair/x`, the second of the old kind, and a client.
fn busy() -> Family {
    let mut family = Family::new();
    family.child_asks("leaf-a", "fair/x", WORD);
    let old = Word {
        wants: 10.0,
        clients: 2.0,
        outstanding: None,
        learning: true,
        curve: false,
    };
    family.child_asks("leaf-b", "fair/x", old);
    family.client_asks("c", "fair/x", 5.0);
    family
}

fn status(family: &Family, leases_max: usize) -> Value {
    serde_json::to_value(family.eu.status(None, leases_max)).unwrap()
}

#[test]
fn the_status_tells_the_parent_and_the_way_to_the_root() {
    let family = busy();
    let status = status(&family, 0);
    assert_eq!(
        status["parent"]["addresses"],
        json!(["root-0:6970", "root-1:6970"])
    );
    assert_eq!(status["parent"]["address"], "root-0:6970");
    assert_eq!(status["parent"]["link"], "stream");
    assert!(status["parent"]["link_age_ms"].as_u64().unwrap() < 60_000);
    assert_eq!(status["parent"]["problem"], Value::Null);
    assert_eq!(status["ancestors"], json!(["root"]));
    assert_eq!(status["is_in_cycle"], false);
}

#[test]
fn the_status_tells_every_child_server_even_if_no_leases_are_asked_for() {
    let family = busy();
    let status = family.eu.status(None, 0);
    let resource = &status.resources[0];
    assert_eq!((resource.children_count, resource.leases.len()), (2, 0));
    let [a, b] = resource.children.as_slice() else {
        panic!("not two children: {:?}", resource.children);
    };
    assert_eq!(
        (a.child.as_str(), a.clients, a.wants),
        ("leaf-a", 4.0, 40.0)
    );
    // It was granted that before others came, who want more than is left.
    assert_eq!((a.share, a.granted, a.reserved), (35.0, 40.0, 40.0));
    assert_eq!((a.outstanding, a.has), (Some(0.0), None));
    assert_eq!((a.height, a.is_learning), (1, false));
    assert!(a.curve_points > 0 && a.expires_in_ms > 0, "{a:?}");
    assert!(a.why.contains("shrinks when it asks next"), "{a:?}");
    assert_eq!(
        (b.child.as_str(), b.clients, b.wants),
        ("leaf-b", 2.0, 10.0)
    );
    assert_eq!(
        (b.outstanding, b.is_learning, b.curve_points),
        (None, true, 0)
    );
    let with_leases = family.eu.status(None, 10);
    let leases: Vec<_> = with_leases.resources[0]
        .leases
        .iter()
        .map(|lease| (lease.holder.as_str(), lease.kind))
        .collect();
    assert_eq!(
        leases,
        [("c", "client"), ("leaf-a", "server"), ("leaf-b", "server")]
    );
}

#[test]
fn the_status_tells_the_servers_own_lease() {
    let mut family = busy();
    let lease = status(&family, 0)["resources"][0]["own_lease"].clone();
    assert!(lease["capacity"].as_f64().unwrap() >= 40.0, "{lease}");
    assert!(
        lease["share"].as_f64() >= lease["capacity"].as_f64(),
        "{lease}"
    );
    assert!(lease["expires_in_ms"].as_u64().unwrap() > 0, "{lease}");
    assert_eq!(lease["is_in_flight"], false);
    assert_eq!(lease["refused"], Value::Null);

    family.client_asks("c", "nowhere", 1.0);
    let resource = status(&family, 0)["resources"][1].clone();
    assert_eq!(resource["own_lease"]["expires_in_ms"], Value::Null);
    assert_eq!(resource["template"], Value::Null);
    family.ask_up();
    let resource = status(&family, 0)["resources"][1].clone();
    assert_eq!(
        resource["own_lease"]["refused"],
        "no template of the root matches it; add one there"
    );
}

#[test]
fn the_admin_service_tells_the_same() {
    let family = busy();
    family.post(ParentLink::Down, Some("connection refused"));
    family.child_streams(1);
    let told = family.eu.status(None, 0);
    let wire = convert::status_response(told.clone());
    let parent = wire.parent.unwrap();
    assert_eq!(parent.configured_address, ["root-0:6970", "root-1:6970"]);
    assert_eq!(
        (parent.link.as_str(), parent.address),
        ("down", "root-0:6970".to_owned())
    );
    assert_eq!(parent.problem, "connection refused");
    assert_eq!(wire.ancestor, ["root"]);
    assert!(!wire.is_in_cycle);
    let states = wire.states.unwrap();
    assert_eq!(states.parent_session, "waiting");
    assert_eq!(states.election, "", "there is none");
    assert_eq!(states.learning, told.states.learning);
    let streams = states.child_streams.iter();
    let streams: Vec<_> = streams.map(|it| (it.state.as_str(), it.count)).collect();
    assert_eq!(streams, [("open", 1), ("opening", 0)]);
    let (resource, told) = (&wire.resource[0], &told.resources[0]);
    assert_eq!(resource.children_count, 2);
    let own = (
        resource.own_lease.clone().unwrap(),
        told.own_lease.clone().unwrap(),
    );
    assert_eq!((own.0.capacity, own.0.share), (own.1.capacity, own.1.share));
    assert_eq!(own.0.outstanding, told.reserved);
    assert_eq!(own.0.expires_in_ms, own.1.expires_in_ms);
    assert_eq!((own.0.is_in_flight, own.0.refused.as_str()), (false, ""));
    let children: Vec<ChildStatus> = resource.child.iter().map(from_wire).collect();
    assert_eq!(children, told.children);
}

/// Every field, so that none is forgotten on the way.
fn from_wire(child: &doorward_proto::admin::v1::ChildStatus) -> ChildStatus {
    ChildStatus {
        child: child.child.clone(),
        clients: child.clients,
        wants: child.wants,
        share: child.share,
        granted: child.granted,
        reserved: child.reserved,
        has: child.has,
        outstanding: child.outstanding,
        is_learning: child.is_learning,
        height: child.height,
        curve_points: usize::try_from(child.curve_points).unwrap(),
        expires_in_ms: child.expires_in_ms,
        refresh_interval_ms: child.refresh_interval_ms,
        why: child.why.clone(),
    }
}

#[tokio::test]
async fn the_root_has_children_and_neither_a_parent_nor_a_lease_of_its_own() {
    let server = start().await;
    let asks = request("eu", "fair/x", WORD);
    let node = server.board().node();
    node.change(|node, now| {
        node.handle_get_server_capacity(&asks, doorward_engine::request::server::Via::Poll, now)
    })
    .unwrap();
    let (_, _, text) = page(&server, "/status").await;
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["parent"], Value::Null);
    assert_eq!(status["ancestors"], json!([]));
    let resource = &status["resources"][0];
    assert_eq!(resource["own_lease"], Value::Null);
    assert_eq!(resource["children_count"], 1);
    assert_eq!(resource["children"][0]["child"], "eu");
    assert_eq!(resource["clients_count"], 4.0);
}

fn metrics(family: &Family) -> String {
    Metrics::new(&Arc::clone(&family.eu)).render().unwrap()
}

#[track_caller]
fn check_lines(text: &str, lines: &[&str]) {
    for line in lines {
        let found = text.lines().any(|l| l == *line);
        assert!(found, "no line {line:?} in\n{text}");
    }
}

#[test]
fn the_metrics_tell_of_the_parent_and_of_every_child() {
    let family = busy();
    family.client_asks("c", "nowhere", 1.0);
    let text = metrics(&family);
    check_lines(
        &text,
        &[
            "doorward_parent_connected{link=\"poll\"} 0.0",
            "doorward_parent_connected{link=\"stream\"} 1.0",
            "doorward_parent_session_state{state=\"streaming\"} 1.0",
            "doorward_parent_session_state{state=\"waiting\"} 0.0",
            "doorward_is_in_cycle 0.0",
            "doorward_parent_resources_refused 0.0",
            "doorward_parent_lease_remaining_seconds{resource=\"nowhere\"} 0.0",
            "doorward_children 2.0",
            "doorward_children_not_listed 0.0",
            "doorward_child_wants{resource=\"fair/x\",child=\"leaf-a\"} 40.0",
            "doorward_child_granted{resource=\"fair/x\",child=\"leaf-a\"} 40.0",
            "doorward_child_reserved{resource=\"fair/x\",child=\"leaf-a\"} 40.0",
            "doorward_child_outstanding{resource=\"fair/x\",child=\"leaf-a\"} 0.0",
            "doorward_child_clients{resource=\"fair/x\",child=\"leaf-a\"} 4.0",
            "doorward_child_learning{resource=\"fair/x\",child=\"leaf-a\"} 0.0",
            "doorward_child_learning{resource=\"fair/x\",child=\"leaf-b\"} 1.0",
        ],
    );
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        series("doorward_child_outstanding{"),
        1,
        "leaf-b does not say"
    );
    assert_eq!(series("doorward_parent_share{resource=\"fair/x\"}"), 1);
}

#[test]
fn the_metrics_tell_that_the_parent_is_out_of_reach_or_refuses() {
    let mut family = busy();
    family.child_streams(2);
    family.client_asks("c", "nowhere", 1.0);
    family.ask_up();
    family.post(ParentLink::Down, Some("connection refused"));
    check_lines(
        &metrics(&family),
        &[
            "doorward_parent_connected{link=\"poll\"} 0.0",
            "doorward_parent_connected{link=\"stream\"} 0.0",
            "doorward_parent_session_state{state=\"streaming\"} 0.0",
            "doorward_parent_session_state{state=\"waiting\"} 1.0",
            "doorward_child_streams{state=\"opening\"} 0.0",
            "doorward_child_streams{state=\"open\"} 2.0",
            "doorward_parent_resources_refused 1.0",
        ],
    );
}

#[test]
fn no_more_children_than_the_limit_have_time_series() {
    let mut family = Family::new();
    for resource in ["fair/x", "fair/y"] {
        for number in 0..600 {
            family.child_asks(&format!("leaf-{number}"), resource, WORD);
        }
    }
    let text = metrics(&family);
    let series = text
        .lines()
        .filter(|line| line.starts_with("doorward_child_wants{"))
        .count();
    assert_eq!(series, 1_000);
    check_lines(
        &text,
        &[
            "doorward_children 1200.0",
            "doorward_children_not_listed 200.0",
        ],
    );
}

#[tokio::test]
async fn the_root_has_no_metrics_of_a_parent() {
    let server = start().await;
    let (_, _, text) = page(&server, "/metrics").await;
    assert!(!text.contains("doorward_parent"), "{text}");
    assert!(!text.contains("doorward_election"), "nobody is elected");
    check_lines(
        &text,
        &[
            "doorward_children 0.0",
            "doorward_child_streams{state=\"open\"} 0.0",
            "doorward_learning{state=\"over\"} 1.0",
            "doorward_learning{state=\"started\"} 0.0",
        ],
    );
}
