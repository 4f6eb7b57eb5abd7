//! `/v1/check` and `/v1/charge`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use doorward_door::caller_id::CallerId;
use doorward_edge::caller::{By, Caller};
use doorward_edge::clock::Clock;
use doorward_edge::holder::Holder;
use doorward_edge::room::Room;
use doorward_engine::id::{HolderName, Incarnation};
use serde_json::{Value, json};

use super::{Answering, FakeNode, SECOND, Site, request};

const RULES: &str = "
domain: api
descriptors:
- key: user
  rate_limit: {unit: minute, requests_per_unit: 10}
  descriptors:
  - key: path
    rate_limit: {unit: minute, requests_per_unit: 4}
- key: path
  value: /free
  rate_limit: {unlimited: true}
- key: tenant
  cost: 3
  rate_limit: {unit: second, requests_per_unit: 5}
- key: light
  action: degrade
  rate_limit: {unit: minute, requests_per_unit: 1}
- key: shared
  scope: shared
  on_failure: closed
  rate_limit: {unit: minute, requests_per_unit: 10}
  callers: [{name: web-1, priority: 2, weight: 3}]
";

/// Checks the fields that are given.
#[track_caller]
fn check_fields(name: &str, answer: &super::Answer, status: u16, fields: &Value) {
    assert_eq!(answer.status, status, "{name}: {}", answer.body);
    for (field, expected) in fields.as_object().unwrap() {
        assert_eq!(answer.body[field], *expected, "{name}: {field}");
    }
}

#[tokio::test]
async fn a_request_is_decided_by_each_rule_whose_keys_it_has() {
    let site = Site::with_rules(RULES);
    let with = |entries: Value| json!({"domain": "api", "entries": entries});
    let of_path = |path: &str| with(json!({"user": "ann", "path": path}));
    for (name, body, status, fields) in [
        (
            "one rule",
            with(json!({"user": "ann"})),
            200,
            json!({"allowed": true, "remaining": 9, "limit": 10, "rule": "api.user",
                "reason": "within the limit", "reset_seconds": 60.0, "retry_after_seconds": null, "action": null}),
        ),
        (
            "two rules",
            of_path("/x"),
            200,
            json!({"remaining": 3, "limit": 4, "rule": "api.user.path"}),
        ),
        (
            "other values of the same keys",
            of_path("/free"),
            200,
            json!({"remaining": 3, "rule": "api.user.path"}),
        ),
        (
            "an unlimited rule",
            with(json!({"path": "/free"})),
            200,
            json!({"allowed": true, "remaining": null, "limit": null, "rule": "api.path_/free",
                "reason": "unlimited"}),
        ),
        (
            "no rule",
            with(json!({"path": "/y"})),
            200,
            json!({"allowed": true, "reason": "no rule", "rule": null}),
        ),
        (
            "an unknown domain",
            json!({"domain": "other", "entries": {"user": "ann"}}),
            200,
            json!({"allowed": true, "reason": "no rule"}),
        ),
        (
            "descriptors",
            json!({"domain": "api", "descriptors": [[{"key": "user", "value": "ann"}]]}),
            200,
            json!({"remaining": 6, "rule": "api.user"}),
        ),
    ] {
        let answer = site.post("/v1/check", body.to_string()).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        check_fields(name, &answer, status, &fields);
    }
}

#[tokio::test]
async fn a_request_takes_its_cost_or_else_that_of_the_rule() {
    let site = Site::with_rules(RULES);
    let of_cost = |cost: u64| json!({"domain": "api", "entries": {"user": "ann"}, "cost": cost});
    for (name, body, status, fields) in [
        (
            "a cost of 0 looks",
            of_cost(0),
            200,
            json!({"remaining": 10}),
        ),
        ("a cost of 3", of_cost(3), 200, json!({"remaining": 7})),
        (
            "more than is left",
            of_cost(8),
            429,
            json!({"allowed": false, "remaining": 7, "rule": "api.user", "reason": "over the limit"}),
        ),
        (
            "the cost of the rule",
            json!({"domain": "api", "entries": {"tenant": "t"}}),
            200,
            json!({"remaining": 2, "rule": "api.tenant"}),
        ),
        (
            "the largest cost",
            of_cost(i64::MAX.unsigned_abs()),
            429,
            json!({"allowed": false, "reason": "the cost is above the limit", "retry_after_seconds": null}),
        ),
    ] {
        let answer = site.post("/v1/check", body.to_string()).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        check_fields(name, &answer, status, &fields);
    }
}

