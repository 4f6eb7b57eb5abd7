//! Refunds and debts by `/v1/charge`, and times that never come.

use serde_json::json;

use super::{Answering, FakeNode, SECOND, Site};

/// A limit of ten a minute by each algorithm.
const TEN: &str = "
domain: api
descriptors:
- {key: window, rate_limit: {rate: 10/min}}
- {key: bucket, rate_limit: {rate: 10/min, algorithm: token_bucket, burst: 10}}
- {key: queue, max_wait: 1min, rate_limit: {rate: 10/min, algorithm: leaky_queue, burst: 10}}
- {key: counter, rate_limit: {rate: 10/min, algorithm: sliding_counter}}
- {key: log, rate_limit: {rate: 10/min, algorithm: sliding_log}}
";

const KEYS: [&str; 5] = ["window", "bucket", "queue", "counter", "log"];

impl Site {
    async fn settle(&self, client: &str, key: &str, cost: i64) {
        let body =
            json!({"domain": "api", "entries": {key: "ann"}, "cost": cost, "client": client});
        let answer = self.post("/v1/charge", body.to_string()).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
    }

    async fn ask(&self, client: &str, key: &str, cost: u64) -> super::Answer {
        let body =
            json!({"domain": "api", "entries": {key: "ann"}, "cost": cost, "client": client});
        self.post("/v1/check", body.to_string()).await
    }

    async fn left(&self, key: &str) -> u64 {
        let answer = self.ask("looks", key, 0).await;
        answer.body["remaining"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn a_refund_gives_back_what_the_same_caller_took_in_the_same_window() {
    for key in KEYS.into_iter().filter(|key| *key != "queue") {
        let site = Site::with_rules(TEN);
        assert_eq!(site.ask("victim", key, 6).await.status, 200);
        assert_eq!(site.ask("other", key, 3).await.status, 200);
        for (client, back, left) in [
            ("thief", -1_000_000, 1),
            ("other", -1, 2),
            ("other", -1_000_000, 4),
            ("other", -1_000_000, 4),
            ("victim", i64::MIN, 10),
        ] {
            site.settle(client, key, back).await;
            assert_eq!(site.left(key).await, left, "{key} {client} {back}");
        }
        assert_eq!(site.ask("victim", key, 6).await.status, 200);
        site.set_time(125 * SECOND);
        assert_eq!(site.ask("other", key, 3).await.status, 200);
        site.settle("victim", key, -6).await;
        assert_eq!(site.left(key).await, 7, "{key} in a later window");
    }
}

#[tokio::test]
async fn a_caller_that_gives_back_each_request_has_a_limit() {
    for key in KEYS.into_iter().filter(|key| *key != "queue") {
        let site = Site::with_rules(TEN);
        let mut passed = 0;
        for _ in 0..100 {
            let answer = site.ask("greedy", key, 1).await;
            passed += u32::from(answer.status == 200);
            site.settle("greedy", key, -1).await;
        }
        assert_eq!(passed, 20, "{key}");
        // An estimate is given back but for a unit.
        let site = Site::with_rules(TEN);
        for _ in 0..15 {
            assert_eq!(
                site.ask("careful", key, 10).await.status == 200,
                site.left(key).await == 0
            );
            site.settle("careful", key, -9).await;
        }
    }
}

#[tokio::test]
async fn a_debt_is_bounded_by_the_rule() {
    for key in KEYS {
        let site = Site::with_rules(TEN);
        for _ in 0..3 {
            site.settle("thief", key, i64::MAX).await;
        }
        assert_eq!(site.ask("victim", key, 1).await.status, 429, "{key}");
        site.set_time(135 * SECOND);
        assert_eq!(site.ask("victim", key, 1).await.status, 200, "{key}");
    }
}

#[tokio::test]
async fn a_debt_of_a_lease_is_bounded_by_the_rule() {
    let rules = "
domain: api
descriptors:
- {key: shared, scope: shared, max_wait: 10s, rate_limit: {rate: 100/min}}
";
    let site = Site::new(rules, FakeNode::new(Answering::Grants(5.0)));
    assert_eq!(site.ask("web-1", "shared", 1).await.status, 200);
    for _ in 0..3 {
        site.settle("web-1", "shared", i64::MAX).await;
    }
    let answer = site.ask("web-1", "shared", 1).await;
    let wait = answer.body["retry_after_seconds"].as_f64().unwrap();
    assert!((15.0..=22.0).contains(&wait), "100 at 5 a second: {wait}");
}

#[tokio::test]
async fn what_never_comes_is_absent() {
    let rules = "
domain: api
headers: next
descriptors:
- {key: once, rate_limit: {rate: 0/s, algorithm: token_bucket, burst: 1}}
- {key: fast, rate_limit: {rate: 5/100ms}}
";
    let site = Site::with_rules(rules);
    for (status, name) in [(200, "the only one"), (429, "none is left")] {
        let answer = site.ask("a", "once", 1).await;
        assert_eq!(answer.status, status, "{name}");
        assert_eq!(answer.body["remaining"], 0, "{name}");
        for absent in ["reset_seconds", "retry_after_seconds"] {
            assert_eq!(answer.body.get(absent), None, "{name}");
        }
        assert_eq!(answer.header("ratelimit"), Some("\"api.once\";a=0"));
        assert_eq!(answer.header("retry-after"), None);
    }
    let answer = site.ask("a", "fast", 1).await;
    let policy = answer.header("ratelimit-policy");
    assert_eq!(policy, Some("\"api.fast\";q=50;w=1"));
    assert_eq!(answer.header("ratelimit"), Some("\"api.fast\";a=4;w=1"));
}
