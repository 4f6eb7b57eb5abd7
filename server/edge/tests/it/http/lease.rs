//! `/v1/lease`.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::admission::{Full, Limit};
use doorward_engine::id::Caller;
use doorward_engine::messages::RefusalReason;
use doorward_engine::node::mastership::Mastership;
use doorward_tls::identity::Identity;
use serde_json::json;

use super::{Answering, FakeNode, Site, request};

const RULES: &str = "{domain: none, empty: true}";

fn site(answer: Answering) -> (Arc<FakeNode>, Site) {
    let node = FakeNode::new(answer);
    (Arc::clone(&node), Site::new(RULES, node))
}

#[tokio::test]
async fn a_program_gets_a_lease_and_gives_it_back() {
    let (node, site) = site(Answering::Grants(12.5));
    let body = json!({"client": "job-1", "resource": "db/orders", "wants": 50, "priority": -2,
        "has": {"capacity": 10, "expires_in_seconds": 2.5}});
    let answer = site.post("/v1/lease", body.to_string()).await;
    assert_eq!(answer.status, 200);
    let expected = json!({"capacity": 12.5, "expires_in_seconds": 60.0, "refresh_in_seconds": 4.5,
        "limited_by": "share"});
    assert_eq!(answer.body, expected);
    let asked = node.asked.lock().unwrap().pop().unwrap();
    assert_eq!(asked.client.as_str(), "http:job-1");
    let address = doorward_door::caller_id::CallerId::of([192, 0, 2, 1].into());
    assert_eq!(asked.caller, Some(Caller::new(address.get())));
    assert_eq!((asked.incarnation, asked.sequence), (None, None));
    let ask = &asked.asks[0];
    assert_eq!(ask.resource.as_str(), "db/orders");
    assert_eq!((ask.wants.get(), ask.priority), (50.0, -2));
    let has = ask.has.unwrap();
    assert_eq!(
        (has.capacity.get(), has.expires_in),
        (10.0, Some(Duration::from_millis(2500)))
    );

    let body = json!({"client": "job-1", "resource": "db/orders"});
    let answer = site
        .send(request("DELETE", "/v1/lease", body.to_string()))
        .await;
    assert_eq!(answer.status, 204);
    let released = node.released.lock().unwrap().pop().unwrap();
    assert_eq!(released.client, asked.client);
    assert_eq!(released.caller, asked.caller);
    assert_eq!(released.resources[0].as_str(), "db/orders");
}

#[tokio::test]
async fn programs_of_one_identity_share_the_weight_of_one_client() {
    let (node, site) = site(Answering::Grants(1.0));
    for (method, identity, client, weight) in [
        ("POST", Some("dns:ann"), "a", 1.0),
        ("POST", Some("dns:bob"), "a", 1.0),
        ("POST", Some("dns:bob"), "b", 0.5),
        ("POST", Some("dns:bob"), "a", 0.5),
        ("POST", Some("dns:ann"), "a", 1.0),
        // Without an identity, each program is a client of its own.
        ("POST", None, "a", 1.0),
        ("POST", None, "b", 1.0),
        ("DELETE", Some("dns:bob"), "b", 0.0),
        ("POST", Some("dns:bob"), "a", 1.0),
    ] {
        let mut body = json!({"client": client, "resource": "db/orders"});
        if method == "POST" {
            body["wants"] = 5.into();
        }
        let mut request = request(method, "/v1/lease", body.to_string());
        if let Some(identity) = identity {
            let identity = Identity::parse(identity).unwrap();
            request.extensions_mut().insert(identity);
        }
        assert!(site.send(request).await.status.is_success());
        let asked = node.asked.lock().unwrap().pop();
        let given = asked.map_or(0.0, |it| it.asks[0].weight.get());
        assert_eq!(given, weight, "{method} {identity:?} {client}");
    }
}

#[tokio::test]
async fn learning_mode_shows() {
    let (node, site) = site(Answering::Learns(3.0));
    let mut request = request(
        "POST",
        "/v1/lease",
        r#"{"resource": "db/orders", "wants": 5}"#,
    );
    request
        .headers_mut()
        .insert("x-doorward-client", "job-2".parse().unwrap());
    let answer = site.send(request).await;
    assert_eq!(answer.body["learning_for_seconds"], 20.0);
    assert_eq!(answer.body["limited_by"], "learning");
    assert_eq!(node.asked.lock().unwrap()[0].client.as_str(), "http:job-2");
}