#[tokio::test]
async fn a_refused_caller_hears_when_to_come_back() {
    let site = Site::with_rules(RULES);
    site.set_time(45 * SECOND);
    let body = json!({"domain": "api", "entries": {"user": "ann"}, "cost": 10}).to_string();
    let allowed = site.post("/v1/check", body.clone()).await;
    assert_eq!(
        allowed.header("ratelimit-policy"),
        Some("\"api.user\";q=10;w=60")
    );
    assert_eq!(allowed.header("ratelimit"), Some("\"api.user\";r=0;t=15"));
    assert_eq!(allowed.header("retry-after"), None);
    let refused = site.post("/v1/check", body).await;
    assert_eq!(refused.status, 429);
    let wait = refused.body["retry_after_seconds"].as_f64().unwrap();
    assert!((15.0..=16.0).contains(&wait), "{wait}");
    let header: f64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(header, wait.ceil());
    assert_eq!(
        refused.header("ratelimit"),
        Some(&*format!("\"api.user\";r=0;t={header}"))
    );
}

#[tokio::test]
async fn a_degraded_request_passes_with_an_action() {
    let site = Site::with_rules(RULES);
    let body = json!({"domain": "api", "entries": {"light": "x"}, "cost": 1}).to_string();
    let first = site.post("/v1/check", body.clone()).await;
    check_fields("first", &first, 200, &json!({"action": null}));
    let second = site.post("/v1/check", body).await;
    let fields =
        json!({"allowed": true, "action": "degrade", "reason": "over the limit, degraded"});
    check_fields("second", &second, 200, &fields);
}

#[tokio::test]
async fn charges_and_refunds_change_what_is_left() {
    let site = Site::with_rules(RULES);
    // Units of ten that are left after each charge.
    for (name, cost, left) in [
        ("the rule's cost", json!(null), 9),
        ("more", json!(4), 5),
        ("a refund", json!(-2), 7),
        ("nothing", json!(0), 7),
        ("into debt", json!(9), 0),
        ("a refund of debt", json!(-3), 1),
        ("the largest refund", json!(i64::MIN), 10),
        ("the largest charge", json!(i64::MAX), 0),
    ] {
        let body = json!({"domain": "api", "entries": {"user": "ann"}, "cost": cost});
        let answer = site.post("/v1/charge", body.to_string()).await;
        assert_eq!(answer.status, 204, "{name}: {}", answer.body);
        let looks = json!({"domain": "api", "entries": {"user": "ann"}, "cost": 0});
        let answer = site.post("/v1/check", looks.to_string()).await;
        assert_eq!(answer.body["remaining"], left, "{name}");
    }
}

#[tokio::test]
async fn a_shared_rule_without_a_lease_is_a_shortage_of_all() {
    let site = Site::with_rules(RULES);
    let body = json!({"domain": "api", "entries": {"shared": "x"}}).to_string();
    let answer = site.post("/v1/check", body).await;
    let fields =
        json!({"allowed": false, "reason": "no lease of the shared limit", "rule": "api.shared"});
    check_fields("no lease", &answer, 503, &fields);
    let wait = answer.body["retry_after_seconds"].as_f64().unwrap();
    assert!((1.0..=2.0).contains(&wait), "{wait}");
    assert!(answer.header("retry-after").is_some());
    let descriptor = json!({"entries": [{"key": "shared", "value": "x"}]});
    let body = json!({"domain": "api", "descriptors": [descriptor]}).to_string();
    let status = &site.post("/json", body).await.body["statuses"][0];
    assert_eq!(
        (&status["code"], &status["limitRemaining"]),
        (&json!("OVER_LIMIT"), &Value::Null)
    );
}

