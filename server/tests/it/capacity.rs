//! The life of a lease over the wire.

use doorward_proto::doorman::{DiscoveryRequest, ReleaseCapacityRequest, refusal};
use doorward_server::app::ServerConfig;
use doorward_server::limits::ServerLimit;

use crate::running::{asked, asked_with, capacity, config, get, gets, only, start, started};

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
    let waits = gets(&mut client, "b", asked("fair/x", 90.0)).await;
    assert_eq!(waits, 10.0, "a still holds 90");
    let shrinks = gets(&mut client, "a", asked_with("fair/x", 90.0, 90.0)).await;
    assert_eq!(shrinks, 50.0);
    get(&mut client, "a", vec![asked_with("fair/x", 90.0, 50.0)]).await;
    let settles = gets(&mut client, "b", asked_with("fair/x", 90.0, 10.0)).await;
    assert_eq!(settles, 50.0);
}

#[tokio::test]
async fn a_released_lease_frees_its_capacity_at_once() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 100.0)]).await;
    let release = ReleaseCapacityRequest {
        budget: Vec::new(),
        incarnation: None,
        client_id: "a".to_owned(),
        resource_id: vec!["fair/x".to_owned(), "fair/never-held".to_owned()],
        sequence: None,
    };
    let released = client.release_capacity(release).await.expect("served");
    assert_eq!(released.into_inner().mastership, None);
    let next = gets(&mut client, "b", asked("fair/x", 100.0)).await;
    assert_eq!(next, 100.0);
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
    let [refused] = response.refused.as_slice() else {
        panic!("{response:?}");
    };
    assert_eq!(refused.resource_id(), "nowhere");
    assert_eq!(refused.reason(), refusal::Reason::UnknownResource);
    assert!(refused.message().contains("no template"));
}

#[tokio::test]
async fn more_holders_than_allowed_are_refused_and_say_so() {
    let mut config = config();
    config.node.limits.leases_per_resource_max = 1;
    let server = started(config).await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    let response = get(&mut client, "b", vec![asked("fair/x", 1.0)]).await;
    let refused = &response.refused[0];
    assert_eq!(refused.reason(), refusal::Reason::TooMany);
    assert!(refused.retry_in_ms() >= 1_000, "{refused:?}");
    let flag = "--leases-per-resource-max";
    assert!(refused.message().contains(flag), "{refused:?}");
    let figures = server.state().limit_figures();
    let mut figures = figures.iter();
    let of_leases = figures.find(|it| it.name == ServerLimit::LeasesPerResource.texts().name);
    let seen = of_leases.map(|it| (it.used, it.max, it.refused_count));
    assert_eq!(seen, Some((Some(1), Some(1), 1)));
}

#[tokio::test]
async fn discovery_names_the_server_itself_as_the_master() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let answer = client.discovery(DiscoveryRequest {}).await.expect("served");
    let answer = answer.into_inner();
    assert!(answer.is_master);
    let address = server.grpc_address().to_string();
    assert_eq!(answer.mastership.master_address(), address);
    assert_eq!(answer.mastership.epoch, None, "there is no election");
}

#[tokio::test]
async fn the_advertised_address_is_what_discovery_tells() {
    let config = ServerConfig {
        advertise: Some("quota.example.com:6970".to_owned()),
        ..config()
    };
    let server = started(config).await;
    let mut client = capacity(&server).await;
    let answer = client.discovery(DiscoveryRequest {}).await.expect("served");
    let mastership = answer.into_inner().mastership;
    assert_eq!(mastership.master_address(), "quota.example.com:6970");
}
