//! Report of a server on its place in the tree: as JSON, by gRPC, on pages and as metrics.

use std::sync::Arc;

use doorward_server::metrics::Metrics;
use doorward_server::metrics::format::Format;
use doorward_server::status::{ParentLink, Status};
use prost::Message;
use serde_json::{Value, json};

use crate::family::{Family, WORD, Word, root_with_a_child};
use crate::running::{self, check_lines, start, status_of, without_node};

/// Returns `eu` with two child servers on `fair/x`, the second of them a Doorman server, and a client.
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
    serde_json::to_value(status_of(&family.eu, None, leases_max)).unwrap()
}

#[test]
fn the_status_tells_the_parent_and_the_way_to_the_root() {
    let family = busy();
    let status = status(&family, 0);
    let parent = &status["parent"];
    assert_eq!(parent["addresses"], json!(["root-0:6970", "root-1:6970"]));
    assert_eq!(parent["address"], "root-0:6970");
    assert_eq!(parent["link"], "stream");
    assert!(parent["link_age_ms"].as_u64().unwrap() < 60_000);
    assert_eq!(parent["problem"], Value::Null);
    assert_eq!(status["ancestors"], json!(["root"]));
    assert_eq!(status["is_in_cycle"], false);
}

#[test]
fn the_status_tells_every_child_server_even_if_no_leases_are_asked_for() {
    let family = busy();
    let status = status_of(&family.eu, None, 0);
    let resource = &status.resources[0];
    assert_eq!((resource.children_count, resource.leases.len()), (2, 0));
    let [a, b] = resource.children.as_slice() else {
        panic!("not two children: {:?}", resource.children);
    };
    assert_eq!((&*a.child, a.clients_count, a.wants), ("leaf-a", 4.0, 40.0));
    // This lease was granted before the other holders came. They want more than is left.
    assert_eq!((a.share, a.granted, a.reserved), (35.0, 40.0, 40.0));
    assert_eq!((a.outstanding, a.has), (Some(0.0), None));
    assert_eq!((a.height, a.is_learning), (1, false));
    assert!(a.curve_points > 0 && a.expires_in_ms > 0, "{a:?}");
    assert!(a.why.contains("keeps an earlier, larger grant"), "{a:?}");
    assert_eq!((&*b.child, b.clients_count, b.wants), ("leaf-b", 2.0, 10.0));
    assert_eq!((b.outstanding, b.is_learning), (None, true));
    assert_eq!(b.curve_points, 0);
    let with_leases = status_of(&family.eu, None, 10);
    let leases = with_leases.resources[0].leases.iter();
    let leases = leases.map(|lease| format!("{} {}", lease.kind, lease.holder));
    let expected = ["client c", "server leaf-a", "server leaf-b"];
    assert!(leases.eq(expected), "{with_leases:?}");
}

#[test]
fn the_status_tells_the_servers_own_lease() {
    let mut family = busy();
    let lease = status(&family, 0)["resources"][0]["own_lease"].clone();
    assert!(lease["capacity"].as_f64().unwrap() >= 40.0, "{lease}");
    let (share, capacity) = (lease["share"].as_f64(), lease["capacity"].as_f64());
    assert!(share >= capacity, "{lease}");
    assert!(lease["expires_in_ms"].as_u64().unwrap() > 0, "{lease}");
    assert_eq!(lease["is_in_flight"], false);
    assert_eq!(lease["refusal"], Value::Null);

    family.client_asks("c", "nowhere", 1.0);
    let resource = status(&family, 0)["resources"][1].clone();
    assert_eq!(resource["own_lease"]["expires_in_ms"], Value::Null);
    assert_eq!(resource["template"], Value::Null);
    family.ask_up();
    let resource = status(&family, 0)["resources"][1].clone();
    let refusal = "no template of the root matches it; add one there";
    assert_eq!(resource["own_lease"]["refusal"], refusal);
}

#[test]
fn the_admin_service_says_the_same_byte_for_byte() {
    let mut family = busy();
    family.client_asks("c", "nowhere", 1.0);
    family.ask_up();
    family.post(ParentLink::Down, Some("connection refused"));
    family.child_streams(1);
    let status = status_of(&family.eu, None, 10).encode_to_vec();
    let status = Status::decode(status.as_slice()).unwrap();
    let parent = status.parent.as_ref().unwrap();
    assert_eq!(parent.addresses, ["root-0:6970", "root-1:6970"]);
    assert_eq!(parent.link, "down");
    assert_eq!(parent.problem(), "connection refused");
    let states = status.states.as_ref().unwrap();
    assert_eq!(states.parent_session(), "waiting");
    assert_eq!(states.election, None, "there is none");
    let streams = states.child_streams.iter();
    let streams: Vec<_> = streams.map(|(state, count)| (&**state, *count)).collect();
    assert_eq!(streams, [("open", 1), ("opening", 0)]);
    // A status that is read from the wire prints as the original does, whatever fields are absent.
    let own = serde_json::to_string(&status).unwrap();
    let wire = Status::decode(status.encode_to_vec().as_slice()).unwrap();
    assert_eq!(serde_json::to_string(&wire).unwrap(), own);
}

#[tokio::test]
async fn the_root_has_children_and_neither_a_parent_nor_a_lease_of_its_own() {
    let server = root_with_a_child().await;
    let status = running::json(&server, "/status").await;
    assert_eq!(status["parent"], Value::Null);
    assert_eq!(status["ancestors"], json!([]));
    let resource = &status["resources"][0];
    assert_eq!(resource["own_lease"], Value::Null);
    assert_eq!(resource["children_count"], 1);
    assert_eq!(resource["children"][0]["child"], "eu");
    assert_eq!(resource["clients_count"], 4.0);
}

fn metrics(family: &Family) -> String {
    let text = Metrics::new(&Arc::clone(&family.eu)).render(Format::Plain);
    without_node(&text.unwrap(), "eu")
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
    let told = series("doorward_child_outstanding{");
    assert_eq!(told, 1, "leaf-b does not say");
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
    let series = text.matches("\ndoorward_child_wants{").count();
    assert_eq!(series, 1_000);
    check_lines(&text, &["doorward_children 1200.0"]);
    check_lines(&text, &["doorward_children_not_listed 200.0"]);
}

#[tokio::test]
async fn the_root_has_no_metrics_of_a_parent() {
    let server = start().await;
    let text = running::metrics(&server).await;
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
