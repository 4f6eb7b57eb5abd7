//! `/v1/reserve`, `/v1/settle` and `/v1/refund`, with a root that gives budgets out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_edge::clock::Clock;
use doorward_edge::node::{Later, Node};
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::marks::FoundMarks;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::node::{self, Config};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use serde_json::{Value, json};

use super::{Answer, Site};

/// A root with 1,000 tokens and 10 calls for each tenant, and a rate.
#[derive(Debug)]
struct Root {
    node: Mutex<node::Node>,
    clock: Clock,
}

impl Root {
    fn new() -> Arc<Self> {
        let spec = |glob: &str, capacity, kind| TemplateSpec {
            identifier_glob: Some(glob.to_owned()),
            capacity: Some(capacity),
            kind: Some(kind),
            lease_length: Some(Duration::from_secs(20)),
            refresh_interval: Some(Duration::from_secs(5)),
            parameters: match kind {
                AlgorithmKind::Budget => vec![("window".to_owned(), Some("lifetime".to_owned()))],
                _ => Vec::new(),
            },
            ..TemplateSpec::default()
        };
        let templates = Templates::parse(&[
            spec("tokens/*", 1_000.0, AlgorithmKind::Budget),
            spec("calls/*", 10.0, AlgorithmKind::Budget),
            spec("shared/api/tenant=*", 1_000.0, AlgorithmKind::Budget),
            spec("rate", 10.0, AlgorithmKind::FairShare),
        ]);
        let mut node = node::Node::new(Config::default(), templates.unwrap());
        let clock = Clock::start();
        node.handle_wall_clock(0, clock.now());
        let found = FoundMarks {
            is_complete: true,
            ..FoundMarks::default()
        };
        node.handle_alone(found, clock.now());
        let node = Mutex::new(node);
        Arc::new(Self { node, clock })
    }

    /// Returns the amount that is taken, or may be.
    fn used(&self, id: &str) -> f64 {
        let id = doorward_engine::id::ResourceId::new(id).unwrap();
        let snapshot = self
            .node
            .lock()
            .unwrap()
            .resource_snapshot(&id, self.clock.now());
        snapshot.unwrap().granted
    }
}

impl Node for Root {
    fn get_capacity(&self, request: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>> {
        let mut node = self.node.lock().unwrap();
        let answer = node.handle_get_capacity(&request, self.clock.now());
        if node.poll_mark_writes(self.clock.now()).is_some() {
            node.handle_marks_written(self.clock.now());
        }
        Box::pin(std::future::ready(Some(answer)))
    }

    fn release(&self, request: ReleaseCapacity) -> Later<'_, ()> {
        let mut node = self.node.lock().unwrap();
        node.handle_release_capacity(&request, self.clock.now());
        Box::pin(std::future::ready(()))
    }
}

fn site() -> (Arc<Root>, Site) {
    let root = Root::new();
    (
        Arc::clone(&root),
        Site::new("{domain: none, empty: true}", root),
    )
}

async fn post(site: &Site, path: &str, body: Value) -> Answer {
    site.post(path, body.to_string()).await
}

