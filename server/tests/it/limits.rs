//! The places that show a server's limits: the admin service, pages, metrics.

use std::time::Duration;

use doorward_proto::admin::v1::GetStatusRequest;
use doorward_proto::admin::v1::limit_status::Unit;
use doorward_server::app::Server;
use doorward_server::limits::ServerLimit;
use serde_json::{Value, json};

use crate::running::{admin, asked, capacity, get, page, start};

/// Starts a server whose limits show these facts: a third of all streams are open, all priorities are in use, and the
/// server has twice refused a message for its size.
async fn bounded() -> Server {
    let server = start().await;
    let limits = server.state().limits();
    limits.of(ServerLimit::StreamsPerConnection).set_max(3_000);
    limits.of(ServerLimit::StreamsPerConnection).set_used(1_000);
    limits.of(ServerLimit::Priorities).set_max(64);
    limits.of(ServerLimit::Priorities).set_used(64);
    limits.of(ServerLimit::MessageBytes).set_max(262_144);
    for _ in 0..2 {
        limits
            .of(ServerLimit::MessageBytes)
            .refuse(Duration::from_secs(1));
    }
    server
}

#[tokio::test]
async fn limits_are_told_to_who_asks_for_them_and_to_nobody_else() {
    let server = bounded().await;
    get(
        &mut capacity(&server).await,
        "a",
        vec![asked("fair/x", 1.0)],
    )
    .await;
    let mut admin = admin(&server).await;
    let unasked = admin.get_status(GetStatusRequest::default()).await;
    assert_eq!(unasked.expect("served").get_ref().limits, []);
    let request = GetStatusRequest {
        limits: true,
        ..GetStatusRequest::default()
    };
    let status = admin.get_status(request).await.expect("served");
    let status = status.get_ref();
    assert_eq!(status.resources.len(), 1);
    assert_eq!(status.limits.len(), ServerLimit::ALL.len());
    let of = |name| status.limits.iter().find(|it| it.name == name).unwrap();
    let leases = of("streams_per_connection");
    assert_eq!(
        (leases.flag.as_str(), leases.unit()),
        ("--streams-per-connection-max", Unit::Count)
    );
    assert_eq!(
        (leases.used, leases.max, leases.refused_count),
        (Some(1_000), Some(3_000), 0)
    );
    let message = of("message_bytes");
    assert_eq!(message.unit(), Unit::Bytes);
    assert_eq!(
        (message.used, message.max, message.refused_count),
        (None, Some(262_144), 2)
    );
}

#[tokio::test]
async fn a_status_can_be_had_without_resources_so_that_it_is_short_however_many_there_are() {
    let server = bounded().await;
    get(
        &mut capacity(&server).await,
        "a",
        vec![asked("fair/x", 1.0)],
    )
    .await;
    let request = GetStatusRequest {
        limits: true,
        without_resources: true,
        ..GetStatusRequest::default()
    };
    let status = admin(&server).await.get_status(request).await;
    let status = status.expect("served").into_inner();
    assert_eq!((status.node.as_str(), status.templates_count), ("root", 2));
    assert_eq!(status.resources, []);
    assert_eq!(status.limits.len(), ServerLimit::ALL.len());
}

#[tokio::test]
async fn the_json_has_limits_if_they_are_asked_for() {
    let server = bounded().await;
    let status = async |path| {
        let (code, _, text) = page(&server, path).await;
        assert_eq!(code, 200);
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    assert_eq!(status("/status").await["limits"], json!([]));
    let limits = status("/status?limits=true").await["limits"].take();
    let limits = limits.as_array().expect("a list");
    assert_eq!(limits.len(), ServerLimit::ALL.len());
    let expected = json!({
        "name": "message_bytes", "description": ServerLimit::MessageBytes.texts().what, "flag": "--message-bytes-max",
        "unit": "bytes", "used": null, "max": 262_144, "refused_count": 2,
    });
    assert!(limits.contains(&expected), "{limits:?}");
}

#[tokio::test]
async fn every_limit_has_a_metric_of_what_it_refused_and_of_bound_and_use_as_far_as_they_are_known()
{
    let server = bounded().await;
    let text = crate::running::metrics(&server).await;
    for line in [
        "doorward_limit_max{limit=\"streams_per_connection\"} 3000.0",
        "doorward_limit_used{limit=\"streams_per_connection\"} 1000.0",
        "doorward_limit_max{limit=\"message_bytes\"} 262144.0",
        "doorward_limit_refused_total{limit=\"message_bytes\"} 2",
    ] {
        let found = text.lines().any(|l| l == line);
        assert!(found, "no line {line:?} in\n{text}");
    }
    assert!(!text.contains("doorward_limit_used{limit=\"message_bytes\"}"));
    for limit in ServerLimit::ALL {
        let line = format!(
            "doorward_limit_refused_total{{limit=\"{}\"}} ",
            limit.texts().name
        );
        assert!(text.contains(&line), "{line}");
    }
}
