//! `status` of a server in a tree: its parent, its own leases, its child servers.

use doorward_proto::admin::v1::{
    ChildStatus, LeaseStatus, OwnLeaseStatus, ParentStatus, ResourceStatus,
};

use crate::fake_server::{FakeServer, Play};
use crate::{json, printed, run, stdout};

fn child(name: &str) -> ChildStatus {
    ChildStatus {
        child: name.to_owned(),
        clients_count: 12.0,
        wants: 80.0,
        share: 50.0,
        granted: 45.0,
        reserved: 50.0,
        has: Some(45.0),
        outstanding: Some(40.5),
        is_learning: false,
        height: 1,
        curve_points: 7,
        expires_in_ms: 59_900,
        refresh_interval_ms: 5_000,
        why: "fair share".to_owned(),
        wants_more: false,
    }
}

fn lease(holder: &str, kind: &str) -> LeaseStatus {
    LeaseStatus {
        holder: holder.to_owned(),
        kind: kind.to_owned(),
        wants: 5.0,
        share: 5.0,
        granted: 5.0,
        reserved: 5.0,
        expires_in_ms: 59_900,
        why: "there is enough".to_owned(),
        ..LeaseStatus::default()
    }
}

/// A server in the middle: below `world` and the root, above two leaves.
fn middle() -> Play {
    let old = ChildStatus {
        outstanding: None,
        has: None,
        curve_points: 0,
        is_learning: true,
        ..child("leaf-b")
    };
    let resource = ResourceStatus {
        resource_id: "db/reads".to_owned(),
        algorithm: Some("FAIR_SHARE".to_owned()),
        capacity: 100.0,
        wants: 165.0,
        granted: 95.0,
        reserved: 100.0,
        leases_count: 4,
        clients_count: 25,
        own_lease: Some(OwnLeaseStatus {
            capacity: 100.0,
            share: 110.0,
            outstanding: 100.0,
            expires_in_ms: Some(59_900),
            is_in_flight: true,
            refusal: None,
            parent_learning_remaining_ms: Some(41_000),
        }),
        children_count: 2,
        children: vec![child("leaf-a"), old],
        leases: vec![
            lease("leaf-a", "server"),
            lease("leaf-b", "server"),
            lease("web", "client"),
        ],
        ..ResourceStatus::default()
    };
    let refused = ResourceStatus {
        resource_id: "nowhere".to_owned(),
        algorithm: Some("FAIR_SHARE".to_owned()),
        own_lease: Some(OwnLeaseStatus {
            refusal: Some("no template of the root matches it".to_owned()),
            ..OwnLeaseStatus::default()
        }),
        ..ResourceStatus::default()
    };
    Play {
        resources: vec![resource, refused],
        parent: Some(ParentStatus {
            addresses: vec!["eu-0:6970".to_owned(), "eu-1:6970".to_owned()],
            address: "eu-0:6970".to_owned(),
            link: "stream".to_owned(),
            link_age_ms: 720_000,
            problem: None,
        }),
        ancestors: ["europe", "world", "root"].map(str::to_owned).to_vec(),
        ..Play::default()
    }
}

#[test]
fn status_shows_the_parent_and_children_under_their_resource() {
    let server = FakeServer::start(middle());
    let text = printed(&server.address, &["status"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "fake 1.2.3: master, epoch 7, up for 1m 5s",
            "parent: europe at eu-0:6970, stream for 12m; above it: world, root",
            "1 template from templates.yaml",
            "",
            "resource  algorithm   capacity  wants  granted  reserved  clients  waiting  state",
            "db/reads  FAIR_SHARE       100    165       95       100       25        0  learning above for at most 41s",
            "  leaf-a                           80       45        50       12",
            "  leaf-b                           80       45        50       12           learning, counts only",
            "nowhere   FAIR_SHARE         0      0        0         0        0        0  refused by the parent",
        ],
        "{text}"
    );
}

#[test]
fn status_of_a_resource_shows_its_own_lease_and_all_of_its_children() {
    let server = FakeServer::start(middle());
    let text = printed(&server.address, &["status", "db/reads"]);
    let lines: Vec<&str> = text.lines().skip(8).collect();
    assert_eq!(
        lines,
        [
            "",
            "db/reads",
            "own lease: 100 (share 110), expires in 59.9s; up to 100 in use below; the parent is asked and has not answered yet",
            "child server  levels  clients  wants  share  granted  reserved  outstanding  expires in  state                  why",
            "leaf-a             1       12     80     50       45        50         40.5       59.9s                         fair share",
            "leaf-b             1       12     80     50       45        50            ?       59.9s  learning, counts only  fair share",
            "holder  priority  wants  share  granted  reserved  expires in  why",
            "web            0      5      5        5         5       59.9s  there is enough",
            "and 1 more; --leases lists more",
        ],
        "{text}"
    );
    let output = run(&server.address, &["status", "nowhere"]);
    let refused = "own lease: REFUSED by the parent: no template of the root matches it; none";
    assert!(stdout(&output).contains(refused), "{}", stdout(&output));
}

#[test]
fn a_parent_out_of_reach_and_a_cycle_stand_out() {
    let mut play = middle();
    play.ancestors.clear();
    play.is_in_cycle = true;
    if let Some(parent) = &mut play.parent {
        "down".clone_into(&mut parent.link);
        parent.problem = Some("connection refused".to_owned());
    }
    let server = FakeServer::start(play);
    let text = printed(&server.address, &["status"]);
    let lines: Vec<&str> = text.lines().skip(1).take(3).collect();
    assert_eq!(
        lines,
        [
            "parent: eu-0:6970, OUT OF REACH for 12m",
            "  connection refused",
            "this node is its OWN ANCESTOR, and leases nothing: check --node and --parent of the servers above it",
        ]
    );
}

#[test]
fn the_tree_has_a_stable_shape_for_programs() {
    let server = FakeServer::start(middle());
    let output = run(&server.address, &["status", "--output", "json"]);
    let status = json(&output);
    assert_eq!(
        status["parent"],
        serde_json::json!({
            "addresses": ["eu-0:6970", "eu-1:6970"], "address": "eu-0:6970", "link": "stream",
            "link_age_ms": 720_000, "problem": null,
        })
    );
    assert_eq!(
        status["ancestors"],
        serde_json::json!(["europe", "world", "root"])
    );
    assert_eq!(status["is_in_cycle"], false);
    let resource = &status["resources"][0];
    assert_eq!(
        resource["own_lease"],
        serde_json::json!({
            "capacity": 100.0, "share": 110.0, "outstanding": 100.0, "expires_in_ms": 59_900,
            "is_in_flight": true, "refusal": null, "parent_learning_remaining_ms": 41_000,
        })
    );
    assert_eq!(resource["children_count"], 2);
    assert_eq!(
        resource["children"],
        serde_json::json!([
            {
                "child": "leaf-a", "clients_count": 12.0, "wants": 80.0, "share": 50.0, "granted": 45.0,
                "reserved": 50.0, "has": 45.0, "outstanding": 40.5, "is_learning": false,
                "height": 1, "curve_points": 7, "expires_in_ms": 59_900,
                "refresh_interval_ms": 5_000, "why": "fair share", "wants_more": false,
            },
            {
                "child": "leaf-b", "clients_count": 12.0, "wants": 80.0, "share": 50.0, "granted": 45.0,
                "reserved": 50.0, "has": null, "outstanding": null, "is_learning": true,
                "height": 1, "curve_points": 0, "expires_in_ms": 59_900,
                "refresh_interval_ms": 5_000, "why": "fair share", "wants_more": false,
            },
        ])
    );
}