#[tokio::test]
async fn a_call_reserves_and_settles_and_repeated_requests_count_once() {
    let (_, site) = site();
    let reserve =
        json!({"key": "a", "budgets": {"tokens/acme": 600, "calls/acme": 1}, "wait_seconds": 9});
    for _ in 0..2 {
        let answer = post(&site, "/v1/reserve", reserve.clone()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["key"]),
            (200, &json!("a")),
            "{}",
            answer.body
        );
        assert_eq!(answer.body["budgets"]["tokens/acme"]["soft"], false);
    }
    let settle = |used: u64| json!({"key": "a", "used": {"tokens/acme": used}});
    for used in [400, 7] {
        let answer = post(&site, "/v1/settle", settle(used)).await;
        let counted = json!({"counted": {"tokens/acme": 400, "calls/acme": 1}});
        assert_eq!((answer.status.as_u16(), answer.body), (200, counted));
    }
    // An ended one is not refunded.
    let answer = post(&site, "/v1/refund", json!({"key": "a"})).await;
    assert_eq!(answer.body["counted"]["tokens/acme"], 400);

    // 600 tokens and 9 calls are left.
    let reserve = json!({"budgets": {"tokens/acme": 600, "calls/acme": 9}, "wait_seconds": 9});
    let answer = post(&site, "/v1/reserve", reserve).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let key = &answer.body["key"];
    let reserve = json!({"budgets": {"tokens/acme": 1}, "wait_seconds": 9});
    let answer = post(&site, "/v1/reserve", reserve.clone()).await;
    answer.check_problem("used up", 429, "tokens/acme has too little for this call");
    let answer = post(&site, "/v1/refund", json!({"key": key})).await;
    assert_eq!(answer.body["counted"]["tokens/acme"], 0);
    let answer = post(&site, "/v1/reserve", reserve).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn of_several_budgets_all_are_reserved_or_none() {
    let (root, site) = site();
    for calls in [11, 10] {
        let reserve =
            json!({"budgets": {"tokens/acme": 1_000, "calls/acme": calls}, "wait_seconds": 9});
        let answer = post(&site, "/v1/reserve", reserve).await;
        match calls {
            11 => answer.check_problem("too many", 429, "calls/acme"),
            _ => assert_eq!(answer.status, 200, "{}", answer.body),
        }
    }
    assert_eq!(
        (root.used("tokens/acme"), root.used("calls/acme")),
        (1_000.0, 10.0)
    );
}

/// Tokens of a tenant, of which no process may take more than 5,000 a day.
const OF_TENANT: &str = "{domain: api, descriptors: [{key: tenant, scope: budget, max_wait: 30s, \
    rate_limit: {rate: 5000/day}}]}";

#[tokio::test]
async fn a_rule_takes_from_a_budget_and_settles_against_it() {
    let root = Root::new();
    let site = Site::new(OF_TENANT, Arc::clone(&root));
    let ask = |cost: i64| json!({"domain": "api", "entries": {"tenant": "acme"}, "cost": cost});
    // Path, cost, and status.
    let story = [
        ("check", 600, 200),
        ("check", 500, 429),
        // A call used more than there was.
        ("charge", 500, 204),
        ("check", 0, 429),
        // And the call before it used less.
        ("charge", -300, 204),
        ("check", 0, 200),
        ("check", 200, 200),
        ("check", 150, 429),
        // No more is given back than was taken.
        ("charge", -5_000, 204),
        ("check", 1_000, 200),
    ];
    for (step, (path, cost, status)) in story.into_iter().enumerate() {
        let answer = post(&site, &format!("/v1/{path}"), ask(cost)).await;
        assert_eq!(answer.status, status, "step {step}: {}", answer.body);
    }
    // No more than what was used above the rest.
    assert!(root.used("shared/api/tenant=acme") <= 1_100.0);
}

