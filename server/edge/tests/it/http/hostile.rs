//! Bodies that no friend sends, at each door.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::Request;
use doorward_edge::http::BODY_BYTES_MAX;
use serde_json::json;

use super::{Answering, FakeNode, Site, request};

const RULES: &str = "{domain: api, descriptors: [{key: user, rate_limit: {rate: 10/min}}]}";

const DOORS: [(&str, &str); 5] = [
    ("POST", "/json"),
    ("POST", "/v1/check"),
    ("POST", "/v1/charge"),
    ("POST", "/v1/lease"),
    ("DELETE", "/v1/lease"),
];

#[tokio::test]
async fn hostile_bodies_are_refused_and_cost_nothing() {
    let node = FakeNode::new(Answering::Grants(1.0));
    let site = Site::new(RULES, node);
    let long_name = format!(r#"{{"{}": 1}}"#, "x".repeat(BODY_BYTES_MAX - 10));
    for (name, body, status) in [
        ("empty", Vec::new(), 400),
        ("a list", b"[]".to_vec(), 400),
        (
            "a list of everything",
            b"[null, null, null, null, null]".to_vec(),
            400,
        ),
        ("a number", b"1e400".to_vec(), 400),
        ("null", b"null".to_vec(), 400),
        ("half", br#"{"domain": "api", "#.to_vec(), 400),
        ("zero bytes", vec![0; 100], 400),
        (
            "no UTF-8",
            b"{\"domain\": \"\xff\xfe\", \"client\": \"\xc0\"}".to_vec(),
            400,
        ),
        (
            "half of a surrogate pair",
            br#"{"domain": "\ud800"}"#.to_vec(),
            400,
        ),
        (
            "deep lists",
            "[".repeat(BODY_BYTES_MAX - 1).into_bytes(),
            400,
        ),
        (
            "deep objects",
            r#"{"descriptors":"#.repeat(4000).into_bytes(),
            400,
        ),
        ("a long name", long_name.into_bytes(), 400),
        ("one byte too long", vec![b' '; BODY_BYTES_MAX + 1], 413),
        ("far too long", vec![b'['; 100 * BODY_BYTES_MAX], 413),
    ] {
        for (method, path) in DOORS {
            let answer = site.send(request(method, path, body.clone())).await;
            answer.check_problem(&format!("{name} at {path}"), status, "");
        }
    }
    assert_eq!(site.edge.seen().callers, 0);
}

#[tokio::test]
async fn bodies_without_an_announced_length_are_bounded_too() {
    let site = Site::new(RULES, FakeNode::new(Answering::Grants(1.0)));
    for (method, path) in DOORS {
        let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024]));
        let body = Body::from_stream(tokio_stream::iter(chunks));
        let answer = site.send(request(method, path, body)).await;
        answer.check_problem(path, 413, "65536");
    }
}

#[tokio::test]
async fn no_page_of_another_site_can_write() {
    let site = Site::new(RULES, FakeNode::new(Answering::Grants(1.0)));
    let body = r#"{"domain": "api", "entries": {"user": "ann"}}"#;
    // The types that a browser sends to other sites without asking them.
    let types = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ];
    for (method, path) in DOORS.iter().filter(|door| door.1 != "/json") {
        for kind in types {
            let request = Request::builder()
                .method(*method)
                .uri(*path)
                .header("content-type", kind);
            let answer = site.send(request.body(Body::from(body)).unwrap()).await;
            answer.check_problem(&format!("{kind} at {path}"), 415, "application/json");
        }
        let request = Request::builder().method(*method).uri(*path);
        let answer = site.send(request.body(Body::from(body)).unwrap()).await;
        answer.check_problem(path, 415, "application/json");
    }
}

/// They would be kept while a request waits.
#[tokio::test]
async fn a_request_has_a_number_of_entries() {
    let site = Site::new(RULES, FakeNode::new(Answering::Grants(1.0)));
    for (count, status) in [(100, 200), (101, 400)] {
        let entries = (0..count).map(|key| (key.to_string(), String::new()));
        let entries: BTreeMap<_, _> = entries.collect();
        let body = json!({"domain": "none", "entries": entries});
        let answer = site.post("/v1/check", body.to_string()).await;
        assert_eq!(answer.status, status, "{count}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_refusal_of_a_hostile_text_is_one_line_of_json() {
    let site = Site::new(RULES, FakeNode::new(Answering::Grants(1.0)));
    let body = r#"{"domain": "api", "<script>\u001b[2J\n": 1}"#;
    let answer = site.post("/v1/check", body).await;
    answer.check_problem("a script", 400, "unknown field");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
}
