//! Rules as values: what they print, and what they decide.

use std::time::Duration;

use doorward::rules::{
    Action, Algorithm, Limiter, NamedRules, OnFailure, RateLimit, Request, Rules, Service,
    client_ip, cookie, header, login, method, path_template,
};
use doorward_limits::Moment;

#[test]
fn values_print_as_a_document() {
    let rules = Rules::named("api")
        .per(header("x-user"), "5/s")
        .per(
            header("x-user"),
            RateLimit::new("1000/day").by(Algorithm::SlidingLog),
        )
        .per(
            [cookie("tenant"), method()],
            RateLimit::new("20/s").burst(40).shared(),
        )
        .per(
            login(),
            RateLimit::new("2/s")
                .action(Action::Wait)
                .max_wait(Duration::from_secs(1)),
        )
        .per(
            path_template(["/orders"]),
            RateLimit::new("9/s").soft_limit(7).shadow(),
        );
    let expected = r#"domain: "api"
descriptors:
- key: "x-user"
  rate_limit: {rate: "5/s", algorithm: "token_bucket"}
- key: "x-user-2"
  rate_limit: {rate: "1000/day", algorithm: "sliding_log"}
- key: "tenant"
  descriptors:
  - key: "method"
    rate_limit: {rate: "20/s", algorithm: "token_bucket", burst: 40}
    scope: "shared"
- key: "login"
  rate_limit: {rate: "2/s", algorithm: "token_bucket"}
  action: "wait"
  max_wait: 1000000us
- key: "path"
  rate_limit: {rate: "9/s", algorithm: "token_bucket", soft_limit: 7}
  shadow_mode: true
"#;
    assert_eq!(rules.to_string(), expected);
    let (loaded, parts) = rules.load().unwrap();
    assert_eq!(loaded.rules().len(), 5);
    let keys: Vec<_> = parts.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["x-user", "x-user-2", "tenant", "method", "login", "path"]
    );
}

#[test]
fn a_later_setting_replaces_an_earlier_one() {
    let limit = RateLimit::new("5/s").burst(1).burst(9).shared().shared();
    let rules = Rules::named("a\"b: {")
        .per(header("x: \"y"), limit)
        .per([], "1/s");
    let text = rules.to_string();
    assert!(
        text.contains("burst: 9}") && !text.contains("burst: 1,"),
        "{text}"
    );
    let (loaded, _) = rules.load().unwrap();
    assert_eq!(loaded.domains(), ["a\"b: {"]);
}

#[test]
fn invalid_values_are_told_with_their_line() {
    #[track_caller]
    fn check(rules: NamedRules, expected: &str) {
        let problems = rules.load().unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}");
    }
    let api = || Rules::named("api");
    check(api().per(login(), "five"), "rules:4: ");
    let closed = RateLimit::new("5/s").burst(0).on_failure(OnFailure::Closed);
    check(api().per(login(), "5/s").per(method(), closed), "rules:6: ");
    check(Rules::named("").per(login(), "5/s"), "domain: is missing");
}

#[test]
fn the_caller_behind_a_proxy_has_a_limit_of_its_own() {
    let (rules, parts) = Rules::named("api")
        .per(client_ip().behind(1), "2/day")
        .load()
        .unwrap();
    let service = Service::new(Limiter::new(rules, 100, [1, 2]), "api", parts);
    let proxy = Some([10, 0, 0, 1].into());
    let mut answers = Vec::new();
    for caller in ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"] {
        let headers = [("x-forwarded-for", caller.as_bytes())];
        let request = Request {
            peer: proxy,
            method: b"GET",
            path: b"/",
            headers: &headers,
            login: None,
        };
        answers.push(service.allow(&request, Moment::ORIGIN));
    }
    assert_eq!(answers, [true, true, false, true]);
}

#[test]
fn the_algorithm_is_the_one_that_a_rate_means() {
    for (rate, algorithm) in [
        (RateLimit::new("5/s"), "token_bucket"),
        (RateLimit::new("1/2s").burst(5), "token_bucket"),
        (RateLimit::new("600/min"), "sliding_counter"),
        (
            RateLimit::new("600/min").action(Action::Wait),
            "token_bucket",
        ),
        (RateLimit::new("7/month"), "sliding_counter"),
    ] {
        let rules = Rules::named("api").per(login(), rate.clone());
        assert!(rules.to_string().contains(algorithm), "{rate:?}");
        rules.load().unwrap();
    }
}
