//! One decision, whichever way a request takes: `testdata/decisions.json`, through the library, RLS, `/json`, and both
//! forms of `/v1/check`.

use std::collections::BTreeMap;

use doorward::rules::{Descriptor, Entry, Limiter, Rules};
use doorward_edge::asker::Asker;
use doorward_edge::rls;
use doorward_limits::Moment;
use doorward_proto::envoy::ratelimit::rate_limit_descriptor;
use doorward_proto::envoy::ratelimit::rate_limit_response::Code;
use doorward_proto::envoy::ratelimit::{RateLimitDescriptor, RateLimitRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::Site;

#[derive(Deserialize)]
struct Vectors {
    /// A document of rules. JSON is YAML, too.
    rules: Value,
    requests: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    at_ms: i64,
    /// `key=value` of each entry, with commas between them.
    descriptors: Vec<String>,
    cost: Option<u32>,
    allowed: bool,
    remaining: Option<u64>,
    rule: Option<String>,
}

impl Vectors {
    fn load() -> Self {
        serde_json::from_str(include_str!("../testdata/decisions.json")).unwrap()
    }

    fn site(&self) -> Site {
        Site::with_rules(&self.rules.to_string())
    }
}

impl Vector {
    fn nanos(&self) -> i64 {
        self.at_ms * 1_000_000
    }

    fn entries(&self) -> Vec<Vec<(&str, &str)>> {
        let descriptors = self.descriptors.iter();
        let entries = descriptors.map(|it| it.split(',').map(|it| it.split_once('=').unwrap()));
        entries.map(Iterator::collect).collect()
    }

    /// Returns the descriptors, as both HTTP doors have their entries.
    fn pairs(&self) -> Vec<Vec<Value>> {
        let pair = |(key, value): (&str, &str)| json!({"key": key, "value": value});
        let entries = self.entries().into_iter();
        entries
            .map(|it| it.into_iter().map(pair).collect())
            .collect()
    }

    fn status(&self) -> u16 {
        if self.allowed { 200 } else { 429 }
    }

    #[track_caller]
    fn check(&self, allowed: bool, remaining: Option<u64>, rule: Option<&str>) {
        let decided = (allowed, remaining, rule);
        let expected = (self.allowed, self.remaining, self.rule.as_deref());
        assert_eq!(decided, expected, "{self:?}");
    }

    /// Checks an answer in the form of Envoy: the code, the units of a single descriptor, and the header, which names
    /// the rule if it may refuse.
    #[track_caller]
    fn check_envoy(&self, is_ok: bool, remaining: &[u32], header: Option<&str>) {
        assert_eq!(is_ok, self.allowed, "{self:?}");
        let rule = self.rule.as_deref().unwrap_or_default();
        let left = self.remaining;
        if let ([one], Some(left)) = (remaining, left) {
            assert_eq!(u64::from(*one), left, "{self:?}");
        }
        match header {
            Some(header) => {
                let expected = format!("\"{rule}\";r={};", left.unwrap());
                assert!(header.starts_with(&expected), "{self:?}: {header}");
            }
            None => assert!(["", "api.trial", "api.staff"].contains(&rule), "{self:?}"),
        }
    }

    async fn check_at(&self, site: &Site, body: Value) {
        site.set_time(self.nanos());
        let answer = site.post("/v1/check", body.to_string()).await;
        assert_eq!(answer.status, self.status(), "{self:?}");
        let body = &answer.body;
        let allowed = body["allowed"].as_bool().unwrap();
        self.check(allowed, body["remaining"].as_u64(), body["rule"].as_str());
    }
}

#[test]
fn the_library_decides_as_the_vectors_say() {
    let vectors = Vectors::load();
    assert!(vectors.requests.len() >= 30);
    let rules = Rules::load(&[("decisions.json", &vectors.rules.to_string())]).unwrap();
    let limiter = Limiter::new(rules, 1000, [1, 2]);
    for vector in &vectors.requests {
        let entries = vector.entries().into_iter().map(|entries| {
            let entry = |(key, value)| Entry {
                key,
                value: Some(str::as_bytes(value)),
            };
            entries.into_iter().map(entry).collect()
        });
        let entries: Vec<Vec<Entry<'_>>> = entries.collect();
        let descriptors: Vec<_> = (entries.iter())
            .map(|entries| Descriptor {
                entries,
                hits: None,
            })
            .collect();
        let hits = vector.cost.map(u64::from);
        let now = Moment::from_nanos(vector.nanos());
        let decision = limiter.decide("api", &descriptors, hits, now);
        let rule = decision.rule().map(|rule| rule.path.as_str());
        vector.check(decision.is_allowed, decision.remaining(), rule);
    }
}

#[tokio::test]
async fn envoys_service_decides_as_the_vectors_say() {
    let vectors = Vectors::load();
    let site = vectors.site();
    for vector in &vectors.requests {
        site.set_time(vector.nanos());
        let descriptors = vector
            .entries()
            .into_iter()
            .map(|entries| RateLimitDescriptor {
                entries: (entries.into_iter())
                    .map(|(key, value)| rate_limit_descriptor::Entry {
                        key: key.to_owned(),
                        value: value.to_owned(),
                    })
                    .collect(),
                hits_addend: vector.cost.map(u64::from),
                is_negative_hits: false,
                limit: None,
            });
        let request = RateLimitRequest {
            domain: "api".to_owned(),
            descriptors: descriptors.collect(),
            hits_addend: 0,
        };
        let asker = Asker::new(Some("tests"), None, None);
        let response = rls::answer(&site.edge, &request, &asker).await.unwrap();
        let remaining: Vec<_> = response
            .statuses
            .iter()
            .map(|it| it.limit_remaining)
            .collect();
        let mut headers = response.response_headers_to_add.iter();
        let header = headers.find(|it| it.key == "RateLimit");
        let is_ok = response.overall_code() == Code::Ok;
        vector.check_envoy(is_ok, &remaining, header.map(|it| it.value.as_str()));
    }
}

#[tokio::test]
async fn json_decides_as_the_vectors_say() {
    let vectors = Vectors::load();
    let site = vectors.site();
    for vector in &vectors.requests {
        site.set_time(vector.nanos());
        let descriptors = vector.pairs().into_iter();
        let descriptors: Vec<_> = descriptors
            .map(|entries| json!({"entries": entries, "hitsAddend": vector.cost}))
            .collect();
        let body = json!({"domain": "api", "descriptors": descriptors});
        let answer = site.post("/json", body.to_string()).await;
        assert_eq!(answer.status, vector.status(), "{vector:?}");
        let statuses = answer.body["statuses"].as_array().unwrap().iter();
        let remaining: Vec<_> = statuses
            .map(|it| u32::try_from(it["limitRemaining"].as_u64().unwrap_or_default()).unwrap())
            .collect();
        let is_ok = answer.body["overallCode"] == "OK";
        vector.check_envoy(is_ok, &remaining, answer.header("ratelimit"));
    }
}

#[tokio::test]
async fn a_check_of_descriptors_decides_as_the_vectors_say() {
    let vectors = Vectors::load();
    let site = vectors.site();
    for vector in &vectors.requests {
        let body = json!({"domain": "api", "descriptors": vector.pairs(), "cost": vector.cost});
        vector.check_at(&site, body).await;
    }
}

#[tokio::test]
async fn a_check_of_entries_decides_as_the_vectors_say() {
    let vectors = Vectors::load();
    let site = vectors.site();
    for vector in &vectors.requests {
        let entries: BTreeMap<&str, &str> = vector.entries().into_iter().flatten().collect();
        let body = json!({"domain": "api", "entries": entries, "cost": vector.cost});
        vector.check_at(&site, body).await;
    }
}