#[tokio::test]
async fn a_charge_before_the_first_answer_counts() {
    let root = Root::new();
    let site = Site::new(OF_TENANT, Arc::clone(&root));
    // That is no rule's: rules give nothing of it back.
    let other = json!({"key": "a", "budgets": {"shared/api/tenant=acme": 100}, "wait_seconds": 9});
    for (path, cost, status) in [
        ("charge", 400, 204),
        ("check", 601, 429),
        ("check", 600, 200),
        ("charge", -400, 204),
        ("check", 300, 200),
        ("reserve", 100, 200),
        ("charge", -1_000, 204),
        ("check", 901, 429),
        ("check", 900, 200),
    ] {
        if path == "reserve" {
            let answer = post(&site, "/v1/reserve", other.clone()).await;
            assert_eq!(answer.status, status, "{}", answer.body);
            continue;
        }
        let ask = json!({"domain": "api", "entries": {"tenant": "acme"}, "cost": cost});
        let answer = post(&site, &format!("/v1/{path}"), ask).await;
        assert_eq!(answer.status, status, "{path} {cost}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_rule_without_its_budget_refuses_unless_it_is_open() {
    for (on_failure, status) in [("closed", 503), ("open", 200)] {
        let rules = OF_TENANT.replace("api", "none");
        let rules = rules.replace("30s", &format!("5ms, on_failure: {on_failure}"));
        let site = Site::new(&rules, Root::new());
        let ask = json!({"domain": "none", "entries": {"tenant": "acme"}});
        let answer = post(&site, "/v1/check", ask).await;
        assert_eq!(answer.status, status, "{on_failure}: {}", answer.body);
    }
}

/// Name, path, body, status, and words of the answer.
const WRONG: [(&str, &str, &str, u16, &str); 14] = [
    (
        "too much",
        "reserve",
        r#"{"budgets": {"tokens/acme": 1000000000000001}}"#,
        400,
        "at most 1000000000000000",
    ),
    (
        "more than the whole",
        "reserve",
        r#"{"budgets": {"tokens/acme": 1000000000000000}}"#,
        429,
        "too little",
    ),
    (
        "much used",
        "settle",
        r#"{"key": "a", "used": {"tokens/acme": 1000000000000001}}"#,
        400,
        "at most 1000000000000000",
    ),
    (
        "no budget",
        "reserve",
        r#"{"budgets": {}}"#,
        400,
        "give 1 to 16",
    ),
    (
        "a part",
        "reserve",
        r#"{"budgets": {"tokens/a": 0.5}}"#,
        400,
        "u64",
    ),
    (
        "a long wait",
        "reserve",
        r#"{"budgets": {"tokens/a": 1}, "wait_seconds": 10}"#,
        400,
        "wait_seconds",
    ),
    (
        "no time",
        "reserve",
        r#"{"budgets": {"tokens/a": 1}, "lasts_seconds": -1}"#,
        400,
        "lasts_seconds",
    ),
    (
        "an empty key",
        "reserve",
        r#"{"budgets": {"tokens/a": 1}, "key": ""}"#,
        400,
        "1 to 128 bytes",
    ),
    (
        "another call",
        "reserve",
        r#"{"budgets": {"tokens/acme": 2}, "key": "a"}"#,
        409,
        "key of its own",
    ),
    (
        "no template",
        "reserve",
        r#"{"budgets": {"dollars": 1}, "wait_seconds": 9}"#,
        404,
        "dollars",
    ),
    (
        "a rate",
        "reserve",
        r#"{"budgets": {"rate": 1}, "wait_seconds": 9}"#,
        409,
        "rate",
    ),
    (
        "an unknown key",
        "settle",
        r#"{"key": "b"}"#,
        404,
        "no such reservation",
    ),
    (
        "another budget",
        "settle",
        r#"{"key": "a", "used": {"calls/acme": 1}}"#,
        400,
        "used.calls/acme",
    ),
    (
        "an unknown field",
        "refund",
        r#"{"key": "a", "used": {}}"#,
        400,
        "used",
    ),
];

#[tokio::test]
async fn a_wrong_request_is_told_what_to_do() {
    let (_, site) = site();
    let first = json!({"key": "a", "budgets": {"tokens/acme": 1}, "wait_seconds": 9});
    assert_eq!(post(&site, "/v1/reserve", first).await.status, 200);
    for (name, path, body, status, words) in WRONG {
        let answer = site.post(&format!("/v1/{path}"), body).await;
        answer.check_problem(name, status, words);
    }
    let budgets = (0..17).map(|it| (format!("tokens/{it}"), 1));
    let budgets: std::collections::BTreeMap<_, _> = budgets.collect();
    let answer = post(&site, "/v1/reserve", json!({"budgets": budgets})).await;
    answer.check_problem("many budgets", 400, "there are 17");
}