#[tokio::test]
async fn each_identity_has_leases_of_its_own_whatever_the_names() {
    let node = FakeNode::new(Answering::Grants(1000.0));
    let site = Site::new(
        &RULES.replace("on_failure: closed", "max_wait: 1min"),
        Arc::clone(&node),
    );
    let body = |client: Value| {
        let body = json!({"domain": "api", "entries": {"shared": "x"}, "client": client});
        request("POST", "/v1/check", body.to_string())
    };
    let mut by_header = body(json!(""));
    by_header
        .headers_mut()
        .insert("x-doorward-client", "web-2".parse().unwrap());
    let other = CallerId::of([192, 0, 2, 2].into());
    by_header.extensions_mut().insert(other);
    let mut both = body(json!("web-1"));
    both.headers_mut()
        .insert("x-doorward-client", "web-2".parse().unwrap());
    let mut by_connection = body(json!(null));
    by_connection.extensions_mut().clear();
    let socket: std::net::SocketAddr = "[2001:db8::7]:80".parse().unwrap();
    by_connection.extensions_mut().insert(ConnectInfo(socket));
    let mut without_address = body(json!(null));
    without_address.extensions_mut().clear();
    for request in [both, by_header, by_connection, without_address] {
        let answer = site.send(request).await;
        check_fields(
            "a lease",
            &answer,
            200,
            &json!({"allowed": true, "rule": "api.shared"}),
        );
    }
    let asked = node.asked.lock().unwrap();
    let names: BTreeSet<&str> = asked.iter().map(|it| it.client.as_str()).collect();
    let expected = [
        "caller:192.0.2.1~2",
        "caller:192.0.2.2",
        "caller:2001:db8::%2F64",
        "caller:unix",
    ];
    assert!(names.iter().eq(expected.iter()), "{names:?}");
    let resources = asked.iter().flat_map(|it| &it.asks);
    for ask in resources {
        assert_eq!(ask.resource.as_str(), "shared/api/shared=x");
    }
    for it in asked.iter() {
        let rank = (it.asks[0].priority, it.asks[0].weight.get());
        let is_ranked = it.client.as_str() == "caller:192.0.2.1~2";
        assert_eq!(rank, if is_ranked { (2, 3.0) } else { (0, 1.0) });
    }
}

