//! Requests of a service: missing parts, keys without a part, and rules that take the place of others.

use doorward::rules::{Decision, Limiter, Part, Request, Service, Why};
use doorward_limits::Moment;

use crate::story::rules;

const USERS: &str = "domain: shop
descriptors:
- key: user
  rate_limit: {rate: 2/min}
";

/// Returns a service whose key `user` is the header `x-user`, and `team` the header `x-team`.
fn service(text: &str) -> Service {
    let part = |name: &str| (name.to_owned(), Part::Header(format!("x-{name}")));
    let limiter = Limiter::new(rules(text), 1_000, [1, 2]);
    Service::new(limiter, "shop", vec![part("user"), part("team")])
}

fn ask(service: &Service, headers: &[(&str, &[u8])]) -> Decision {
    let request = Request {
        peer: None,
        method: b"GET",
        path: b"/",
        headers,
        login: None,
    };
    service.decide(&request, Moment::ORIGIN)
}

#[test]
fn requests_that_lack_a_part_share_one_limit_apart_from_an_empty_value() {
    let service = service(USERS);
    for (headers, passes) in [
        (&[][..], true),
        (&[("x-other", b"a".as_slice())], true),
        (&[], false),
        (&[("x-user", b"")], true),
        (&[("x-user", b"ann")], true),
    ] {
        assert_eq!(ask(&service, headers).is_allowed, passes, "{headers:?}");
    }
}

#[test]
fn keys_without_a_part_are_told_and_their_value_is_missing() {
    let text = format!(
        "{USERS}- key: zone\n  rate_limit: {{rate: 1/min}}\n- key: card\n  descriptors:\n  - key: user\n    rate_limit: {{rate: 9/min}}\n"
    );
    let service = service(&text);
    assert_eq!(service.unknown_keys(), ["card", "zone"]);
    assert!(ask(&service, &[("x-user", b"ann")]).is_allowed);
    let decision = ask(&service, &[("x-user", b"bob")]);
    assert_eq!(decision.rule().unwrap().path, "shop.zone");
}

#[test]
fn a_request_without_a_rule_is_rejected_by_the_documents_choice() {
    let text = "domain: shop\nunmatched: reject\ndescriptors:\n- key: user\n  value: ann\n  rate_limit: {rate: 2/min}\n";
    let service = service(text);
    assert_eq!(ask(&service, &[("x-user", b"ann")]).http_status(), None);
    let decision = ask(&service, &[("x-user", b"bob")]);
    assert_eq!(
        (decision.why, decision.http_status()),
        (Why::Unmatched, Some(503))
    );
}

#[test]
fn a_rule_takes_the_place_of_another_of_the_same_request() {
    let text = "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {rate: 1/min, name: usual}\n- key: team\n  value: gold\n  rate_limit: {rate: 3/min, replaces: [{name: usual}]}\n";
    let service = service(text);
    let passed = |headers: &[(&str, &[u8])]| {
        let attempts = (0..5).filter(|_| ask(&service, headers).is_allowed);
        attempts.count()
    };
    assert_eq!(passed(&[("x-user", b"ann"), ("x-team", b"gold")]), 3);
    assert_eq!(passed(&[("x-user", b"ann"), ("x-team", b"tin")]), 1);
}

#[test]
fn a_set_of_values_has_a_descriptor_for_each_rule_whose_keys_it_has() {
    let text = "domain: shop
descriptors:
- key: user
  rate_limit: {rate: 2/min}
  descriptors:
  - key: path
    rate_limit: {rate: 2/min}
- key: path
  value: /pay
  rate_limit: {rate: 1/min}
";
    let limiter = Limiter::new(rules(text), 1_000, [1, 2]);
    for (values, expected) in [
        (&[][..], &[][..]),
        (&[("team", "a")], &[]),
        (&[("user", "ann"), ("team", "a")], &["user=ann"]),
        (&[("path", "/")], &[]),
        (&[("path", "/pay")], &["path=/pay"]),
        (
            &[("path", "/pay"), ("user", "")],
            &["path=/pay", "user=", "user= path=/pay"],
        ),
    ] {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let values = values.iter().map(owned).collect();
        let descriptors = limiter.descriptors("shop", &values);
        let texts = descriptors.iter().map(|entries| {
            let text = entries.iter().map(|it| {
                let value = str::from_utf8(it.value.unwrap()).unwrap();
                format!("{}={value}", it.key)
            });
            text.collect::<Vec<_>>().join(" ")
        });
        let mut texts: Vec<_> = texts.collect();
        texts.sort();
        assert_eq!(texts, expected, "{values:?}");
        assert!(limiter.descriptors("other", &values).is_empty());
    }
}
