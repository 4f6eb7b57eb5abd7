//! Requests of operators: status, health, reflection.

use doorward_proto::admin::v1::GetStatusRequest;
use tokio_stream::{StreamExt, once};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::running::{admin, asked, capacity, channel, get, start};

#[tokio::test]
async fn the_status_tells_every_lease_and_why() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for id in ["b", "a"] {
        get(
            &mut client,
            id,
            vec![asked("fair/x", 30.0), asked("bands", 1.0)],
        )
        .await;
    }
    let request = GetStatusRequest {
        resource_id: "fair/x".to_owned(),
        leases_max: 10,
        ..GetStatusRequest::default()
    };
    let status = admin(&server).await.get_status(request).await;
    let status = status.expect("served").into_inner();
    assert_eq!(status.node, "root");
    assert!(status.is_master);
    assert_eq!(status.master_address(), server.grpc_address().to_string());
    assert_eq!(status.templates_count, 2);
    assert_eq!(status.templates_source, "a test");
    assert_eq!(status.templates_problem, None);
    assert_eq!(status.templates, [], "nobody asks for them");
    assert_eq!(status.resources.len(), 1);
    let resource = &status.resources[0];
    assert_eq!(resource.resource_id, "fair/x");
    assert_eq!(resource.template(), "fair/*");
    assert_eq!(resource.algorithm(), "FAIR_SHARE");
    assert_eq!(
        (resource.capacity, resource.wants, resource.granted),
        (100.0, 60.0, 60.0)
    );
    assert_eq!((resource.leases_count, resource.clients_count), (2, 2));
    let holders: Vec<&str> = resource.leases.iter().map(|l| l.holder.as_str()).collect();
    assert_eq!(holders, ["a", "b"]);
    assert_eq!(resource.leases[0].kind, "client");
    assert!(resource.leases[0].why.contains("enough for everyone"));
}

#[tokio::test]
async fn the_status_of_a_resource_that_nobody_holds_says_which_template_takes_it() {
    let server = start().await;
    let mut admin = admin(&server).await;
    for (id, expected) in [
        ("fair/x", Some(Some("fair/*"))),
        ("none/x", Some(None)),
        ("", None),
    ] {
        let request = GetStatusRequest {
            resource_id: id.to_owned(),
            ..GetStatusRequest::default()
        };
        let status = admin.get_status(request).await.expect("served");
        let found = status.into_inner().template_match;
        let glob = found.as_ref().map(|found| found.glob.as_deref());
        assert_eq!(glob, expected, "{id}");
    }
}

#[tokio::test]
async fn no_more_leases_are_listed_than_asked_for() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for id in ["a", "b", "c"] {
        get(&mut client, id, vec![asked("fair/x", 1.0)]).await;
    }
    let mut admin = admin(&server).await;
    for (leases_max, listed) in [(0, 0), (2, 2), (u32::MAX, 3)] {
        let request = GetStatusRequest {
            resource_id: String::new(),
            leases_max,
            ..GetStatusRequest::default()
        };
        let status = admin.get_status(request).await.expect("served");
        let resource = &status.get_ref().resources[0];
        assert_eq!((resource.leases.len(), resource.leases_count), (listed, 3));
    }
}

#[tokio::test]
async fn a_status_of_no_resource_id_is_refused() {
    let server = start().await;
    let request = GetStatusRequest {
        resource_id: "x".repeat(257),
        leases_max: 0,
        ..GetStatusRequest::default()
    };
    let error = admin(&server).await.get_status(request).await;
    assert_eq!(error.expect_err("refused").code(), Code::InvalidArgument);
}

#[tokio::test]
async fn health_is_told_of_the_process_and_of_each_service() {
    let server = start().await;
    let mut health = HealthClient::new(channel(&server).await);
    for service in [
        "",
        "doorman.Capacity",
        "doorward.v1.CapacityStream",
        "doorward.admin.v1.Admin",
        "liveness",
    ] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.expect("served");
        assert_eq!(
            answer.get_ref().status(),
            ServingStatus::Serving,
            "{service}"
        );
    }
}

#[tokio::test]
async fn reflection_lists_every_service() {
    let server = start().await;
    let mut reflection = ServerReflectionClient::new(channel(&server).await);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = reflection.server_reflection_info(once(request)).await;
    let answer = answers.expect("served").into_inner().next().await;
    let answer = answer.expect("one answer").expect("no error");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("no list: {answer:?}");
    };
    let names: Vec<&str> = list.service.iter().map(|s| s.name.as_str()).collect();
    for name in [
        "doorman.Capacity",
        "doorward.admin.v1.Admin",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

#[tokio::test]
async fn the_templates_in_force_are_listed_on_request() {
    let server = start().await;
    let request = GetStatusRequest {
        templates: true,
        without_resources: true,
        ..GetStatusRequest::default()
    };
    let status = admin(&server).await.get_status(request).await.unwrap();
    let templates = status.into_inner().templates;
    let globs = templates.iter().map(|it| (&*it.identifier_glob, &*it.kind));
    let expected = [("fair/*", "FAIR_SHARE"), ("bands", "PRIORITY_BANDS")];
    assert!(globs.eq(expected), "{templates:?}");
    let first = &templates[0];
    assert_eq!((first.capacity, first.safe_capacity), (100.0, None));
    assert_eq!(
        (first.lease_length_ms, first.learning_mode_duration_ms),
        (60_000, 0)
    );
    assert_eq!(first.parameters["shrink"], "acknowledged");
}