#[tokio::test]
async fn invalid_bodies_are_told_with_their_place() {
    let site = Site::with_rules(RULES);
    for (name, body, words) in [
        ("no domain", r#"{"entries": {}}"#, "missing field `domain`"),
        (
            "an empty domain",
            r#"{"domain": "", "entries": {}}"#,
            "domain: is empty",
        ),
        ("neither", r#"{"domain": "api"}"#, "either"),
        (
            "both",
            r#"{"domain": "api", "entries": {}, "descriptors": []}"#,
            "either",
        ),
        (
            "no descriptor",
            r#"{"domain": "api", "descriptors": []}"#,
            "at least one",
        ),
        (
            "a value that is no text",
            "{\"domain\": \"api\",\n\"entries\": {\"user\": 1}}",
            "line 2 column",
        ),
        (
            "its path",
            r#"{"domain": "api", "descriptors": [[{"key": "user"}]]}"#,
            "descriptors[0][0]",
        ),
        (
            "an unknown field",
            r#"{"domain": "api", "hits": 1}"#,
            "unknown field `hits`",
        ),
        (
            "a field twice",
            r#"{"domain": "api", "domain": "b"}"#,
            "duplicate field",
        ),
        (
            "half of a cost",
            r#"{"domain": "api", "entries": {}, "cost": 1.5}"#,
            "cost",
        ),
        (
            "a cost as text",
            r#"{"domain": "api", "entries": {}, "cost": "1"}"#,
            "cost",
        ),
        (
            "not a number",
            r#"{"domain": "api", "entries": {}, "cost": NaN}"#,
            "line 1 column",
        ),
        (
            "an infinite cost",
            r#"{"domain": "api", "entries": {}, "cost": 1e999}"#,
            "out of range",
        ),
    ] {
        for path in ["/v1/check", "/v1/charge"] {
            site.post(path, body).await.check_problem(name, 400, words);
        }
    }
}

#[tokio::test]
async fn a_check_refunds_nothing_and_has_few_descriptors() {
    let site = Site::with_rules(RULES);
    let negative = r#"{"domain": "api", "entries": {}, "cost": -1}"#;
    let answer = site.post("/v1/check", negative).await;
    answer.check_problem("a negative check", 400, "give units back by /v1/charge");
    let many = json!({"domain": "api", "descriptors": vec![json!([]); 101]});
    let answer = site.post("/v1/check", many.to_string()).await;
    answer.check_problem("many descriptors", 400, "at most 100");
}

#[tokio::test]
async fn no_more_is_left_than_the_lease_has() {
    let rules = "
domain: api
descriptors:
- {key: shared, scope: shared, max_wait: 10s, rate_limit: {rate: 1000/min}}
";
    let site = Site::new(rules, FakeNode::new(Answering::Grants(5.0)));
    let body = json!({"domain": "api", "entries": {"shared": "x"}}).to_string();
    let answer = site.post("/v1/check", body).await;
    check_fields("a lease", &answer, 200, &json!({"limit": 1000}));
    let left = answer.body["remaining"].as_u64().unwrap();
    assert!(left <= 1, "a tenth of a second, and a request: {left}");
    let header = answer.header("ratelimit").unwrap();
    assert!(header.contains(&format!("r={left};")), "{header}");
}

#[tokio::test]
async fn requests_of_unknown_domains_are_counted() {
    let site = Site::with_rules(RULES);
    for (domain, unknown) in [("api", 0), ("shop", 1), ("shop", 2), ("redis", 2)] {
        let body = json!({"domain": domain, "entries": {"path": "/y"}});
        let answer = site.post("/v1/check", body.to_string()).await;
        check_fields(domain, &answer, 200, &json!({"allowed": true}));
        assert_eq!(site.edge.seen().unknown, unknown, "{domain}");
    }
}

#[tokio::test]
async fn no_more_is_given_back_than_the_same_caller_took() {
    const RESOURCE: &str = "shared/api/x";
    let name = HolderName::new("caller:a").unwrap();
    let (clock, room) = (Clock::start(), Arc::new(Room::new(1 << 20)));
    let holder = Holder::new(name, 0, Incarnation::new(1).unwrap(), 1);
    let caller = Arc::new(Caller::new("a", holder, room, Arc::default()));
    let [one, other] = ["one", "other"].map(|name| By {
        name,
        weight: 1,
        is_safe: false,
        whole: None,
    });
    let charge = |by: &By<'_>, cost| caller.charge(RESOURCE, by, cost, 1_000, clock.now());
    let give_back = |by: &By<'_>, cost| caller.give_back(RESOURCE, by, cost, clock.now());
    // Without a lease, the next one pays.
    charge(&one, 30);
    assert_eq!(give_back(&other, 100), 0);
    assert_eq!(give_back(&one, 100), 30);
    let node = FakeNode::new(Answering::Grants(1000.0));
    let keeping = Arc::clone(&caller);
    let keeping = tokio::spawn(async move { keeping.run(&*node, clock).await });
    caller.ready(RESOURCE, Duration::from_secs(60), clock).await;
    assert_eq!(give_back(&one, 100), 0);
    charge(&one, 10);
    assert_eq!(give_back(&one, 4), 4);
    assert_eq!(give_back(&other, 100), 0);
    assert_eq!(give_back(&one, 100), 6);
    keeping.abort();
}

#[test]
fn a_new_resource_asks_for_its_first_wants_until_a_second_has_passed_without_a_request() {
    let now = Clock::start().now();
    let name = HolderName::new("caller:a").unwrap();
    let holder = Holder::new(name, 0, Incarnation::new(1).unwrap(), 1);
    let caller = Caller::new("a", holder, Arc::new(Room::new(1 << 20)), Arc::default());
    let by = By {
        name: "a",
        weight: 1,
        is_safe: false,
        whole: None,
    };
    caller.open("shared/api/x", &by, now);
    for (age, wants) in [(0, 10.0), (999, 10.0), (1_000, 0.0)] {
        let now = now + Duration::from_millis(age);
        caller.measure(now);
        let asks = caller.request(now).asks;
        assert_eq!(asks[0].wants.get(), wants, "after {age} ms");
    }
}

/// Floods a new site by one identity. Returns the requests of the flood that passed, and those of an honest caller after
/// it, if no lease can have come meanwhile.
async fn flood_before_the_first_lease() -> Option<(usize, usize)> {
    let rules =
        "domain: api\ndescriptors:\n- key: user\n  scope: shared\n  rate_limit: {rate: 30/s}\n";
    let site = Site::with_rules(rules);
    let passes = async |last: u8, client: &str| {
        let body = json!({"domain": "api", "entries": {"user": "ann"}, "client": client});
        let mut request = request("POST", "/v1/check", body.to_string());
        let address = CallerId::of([192, 0, 2, last].into());
        request.extensions_mut().insert(address);
        site.send(request).await.status == 200
    };
    let began = Clock::start();
    assert!(passes(1, "honest").await);
    let (mut flood, mut honest) = (0, 0);
    for name in 0..40 {
        flood += usize::from(passes(2, &name.to_string()).await);
    }
    for _ in 0..8 {
        honest += usize::from(passes(1, "honest").await);
    }
    let took = began.now().since_origin();
    (took < Duration::from_millis(400)).then_some((flood, honest))
}

#[tokio::test]
async fn before_the_first_lease_a_flood_of_one_identity_leaves_others_their_part() {
    // A machine may be too busy for some attempts.
    for _ in 0..50 {
        if let Some((flood, honest)) = flood_before_the_first_lease().await {
            assert!(flood >= 15 && honest == 8, "{flood} {honest}");
            return;
        }
    }
    panic!("each attempt took too long");
}
