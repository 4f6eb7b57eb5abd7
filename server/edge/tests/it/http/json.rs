//! `/json`, as envoyproxy/ratelimit serves it: its README, and `TestJsonHandler` of its `server_impl_test.go`.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::{SECOND, Site};

const RULES: &str = "
domain: foo
descriptors:
- key: user
  rate_limit: {unit: minute, requests_per_unit: 10}
- key: once
  rate_limit: {unit: day, requests_per_unit: 1, name: daily}
- key: quarter
  rate_limit: {rate: 2000/20min}
- key: free
  rate_limit: {unlimited: true}
";

fn user(rest: &str) -> String {
    format!(
        r#"{{"domain": "foo", "descriptors": [{{"entries": [{{"key": "user", "value": "ann"}}]{rest}}}]}}"#
    )
}

#[track_caller]
fn check_left(name: &str, answer: &super::Answer, left: Option<u64>) {
    match left {
        Some(left) => {
            assert_eq!(answer.status, 200, "{name}: {}", answer.body);
            let remaining = answer.body["statuses"][0]["limitRemaining"].as_u64();
            assert_eq!(remaining.unwrap_or_default(), left, "{name}");
        }
        None => answer.check_problem(name, 400, ""),
    }
}

#[tokio::test]
async fn bodies_are_read_as_the_json_form_of_protocol_buffers_says() {
    let hits = |text: &str| user(&format!(", {text}"));
    let with = |text: &str| user("").replace("}]}]", &format!("}}]}}], {text}"));
    // Units that are left of ten, or none for a bad request.
    for (name, body, left) in [
        ("missing request body", String::new(), None),
        ("request body is not valid json", "}".to_owned(), None),
        ("no domain", r#"{"descriptors": [{}]}"#.to_owned(), None),
        ("no descriptors", r#"{"domain": "foo"}"#.to_owned(), None),
        ("trailing text", format!("{} x", user("")), None),
        ("one request", user(""), Some(9)),
        ("number", with(r#""hitsAddend": 3"#), Some(7)),
        ("number as text", with(r#""hits_addend": "3""#), Some(7)),
        (
            "null is the default",
            with(r#""hitsAddend": null"#),
            Some(9),
        ),
        ("beyond 32 bits", with(r#""hitsAddend": 4294967296"#), None),
        ("descriptor", hits(r#""hitsAddend": 4"#), Some(6)),
        ("descriptor as text", hits(r#""hitsAddend": "4""#), Some(6)),
        ("other name", hits(r#""hits_addend": "4""#), Some(6)),
        (
            "both names",
            hits(r#""hits_addend": 4, "hitsAddend": 4"#),
            None,
        ),
        ("fraction", hits(r#""hitsAddend": 4.0"#), None),
        ("exponent", hits(r#""hitsAddend": "0.4e1""#), None),
        ("negative", hits(r#""hitsAddend": -4"#), None),
        (
            "beyond 64 bits",
            hits(r#""hitsAddend": 18446744073709551616"#),
            None,
        ),
        ("not a number", hits(r#""hitsAddend": "NaN""#), None),
        ("infinite", hits(r#""hitsAddend": "Infinity""#), None),
        ("with a space", hits(r#""hitsAddend": " 4""#), None),
        ("zero looks", hits(r#""hitsAddend": 0"#), Some(10)),
        ("null hits", hits(r#""hitsAddend": null"#), Some(9)),
        ("boolean as text", hits(r#""isNegativeHits": "true""#), None),
        (
            "a limit of the request is ignored",
            hits(r#""limit": {"requestsPerUnit": 1, "unit": "HOUR"}"#),
            Some(9),
        ),
        ("unknown field", hits(r#""limits": 1"#), None),
        (
            "null element",
            user("").replace("[{\"entries\"", "[null, {\"entries\""),
            None,
        ),
        (
            "type of a list",
            r#"{"domain": "foo", "descriptors": {}}"#.to_owned(),
            None,
        ),
    ] {
        let answer = Site::with_rules(RULES).post("/json", body).await;
        check_left(name, &answer, left);
    }
}

#[tokio::test]
async fn answers_have_the_form_of_protocol_buffers() {
    let site = Site::with_rules(RULES);
    site.set_time(30 * SECOND + SECOND / 2);
    let body = json!({"domain": "foo", "descriptors": [
        {"entries": [{"key": "user", "value": "ann"}]},
        {"entries": [{"key": "once"}]},
        {"entries": [{"key": "quarter", "value": "1"}]},
        {"entries": [{"key": "free", "value": "1"}]},
        {"entries": [{"key": "unknown", "value": "1"}]},
    ]});
    let first = site.post("/json", body.to_string()).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), Some("application/json"));
    let statuses = json!([
        {"code": "OK", "currentLimit": {"requestsPerUnit": 10, "unit": "MINUTE"}, "limitRemaining": 9,
            "durationUntilReset": "29.500s"},
        {"code": "OK", "currentLimit": {"name": "daily", "requestsPerUnit": 1, "unit": "DAY"},
            "durationUntilReset": "86369.500s"},
        {"code": "OK", "currentLimit": {"requestsPerUnit": 2000}, "limitRemaining": 1999,
            "durationUntilReset": "1169.500s"},
        {"code": "OK", "limitRemaining": 4_294_967_295_u32},
        {"code": "OK"},
    ]);
    assert_eq!(first.body["overallCode"], "OK");
    assert_eq!(first.body["statuses"], statuses);

    let second = site.post("/json", body.to_string()).await;
    assert_eq!(second.status, 429);
    assert_eq!(second.header("content-type"), Some("application/json"));
    assert_eq!(second.body["overallCode"], "OVER_LIMIT");
    let codes: Vec<&Value> = (0..5)
        .map(|at| &second.body["statuses"][at]["code"])
        .collect();
    assert_eq!(codes, ["OK", "OVER_LIMIT", "OK", "OK", "OK"]);
    // A refused request is counted by none of its rules.
    assert_eq!(second.body["statuses"][0]["limitRemaining"], 9);
}

#[tokio::test]
async fn headers_for_the_caller_are_headers_of_the_answer() {
    let site = Site::with_rules(RULES);
    let body = user("").replace("user", "once");
    let allowed = site.post("/json", body.clone()).await;
    assert_eq!(
        allowed.header("ratelimit-policy"),
        Some("\"foo.once\";q=1;w=86400")
    );
    assert_eq!(allowed.header("retry-after"), None);
    let refused = site.post("/json", body).await;
    for added in refused.body["responseHeadersToAdd"].as_array().unwrap() {
        let name = added["key"].as_str().unwrap();
        assert_eq!(refused.header(name), added["value"].as_str(), "{name}");
    }
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((86_400..=86_401).contains(&wait), "{wait}");
}

#[tokio::test]
async fn negative_hits_are_given_back() {
    let site = Site::with_rules(RULES);
    site.post("/json", user(r#", "hitsAddend": 8"#)).await;
    let back = r#", "hitsAddend": "5", "isNegativeHits": true"#;
    let answer = site.post("/json", user(back)).await;
    assert_eq!(answer.body["overallCode"], "OK");
    let looks = site.post("/json", user(r#", "hitsAddend": 0"#)).await;
    assert_eq!(looks.body["statuses"][0]["limitRemaining"], 7);
    let mut thief = super::request("POST", "/json", user(back));
    let name = "x-doorward-client";
    thief.headers_mut().insert(name, "thief".parse().unwrap());
    site.send(thief).await;
    let looks = site.post("/json", user(r#", "hitsAddend": 0"#)).await;
    assert_eq!(looks.body["statuses"][0]["limitRemaining"], 7);
}

#[tokio::test]
async fn any_type_is_read_but_no_page_of_a_browser() {
    let site = Site::with_rules(RULES);
    let plain = || Request::post("/json").header("content-type", "text/plain");
    let answer = site.send(plain().body(Body::from(user(""))).unwrap()).await;
    assert_eq!(answer.status, 200);
    let page = plain().header("origin", "https://example.org");
    let answer = site.send(page.body(Body::from(user(""))).unwrap()).await;
    answer.check_problem("a page", 403, "pages");
    let answer = site.send(Request::get("/json").body(Body::empty()).unwrap());
    assert_eq!(answer.await.status, 405);
}
