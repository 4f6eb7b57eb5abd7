//! `doorward rules try`: the answers of rules to requests.

use std::process::Output;

use crate::{check_exit, doorward, stderr, stdout};

const RULES: &str = "domain: login
descriptors:
- key: user
  rate_limit: {rate: 2/min}
- key: remote_address
  rate_limit: {rate: 3/min}
  ban: {threshold: 4, interval: 1min, length: 1h}
- key: remote_address
  value: '10.1.*'
  rate_limit: {unlimited: true}
";

fn tries(rules: &str, arguments: &[&str]) -> Output {
    let mut command = doorward();
    command.args(["rules", "try", "-"]).args(arguments);
    command.write_stdin(rules).output().unwrap()
}

#[track_caller]
fn check(rules: &str, arguments: &[&str], expected: &str) {
    let output = tries(rules, arguments);
    check_exit(&output, 0);
    assert_eq!(stdout(&output), expected);
}

#[test]
fn each_request_has_a_line_with_its_answer() {
    check(
        RULES,
        &["--request", "POST /login user=ann ip=192.0.2.1", "--repeat", "3", "--every", "100ms"],
        "\
+0s        allowed      login.user (2/min)  remaining 1  reset 1m  within the limit
+100ms     allowed      login.user (2/min)  remaining 0  reset 59s900ms  within the limit
+200ms     refused 429  login.user (2/min)  remaining 0  reset 59s800ms  over the limit, passes after 59s800ms
",
    );
    let addresses = RULES.replace("- key: user\n  rate_limit: {rate: 2/min}\n", "");
    check(
        &addresses,
        &["--request", "ip=192.0.2.1", "--repeat", "5"],
        "\
+0s        allowed      login.remote_address (3/min)  remaining 2  reset 1m  within the limit
+0s        allowed      login.remote_address (3/min)  remaining 1  reset 1m  within the limit
+0s        allowed      login.remote_address (3/min)  remaining 0  reset 1m  within the limit
+0s        refused 429  login.remote_address (3/min)  remaining 0  reset 1m  over the limit, passes after 1m
+0s        refused 429  login.remote_address (3/min)  remaining 0  reset 1h1m  banned, passes after 1h1m
",
    );
    // A request without an entry has a quota of its own, as in a service.
    check(
        RULES,
        &["--request", "ip=10.1.2.3", "--request", "user=ann", "--hits", "3"],
        "\
+0s        ip=10.1.2.3  refused 429  login.user (2/min)  remaining 2  reset 1m  the cost is above the limit, user missing
+0s        user=ann  refused 429  login.user (2/min)  remaining 2  reset 1m  the cost is above the limit
",
    );
    check(
        &addresses,
        &["--request", "ip=10.1.2.3"],
        "+0s        allowed      login.remote_address_10.1.* (unlimited)  unlimited\n",
    );
    let ann = "domain: d\ndescriptors: [{key: user, value: ann, rate_limit: {rate: 1/s}}]\n";
    check(
        ann,
        &["--request", "GET /"],
        "+0s        allowed      no rule\n",
    );
}

#[test]
fn the_rule_of_a_line_is_the_one_that_gives_the_reason() {
    let rules = |fields: &str| {
        let user = "{key: user, rate_limit: {rate: 2/min, name: user}}";
        format!("domain: d\ndescriptors:\n- {user}\n- {{key: path, {fields}}}\n")
    };
    for (fields, hits, expected) in [
        (
            "scope: shared, on_failure: closed, rate_limit: {rate: 1/s}",
            "1",
            "refused 503  d.path (1/s)  no lease of the shared limit",
        ),
        (
            "action: degrade, rate_limit: {rate: 1/s}",
            "2",
            "allowed      d.path (1/s)  remaining 0  reset 1s  over the limit, degraded: serve less",
        ),
        (
            "rate_limit: {unlimited: true, replaces: [{name: user}]}",
            "1",
            "allowed      d.path (unlimited)  unlimited",
        ),
    ] {
        check(
            &rules(fields),
            &["--request", "/a user=ann", "--hits", hits],
            &format!("+0s        {expected}\n"),
        );
    }
    let wait =
        rules("action: wait, max_wait: 1s, rate_limit: {rate: 1/s, algorithm: token_bucket}");
    let output = tries(&wait, &["--request", "/a user=ann", "--repeat", "2"]);
    let told =
        "d.path (1/s token_bucket)  remaining 0  reset 2s  within the limit: serve after 1s\n";
    assert!(stdout(&output).ends_with(told), "{}", stdout(&output));
}

#[test]
fn programs_get_an_object_for_each_request() {
    let output = tries(RULES, &["--request", "user=ann", "-o", "json"]);
    check_exit(&output, 0);
    let object: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let expected = serde_json::json!({
        "at_seconds": 0.0, "request": "user=ann", "allowed": true, "status": null,
        "rule": "login.user", "limit": "2/min", "remaining": 1, "reset_seconds": 60.0,
        "retry_after_seconds": null, "why": "within the limit", "advice": "serve",
    });
    assert_eq!(object, expected);
}

#[test]
fn mistakes_are_told() {
    #[track_caller]
    fn check(rules: &str, request: &str, code: i32, told: &str) {
        let output = tries(rules, &["--request", request]);
        check_exit(&output, code);
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    check(RULES, "usr=ann", 0, "note: no rule has the key usr");
    check(
        RULES,
        "ip=here",
        2,
        "ip=here is no address; write one such as ip=192.0.2.1",
    );
    let theirs = RULES.replace("  ban:", "  quota_mode: true\n  ban:");
    let told = "standard input:7: quota_mode: envoyproxy/ratelimit has this field and Doorward does not; remove it";
    check(&theirs, "user=ann", 1, told);
}
