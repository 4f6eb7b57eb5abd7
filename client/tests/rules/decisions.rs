//! Decisions: reasons, advice, and the answers that callers see.

use std::time::Duration;

use doorward::rules::{Decision, Descriptor, Entry, Limiter, Why};
use doorward_limits::Moment;
use doorward_limits::headers::Dialect;

use crate::story::{Story, rules};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a document with one rule for each user.
fn per_user(fields: &str) -> String {
    format!("domain: shop\ndescriptors:\n- key: user\n{fields}")
}

/// Checks the answer to a request, after some of one unit: status of a refusal, advice, and reason.
#[track_caller]
fn check(fields: &str, used: u64, hits: u64, expected: &str) {
    let story = Story::new(&per_user(fields));
    for _ in 0..used {
        let _ = story.user("ann");
    }
    let decision = story.ask(&[("user", "ann")], Some(hits));
    let status = decision.http_status();
    let shown = status.map_or("passes".to_owned(), |status| status.to_string());
    let shown = format!("{shown}, {:?}: {}", decision.advice, decision.why);
    assert_eq!(shown, expected, "{fields}");
    assert_eq!(decision.is_allowed, status.is_none());
    assert_eq!(decision.problem().is_none(), status.is_none());
    assert_eq!(decision.grpc(Duration::ZERO).is_none(), status.is_none());
}

#[test]
fn each_limit_has_its_reasons() {
    let two = "  rate_limit: {rate: 2/min}\n";
    check(two, 1, 1, "passes, Proceed: within the limit");
    check(two, 2, 1, "429, Reject: over the limit");
    check(two, 0, 3, "429, Reject: the cost is above the limit");
    check(
        "  rate_limit: {unlimited: true}\n",
        9,
        1,
        "passes, Proceed: unlimited",
    );
    let soft = "  rate_limit: {rate: 4/min, soft_limit: 2}\n";
    check(soft, 1, 1, "passes, Proceed: within the limit");
    check(soft, 2, 1, "passes, Proceed: beyond the soft limit");
    let queue = "  max_wait: 1s\n  rate_limit: {rate: 2/s, algorithm: leaky_queue, burst: 4}\n";
    check(queue, 0, 1, "passes, Proceed: within the limit");
    check(queue, 2, 1, "passes, ProceedAfter(1s): within the limit");
    check(queue, 3, 1, "429, Reject: over the limit");
    let bucket = "  rate_limit: {rate: 2/s, algorithm: gcra}\n";
    check(bucket, 1, 1, "passes, Proceed: within the limit");
    check(bucket, 2, 1, "429, Reject: over the limit");
}

#[test]
fn before_a_lease_a_process_admits_its_part_of_a_shared_limit() {
    let shared = |processes: u32, rate: &str| {
        format!("  scope: shared\n  processes: {processes}\n  rate_limit: {{{rate}}}\n")
    };
    let thirds = shared(3, "rate: 9/min");
    check(&thirds, 2, 1, "passes, Proceed: within the limit");
    check(&thirds, 3, 1, "429, Reject: over the limit");
    let many = shared(20, "rate: 9/min");
    check(&many, 0, 1, "passes, Proceed: within the limit");
    check(&many, 1, 1, "429, Reject: over the limit");
    let bucket = shared(4, "rate: 8/s, algorithm: token_bucket");
    check(&bucket, 1, 1, "passes, Proceed: within the limit");
    check(&bucket, 2, 1, "429, Reject: over the limit");
}

#[test]
fn each_action_has_its_advice() {
    let with = |fields: &str| format!("  rate_limit: {{rate: 2/min}}\n  {fields}\n");
    check(
        &with("shadow_mode: true"),
        2,
        1,
        "passes, Proceed: over the limit, in shadow mode",
    );
    check(&with("action: drop"), 2, 1, "429, Drop: over the limit");
    check(
        &with("action: redirect"),
        2,
        1,
        "429, Redirect: over the limit",
    );
    check(
        &with("action: degrade"),
        2,
        1,
        "passes, Degrade: over the limit, degraded",
    );
    let wait = "  rate_limit: {rate: 2/s, algorithm: token_bucket}\n  action: wait\n";
    check(wait, 2, 1, "429, Reject: over the limit");
    let patient = format!("{wait}  max_wait: 1s\n");
    for (before, expected) in [
        (1, "passes, Proceed: within the limit"),
        (2, "passes, ProceedAfter(500ms): within the limit"),
        (3, "passes, ProceedAfter(1s): within the limit"),
        (4, "429, Reject: over the limit"),
    ] {
        check(&patient, before, 1, expected);
    }
    let shared = |answer: &str| with(&format!("scope: shared\n  on_failure: {answer}"));
    check(
        &shared("open"),
        2,
        1,
        "passes, Proceed: no lease of the shared limit",
    );
    check(
        &shared("closed"),
        0,
        1,
        "503, Reject: no lease of the shared limit",
    );
    check(&shared("safe"), 2, 1, "429, Reject: over the limit");
    check(&with("scope: shared"), 2, 1, "429, Reject: over the limit");
}

