//! A server on free ports, and ways to speak to it.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, ResourceRequest, ResourceResponse,
};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::status::{Listed, Query, RESOURCES_MAX, ServerState, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};

/// Time limit for every event. It is longer than any event takes that happens at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Returns the status now with one resource, or with the first page of all.
pub(crate) fn status_of(
    state: &ServerState,
    only: Option<&ResourceId>,
    leases_max: usize,
) -> Status {
    let listed = match only {
        Some(only) => Listed::Only(only.clone()),
        None => Listed::Page(None, RESOURCES_MAX),
    };
    let mut query = Query {
        listed,
        ..Query::default()
    };
    query.request.leases_max = u32::try_from(leases_max).unwrap_or(u32::MAX);
    state.answer(&query)
}

/// Returns these templates: `fair/*` with 100 (FAIR_SHARE), `bands` with 100 (PRIORITY_BANDS).
pub(crate) fn templates() -> Templates {
    templates_with(100.0)
}

pub(crate) fn templates_with(capacity: f64) -> Templates {
    Templates::parse(&[
        template("fair/*", AlgorithmKind::FairShare, capacity),
        template("bands", AlgorithmKind::PriorityBands, capacity),
    ])
    .expect("in order")
}

/// Returns a template without learning mode.
pub(crate) fn template(glob: &str, kind: AlgorithmKind, capacity: f64) -> TemplateSpec {
    TemplateSpec {
        identifier_glob: Some(glob.to_owned()),
        capacity: Some(capacity),
        description: Some(format!("for {glob}")),
        kind: Some(kind),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }
}

/// Returns a configuration with which the server decides every request, however fast they come.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        templates: templates(),
        templates_source: "a test".to_owned(),
        node: node::Config {
            refresh_floor: Duration::ZERO,
            ..node::Config::default()
        },
        ..ServerConfig::default()
    }
}

pub(crate) async fn start() -> Server {
    started(config()).await
}

pub(crate) async fn started(config: ServerConfig) -> Server {
    Server::start(config).await.expect("free ports")
}

pub(crate) async fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(format!("http://{}", server.grpc_address()))
        .expect("an address")
        .connect()
        .await
        .expect("it listens")
}

pub(crate) async fn capacity(server: &Server) -> CapacityClient<Channel> {
    CapacityClient::new(channel(server).await)
}

pub(crate) async fn admin(server: &Server) -> AdminClient<Channel> {
    AdminClient::new(channel(server).await)
}

pub(crate) fn asked(resource_id: &str, wants: f64) -> ResourceRequest {
    ResourceRequest {
        budget: None,
        resource_id: resource_id.to_owned(),
        priority: 0,
        has: None,
        wants,
    }
}

pub(crate) fn asked_with(resource_id: &str, wants: f64, has: f64) -> ResourceRequest {
    ResourceRequest {
        has: Some(Lease {
            capacity: has,
            ..Lease::default()
        }),
        ..asked(resource_id, wants)
    }
}

pub(crate) fn request(client_id: &str, resource: Vec<ResourceRequest>) -> GetCapacityRequest {
    GetCapacityRequest {
        incarnation: None,
        client_id: client_id.to_owned(),
        resource,
        sequence: None,
    }
}

/// Asks, and returns the answer. Panics if the server refuses the call.
pub(crate) async fn get(
    client: &mut CapacityClient<Channel>,
    client_id: &str,
    resource: Vec<ResourceRequest>,
) -> GetCapacityResponse {
    let answer = client.get_capacity(request(client_id, resource)).await;
    answer.expect("served").into_inner()
}

/// Asks for one resource, and returns the capacity of its lease.
pub(crate) async fn gets(
    client: &mut CapacityClient<Channel>,
    client_id: &str,
    asked: ResourceRequest,
) -> f64 {
    let response = get(client, client_id, vec![asked]).await;
    only(&response).gets.capacity
}

/// Returns the only resource of an answer.
#[track_caller]
pub(crate) fn only(response: &GetCapacityResponse) -> &ResourceResponse {
    assert_eq!(response.refused, []);
    assert_eq!(response.mastership, None);
    match response.response.as_slice() {
        [only] => only,
        others => panic!("not one resource: {others:?}"),
    }
}

/// Gets a page, and returns its status code, headers and body.
pub(crate) async fn page(server: &Server, path: &str) -> (u16, String, String) {
    let address = server.http_address().expect("pages are on");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).expect("a status line");
    let code = code.parse().expect("a status code");
    (code, head.to_ascii_lowercase(), body.to_owned())
}

/// Gets a page of JSON.
pub(crate) async fn json(server: &Server, path: &str) -> serde_json::Value {
    let (code, head, text) = page(server, path).await;
    assert_eq!(code, 200, "{text}");
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
pub(crate) fn check_lines(text: &str, lines: &[&str]) {
    for line in lines {
        let found = text.lines().any(|it| it == *line);
        assert!(found, "no line {line:?} in\n{text}");
    }
}

/// Returns `/metrics` in the format for clients that ask for none, without the node's label.
pub(crate) async fn metrics(server: &Server) -> String {
    let (code, _, text) = page(server, "/metrics").await;
    assert_eq!(code, 200);
    without_node(&text, server.state().node_name())
}

/// Returns the metrics without the label that every one of them has.
#[track_caller]
pub(crate) fn without_node(text: &str, node: &str) -> String {
    let label = format!("node={node:?}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    for line in samples {
        assert!(line.contains(&format!("{{{label}")), "no {label} in {line}");
    }
    text.replace(&format!("{{{label}}}"), "")
        .replace(&format!("{{{label},"), "{")
}

/// Waits until a condition holds. Panics if it does not hold in time.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let happened = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(happened.is_ok(), "this did not happen: {what}");
}
