//! A node whose shell knows by a record what the last process had granted.

use std::time::Duration;

use doorward_engine::node::Node;
use doorward_engine::node::marks::MarksByResource;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{no_floor, release_request, request_for, resource, served};

const START: Time = Time::from_secs(100);
const LENGTH: Duration = Duration::from_secs(16);

/// A root with a capacity of 100, after a process that had granted `left`.
fn node(left: Option<f64>) -> Node {
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(LENGTH),
        refresh_interval: Some(Duration::from_secs(1)),
        ..TemplateSpec::default()
    }]);
    let mut node = Node::new(no_floor(), templates.unwrap());
    node.handle_mastership(Mastership::Master { epoch: None }, START);
    let left: MarksByResource = left
        .map(|it| ("r", (Some(it), LENGTH)))
        .into_iter()
        .collect();
    node.handle_recorded(left);
    node
}

#[track_caller]
fn check(node: &mut Node, client: &str, wants: f64, has: f64, after: u64, expected: f64) {
    let now = START + Duration::from_secs(after);
    node.handle_timeout(now);
    let reply =
        served(node.handle_get_capacity(&request_for(client, resource("r"), 0, wants, has), now));
    assert_eq!(reply.leases[0].capacity.get(), expected, "{client}");
    assert!(!node.has_marks_to_write(now), "it keeps none");
    assert_eq!(node.marks_due(), None);
}

#[test]
fn what_no_holder_has_reported_stays_reserved_and_the_rest_is_divided_at_once() {
    let mut node = node(Some(60.0));
    check(&mut node, "new", 90.0, 0.0, 1, 40.0);
    check(&mut node, "old", 50.0, 50.0, 1, 50.0);
    check(&mut node, "other", 90.0, 0.0, 1, 0.0);
    check(&mut node, "old", 0.0, 0.0, 17, 0.0);
    check(&mut node, "other", 60.0, 0.0, 17, 60.0);
}

#[test]
fn an_amount_above_the_capacity_is_the_capacity_and_without_one_all_is_free() {
    for any in [f64::MAX, 150.0] {
        let mut any = node(Some(any));
        check(&mut any, "new", 90.0, 0.0, 1, 0.0);
        check(&mut any, "old", 50.0, 50.0, 1, 50.0);
        check(&mut any, "new", 50.0, 0.0, 17, 50.0);
    }
    check(&mut node(None), "new", 90.0, 0.0, 1, 90.0);
}

/// A holder reports more than was recorded, and leaves: the resource learns without holders.
#[test]
fn a_resource_that_nobody_has_is_not_forgotten_before_the_recorded_leases_have_ended() {
    let mut node = node(Some(60.0));
    let late = START + Duration::from_secs(1);
    check(&mut node, "liar", 100.0, 100.0, 1, 100.0);
    let liar = request_for("liar", resource("r"), 0, 0.0, 0.0).client;
    let _released = node.handle_release_capacity(&release_request(liar, vec![resource("r")]), late);
    node.handle_timeout(late);
    check(&mut node, "new", 90.0, 0.0, 2, 0.0);
    check(&mut node, "new", 90.0, 0.0, 17, 90.0);
}