#[test]
fn a_request_without_a_rule_is_free_or_rejected() {
    let story = Story::new(&per_user("  rate_limit: {rate: 1/min}\n"));
    let decision = story.ask(&[("team", "a")], None);
    assert_eq!((decision.why, decision.http_status()), (Why::NoRule, None));
    let rejecting = format!(
        "{}unmatched: reject\n",
        per_user("  rate_limit: {rate: 1/min}\n")
    );
    let story = Story::new(&rejecting);
    let decision = story.ask(&[("team", "a")], None);
    assert_eq!(
        (decision.why, decision.http_status()),
        (Why::Unmatched, Some(503))
    );
    assert_eq!(decision.grpc(Duration::ZERO).unwrap().code, 14);
    assert!(decision.headers(Duration::ZERO).is_empty());
    assert!(
        story
            .ask(&[("team", "a"), ("user", "ann")], None)
            .is_allowed
    );
}

#[test]
fn a_refusal_tells_callers_when_to_come_back() {
    let story = Story::new(&per_user("  rate_limit: {rate: 10/min}\n"));
    assert!(story.ask(&[("user", "ann")], Some(10)).is_allowed);
    let decision = story.user("ann");
    let jitter = 2 * SECOND;
    let expected = [
        ("RateLimit-Policy", "\"shop.user\";q=10;w=60"),
        ("RateLimit", "\"shop.user\";r=0;t=62"),
        ("Retry-After", "62"),
    ];
    assert_eq!(
        decision.headers(jitter),
        expected.map(|(name, value)| (name, value.to_owned()))
    );
    let grpc = decision.grpc(2 * SECOND).unwrap();
    assert_eq!((grpc.code, grpc.retry_delay), (8, Some(62 * SECOND)));
    assert_eq!(grpc.violations, ["shop.user"]);
    let problem: serde_json::Value = serde_json::from_str(&decision.problem().unwrap()).unwrap();
    assert_eq!(problem["status"], 429);
    assert_eq!(
        problem["violated-policies"],
        serde_json::json!(["shop.user"])
    );
    // No wait helps if the cost is above the limit.
    let decision = story.ask(&[("user", "ann")], Some(11));
    assert_eq!(decision.retry_after(), None);
    assert!(
        decision
            .headers(jitter)
            .iter()
            .all(|(name, _)| *name != "Retry-After")
    );
}

#[test]
fn a_refused_request_is_counted_by_no_rule() {
    let text = "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {rate: 5/min}\n- key: team\n  rate_limit: {rate: 1/min}\n";
    let story = Story::new(text);
    let pairs = [("user", "ann"), ("team", "a")];
    assert!(story.ask(&pairs, None).is_allowed);
    for _ in 0..3 {
        let decision = story.ask(&pairs, None);
        assert!(!decision.is_allowed);
        assert_eq!(decision.rule().unwrap().path, "shop.team");
        assert_eq!(decision.statuses[0].remaining(), 4);
    }
    assert_eq!(story.user("ann").remaining(), Some(3));
}

