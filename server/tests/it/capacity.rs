//! The life of a lease over the wire.

use doorward_proto::doorman::{DiscoveryRequest, ReleaseCapacityRequest, refusal};
use doorward_server::app::Server;
use doorward_server::app::ServerConfig;
use doorward_server::limits::{LimitFigure, ServerLimit};

use crate::running::{asked, asked_with, capacity, config, get, only, start};

#[tokio::test]
async fn a_client_gets_what_it_wants_as_long_as_there_is_enough() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("fair/x", 30.0)]).await;
    let lease = &only(&response).gets;
    assert_eq!(lease.capacity, 30.0);
    let expires_in_ms = lease.expires_in_ms.expect("ours");
    assert!((1..=60_000).contains(&expires_in_ms), "{expires_in_ms}");
    assert!(lease.refresh_in_ms.expect("ours") < expires_in_ms);
    assert!(lease.refresh_interval >= 1);
    assert!(lease.expiry_time > 1_700_000_000, "seconds since the epoch");
    assert_eq!(only(&response).safe_capacity, Some(100.0));
}

#[tokio::test]
async fn two_clients_share_fairly_once_the_first_has_acknowledged_its_shrink() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 90.0)]).await;
    let waiting = get(&mut client, "b", vec![asked("fair/x", 90.0)]).await;
    assert_eq!(only(&waiting).gets.capacity, 10.0, "a still holds 90");
    let shrunk = get(&mut client, "a", vec![asked_with("fair/x", 90.0, 90.0)]).await;
    assert_eq!(only(&shrunk).gets.capacity, 50.0);
    get(&mut client, "a", vec![asked_with("fair/x", 90.0, 50.0)]).await;
    let settled = get(&mut client, "b", vec![asked_with("fair/x", 90.0, 10.0)]).await;
    assert_eq!(only(&settled).gets.capacity, 50.0);
}

#[tokio::test]
async fn a_released_lease_frees_its_capacity_at_once() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 100.0)]).await;
    let release = ReleaseCapacityRequest {
        incarnation: None,
        client_id: "a".to_owned(),
        resource_id: vec!["fair/x".to_owned(), "fair/never-held".to_owned()],
        sequence: None,
    };
    let released = client.release_capacity(release).await.expect("served");
    assert_eq!(released.into_inner().mastership, None);
    let next = get(&mut client, "b", vec![asked("fair/x", 100.0)]).await;
    assert_eq!(only(&next).gets.capacity, 100.0);
}

#[tokio::test]
async fn a_late_duplicate_changes_nothing() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for (sequence, wants) in [(Some(2), 40.0), (Some(1), 5.0)] {
        let mut request = crate::running::request("a", vec![asked("fair/x", wants)]);
        request.sequence = sequence;
        let response = client.get_capacity(request).await.expect("served");
        assert_eq!(only(&response.into_inner()).gets.capacity, 40.0);
    }
}

#[tokio::test]
async fn a_resource_without_a_template_is_refused_by_name_and_the_rest_is_served() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let asks = vec![asked("nowhere", 1.0), asked("fair/x", 1.0)];
    let response = get(&mut client, "a", asks).await;
    assert_eq!(response.response.len(), 1);
    assert_eq!(response.refused.len(), 1);
    assert_eq!(response.refused[0].resource_id(), "nowhere");
    assert_eq!(
        response.refused[0].reason(),
        refusal::Reason::UnknownResource
    );
    assert!(response.refused[0].message().contains("no template"));
}

#[tokio::test]
async fn more_holders_than_allowed_are_refused_and_say_so() {
    let mut config: ServerConfig = config();
    config.node.limits.leases_per_resource_max = 1;
    let server = Server::start(config).await.expect("free ports");
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    let response = get(&mut client, "b", vec![asked("fair/x", 1.0)]).await;
    let refused = &response.refused[0];
    assert_eq!(refused.reason(), refusal::Reason::TooMany);
    assert!(refused.retry_in_ms() >= 1_000, "{refused:?}");
    assert!(
        refused.message().contains("--leases-per-resource-max"),
        "{refused:?}"
    );
    let figures = server.board().limit_figures();
    let figure = figures
        .iter()
        .find(|figure| figure.limit == ServerLimit::LeasesPerResource);
    let expected = LimitFigure {
        limit: ServerLimit::LeasesPerResource,
        used: Some(1),
        max: Some(1),
        refused: 1,
    };
    assert_eq!(figure, Some(&expected));
}

#[tokio::test]
async fn discovery_names_the_server_itself_as_the_master() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let answer = client.discovery(DiscoveryRequest {}).await.expect("served");
    let answer = answer.into_inner();
    assert!(answer.is_master);
    assert_eq!(
        answer.mastership.master_address(),
        server.grpc_address().to_string()
    );
    assert_eq!(answer.mastership.epoch, None, "there is no election");
}

#[tokio::test]
async fn the_advertised_address_is_what_discovery_tells() {
    let config = ServerConfig {
        advertise: Some("quota.example.com:6970".to_owned()),
        ..config()
    };
    let server = Server::start(config).await.expect("free ports");
    let mut client = capacity(&server).await;
    let answer = client.discovery(DiscoveryRequest {}).await.expect("served");
    assert_eq!(
        answer.into_inner().mastership.master_address(),
        "quota.example.com:6970"
    );
}