#[tokio::test]
async fn refusals_of_the_node_are_problems() {
    let refuses = Answering::Refuses;
    let elsewhere = Mastership::Elsewhere {
        master_address: "leaf-2:6969".to_owned(),
        epoch: None,
    };
    let full = Full {
        limit: Limit::LeasesPerResource,
        max: 1_000,
        retry_in: Duration::from_secs(7),
    };
    for (answer, status, words, wait) in [
        (
            refuses(RefusalReason::UnknownResource),
            404,
            "db/orders: no template",
            None,
        ),
        (refuses(RefusalReason::NotReady), 503, "parent", Some(1)),
        (
            refuses(RefusalReason::RefusedByParent),
            503,
            "parent",
            Some(1),
        ),
        (
            refuses(RefusalReason::Unnumbered),
            409,
            "another program",
            None,
        ),
        (refuses(RefusalReason::Full(full)), 503, "", Some(7)),
        (Answering::NotMaster(elsewhere), 503, "leaf-2:6969", Some(1)),
        (
            Answering::NotMaster(Mastership::Unknown),
            503,
            "not the master",
            Some(1),
        ),
        (Answering::StartsAnew, 503, "anew", Some(1)),
    ] {
        let name = format!("{answer:?}");
        let (_, site) = site(answer);
        let body = r#"{"client": "job-1", "resource": "db/orders", "wants": 5}"#;
        let answer = site.post("/v1/lease", body).await;
        answer.check_problem(&name, status, words);
        let header = answer
            .header("retry-after")
            .map(|it| it.parse::<u64>().unwrap());
        assert_eq!(header.is_some(), wait.is_some(), "{name}");
        if let (Some(header), Some(wait)) = (header, wait) {
            assert!((wait..=wait + 1).contains(&header), "{name}: {header}");
            let told = answer.body["retry_after_seconds"].as_f64().unwrap();
            assert!(told <= header as f64, "{name}: {told}");
        }
    }
}

#[tokio::test]
async fn invalid_asks_do_not_reach_the_node() {
    let (node, site) = site(Answering::Grants(1.0));
    let ask = |rest: &str| format!(r#"{{"client": "job-1", "resource": "db", {rest}}}"#);
    let long = format!(
        r#"{{"client": "{}", "resource": "db", "wants": 1}}"#,
        "x".repeat(300)
    );
    for (name, body, words) in [
        (
            "no client",
            r#"{"resource": "db", "wants": 1}"#.to_owned(),
            "client: is missing",
        ),
        ("a long name", long, "client: is 305 bytes long"),
        (
            "no resource",
            r#"{"client": "a", "resource": "", "wants": 1}"#.to_owned(),
            "resource: is empty",
        ),
        (
            "a control character",
            r#"{"client": "a\u0007", "resource": "db", "wants": 1}"#.to_owned(),
            "client:",
        ),
        (
            "no wants",
            r#"{"client": "a", "resource": "db"}"#.to_owned(),
            "missing field `wants`",
        ),
        ("wants of text", ask(r#""wants": "5""#), "wants"),
        ("negative wants", ask(r#""wants": -5"#), "wants: is -5"),
        ("large wants", ask(r#""wants": 1e300"#), "wants: is"),
        ("infinite wants", ask(r#""wants": 1e999"#), "out of range"),
        ("not a number", ask(r#""wants": NaN"#), "line 1 column"),
        (
            "negative has",
            ask(r#""wants": 1, "has": {"capacity": -1}"#),
            "has.capacity: is -1",
        ),
        (
            "a negative time",
            ask(r#""wants": 1, "has": {"capacity": 1, "expires_in_seconds": -1}"#),
            "has.expires_in_seconds:",
        ),
        (
            "a long time",
            ask(r#""wants": 1, "has": {"capacity": 1, "expires_in_seconds": 1e300}"#),
            "has.expires_in_seconds:",
        ),
        (
            "an unknown field",
            ask(r#""wants": 1, "want": 1"#),
            "unknown field `want`",
        ),
        (
            "an unknown field of has",
            ask(r#""wants": 1, "has": {"amount": 1}"#),
            "has.amount: unknown field",
        ),
    ] {
        site.post("/v1/lease", body)
            .await
            .check_problem(name, 400, words);
    }
    assert!(node.asked.lock().unwrap().is_empty());
    let body = r#"{"client": "job-1", "resource": "db", "wants": 1}"#;
    let answer = site.send(request("DELETE", "/v1/lease", body)).await;
    answer.check_problem("wants of a release", 400, "unknown field `wants`");
    assert!(node.released.lock().unwrap().is_empty());
}