#[test]
fn bans_count_attempts_and_grow() {
    let text = per_user(
        "  ban: {threshold: 4, interval: 10s, length: 60s, growing: 3min}\n  rate_limit: {rate: 2/s}\n",
    );
    let mut story = Story::new(&text);
    let banned_for = |story: &mut Story| {
        for _ in 0..4 {
            assert_ne!(story.user("eve").why, Why::Banned);
        }
        let decision = story.user("eve");
        assert_eq!(decision.why, Why::Banned);
        assert_eq!(decision.remaining(), Some(0));
        let wait = decision.retry_after().unwrap();
        assert_eq!(decision.reset(), Some(wait));
        story.advance(wait - Duration::from_nanos(1));
        assert_eq!(story.user("eve").why, Why::Banned);
        assert!(story.user("bob").is_allowed, "others are not banned");
        story.advance(Duration::from_nanos(1));
        wait
    };
    // From the end of the interval: 10 s more.
    assert_eq!(banned_for(&mut story), 70 * SECOND);
    assert_eq!(banned_for(&mut story), 130 * SECOND);
    assert_eq!(banned_for(&mut story), 190 * SECOND);
    assert_eq!(banned_for(&mut story), 190 * SECOND);
    // After a good while, the first ban is short again.
    story.advance(200 * SECOND);
    assert_eq!(banned_for(&mut story), 70 * SECOND);
    // An attempt of many units counts once.
    story.advance(400 * SECOND);
    for is_banned in [false, false, false, false, true] {
        let decision = story.ask(&[("user", "eve")], Some(9));
        assert_eq!(decision.why == Why::Banned, is_banned);
    }
}

#[test]
fn a_request_with_a_long_value_is_refused_if_a_rule_limits_it() {
    let text = "domain: shop
descriptors:
- {key: user, value: \"*a*b*\", rate_limit: {unlimited: true}}
- {key: team, rate_limit: {rate: 5/min}}
- {key: trial, shadow_mode: true, rate_limit: {rate: 5/min}}
";
    let story = Story::new(text);
    let (short, long) = ("ab".repeat(4 * 1024), "ab".repeat(4 * 1024) + "b");
    for (key, value, is_allowed) in [
        ("user", &short, true),
        ("user", &long, false),
        ("team", &short, true),
        ("team", &long, false),
        ("trial", &long, true),
        ("other", &long, true),
    ] {
        let decision = story.ask(&[(key, value)], None);
        assert_eq!(decision.is_allowed, is_allowed, "{key}");
        assert_eq!(decision.why == Why::LongValue, !is_allowed, "{key}");
    }
    let refused = story.ask(&[("user", &long)], None);
    assert_eq!(
        (refused.http_status(), refused.statuses.len()),
        (Some(429), 1)
    );
}

#[test]
fn policies_have_different_names_in_the_dialect_of_the_domain() {
    let text = "domain: größe
headers: legacy
descriptors:
- {key: ö, rate_limit: {rate: 5/min}}
- {key: ü, rate_limit: {rate: 0/min}}
";
    let limiter = Limiter::new(rules(text), 1_000, [1, 2]);
    let entries = ["ö", "ü"].map(|key| [Entry { key, value: None }]);
    let descriptors = entries.each_ref().map(|entries| Descriptor {
        entries,
        hits: None,
    });
    let mut decision = limiter.decide("größe", &descriptors, None, Moment::ORIGIN);
    let headers = |decision: &Decision| decision.headers(Duration::ZERO);
    let legacy = [("X-RateLimit-Limit", "0"), ("X-RateLimit-Remaining", "0")];
    assert_eq!(
        headers(&decision),
        legacy.map(|(name, value)| (name, value.to_owned()))
    );
    decision.dialect = Dialect::Draft11;
    let (o, u) = ("gr%C3%B6%C3%9Fe.%C3%B6", "gr%C3%B6%C3%9Fe.%C3%BC");
    let expected = [
        (
            "RateLimit-Policy",
            format!("\"{o}\";q=5;w=60, \"{u}\";q=0;w=60"),
        ),
        ("RateLimit", format!("\"{u}\";r=0")),
    ];
    assert_eq!(headers(&decision), expected);
    let problem: serde_json::Value = serde_json::from_str(&decision.problem().unwrap()).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!([u]));
    assert_eq!(decision.reset(), None);
}

/// They tell no window, so the amount is not that of whole seconds.
#[test]
fn legacy_headers_have_the_amount_of_the_rule() {
    let text = "domain: api
headers: legacy
descriptors: [{key: user, rate_limit: {rate: 5/100ms}}]
";
    let limiter = Limiter::new(rules(text), 1_000, [1, 2]);
    let (key, value) = ("user", None);
    let descriptor = Descriptor {
        entries: &[Entry { key, value }],
        hits: None,
    };
    let decision = limiter.decide("api", &[descriptor], None, Moment::ORIGIN);
    let headers = decision.headers(Duration::ZERO);
    let amounts = [("X-RateLimit-Limit", "5"), ("X-RateLimit-Remaining", "4")];
    let amounts = amounts.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(headers[..2], amounts);
}
