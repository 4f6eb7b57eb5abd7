//! A server that is not the master sends callers to the server that is.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;
use doorward_proto::doorman::{DiscoveryRequest, ReleaseCapacityRequest};
use doorward_server::app::Server;
use doorward_session::candidate::CandidateConfig;
use doorward_session::candidate::store::{
    EtcdEntry, EtcdKey, Master, Registration, Role, TreePlace, Value, View,
};
use doorward_session::time::tolerance::Tolerance;

use crate::running::{asked, capacity, get, page, start, status_of};

/// Returns the configuration of a candidate at `here:6970`.
pub(crate) fn candidate_config() -> CandidateConfig {
    CandidateConfig {
        address: "here:6970".into(),
        server: "x".into(),
        pages: None,
        node: "root".into(),
        version: "1".into(),
        ttl: Duration::from_secs(10),
        clock_tolerance: Tolerance::LEAST,
        endpoints: 1,
        templates: None,
    }
}

/// Returns the keys of a node whose master `there:6970`, of epoch 9, has pages on port 6981 of any address.
fn view_of_master(now: Time) -> View {
    let entry = |value| EtcdEntry {
        value,
        created: 9,
        modified: 9,
        lease: None,
        seen_at: now,
    };
    let master = Value::Master(Master {
        address: "there:6970".into(),
        server: "y".into(),
        epoch_offset: 0,
    });
    let registration = Value::Server(Registration {
        node: "root".into(),
        address: "there:6970".into(),
        pages: Some("0.0.0.0:6981".into()),
        server: "y".into(),
        place: TreePlace {
            role: Role::Root,
            level: Some(0),
        },
        highest_epoch: None,
        version: "1".into(),
    });
    View {
        entries: [
            (EtcdKey::Master, entry(master)),
            (EtcdKey::Server("there:6970".into()), entry(registration)),
        ]
        .into(),
        revision: 9,
    }
}

pub(crate) fn lose(server: &Server, mastership: Mastership) {
    let node = server.state().node();
    node.change(|node, now| node.handle_mastership(mastership, now));
}

#[tokio::test]
async fn a_follower_names_the_master_in_every_answer() {
    let server = start().await;
    lose(
        &server,
        Mastership::Elsewhere {
            master_address: "there:6970".to_owned(),
            epoch: Some(9),
        },
    );
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    assert_eq!((response.response.len(), response.refused.len()), (0, 0));
    let mastership = response.mastership.expect("it is not the master");
    assert_eq!(mastership.master_address(), "there:6970");
    assert_eq!(mastership.epoch(), 9);

    let release = ReleaseCapacityRequest {
        budget: Vec::new(),
        incarnation: None,
        client_id: "a".to_owned(),
        resource_id: vec!["fair/x".to_owned()],
        sequence: None,
    };
    let released = client.release_capacity(release).await.expect("served");
    let mastership = released.into_inner().mastership.expect("not the master");
    assert_eq!(mastership.master_address(), "there:6970");

    let discovery = client.discovery(DiscoveryRequest {}).await.expect("served");
    assert!(!discovery.get_ref().is_master);
    assert_eq!(
        discovery.get_ref().mastership.master_address(),
        "there:6970"
    );

    assert_eq!(page(&server, "/readyz").await.0, 200, "the master is known");
}

#[tokio::test]
async fn the_status_of_a_candidate_names_the_master_and_its_page() {
    let server = start().await;
    lose(
        &server,
        Mastership::Elsewhere {
            master_address: "there:6970".to_owned(),
            epoch: Some(9),
        },
    );
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.master_address.as_deref(), Some("there:6970"));
    assert_eq!(status.master_pages_address, None);
    server.state().node().input(|replica, now| {
        replica.handle_election(candidate_config(), now);
        let view = Arc::new(view_of_master(now));
        replica.change_candidate(|candidate, now| candidate.handle_view(view, now), now);
    });
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.master_pages_address.as_deref(), Some("0.0.0.0:6981"));
    assert_eq!(status.unready, None);
}

#[tokio::test]
async fn without_a_known_master_nothing_is_served_and_readyz_says_why() {
    let server = start().await;
    lose(&server, Mastership::Unknown);
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    let mastership = response.mastership.expect("it is not the master");
    assert_eq!(mastership.master_address, None);
    let (code, _, why) = page(&server, "/readyz").await;
    assert_eq!(
        (code, why.as_str()),
        (503, "no master of this node is known\n")
    );
    assert_eq!(page(&server, "/healthz").await.0, 200);
}
