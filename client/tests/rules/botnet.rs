//! Log-ins by a botnet, and hostile headers.

use std::time::Duration;

use doorward::rules::{Descriptor, Entry, Limiter, Rules};
use doorward_limits::Moment;

const LOGINS: &str = "domain: login
descriptors:
  - key: name
    rate_limit: {rate: 10/min}
  - key: address
    rate_limit: {rate: 10/min}
";

/// Returns the number of log-ins that pass in a minute, at 100 a second.
fn passed(name: fn(u64) -> u64, address: fn(u64) -> u64) -> usize {
    let limiter = Limiter::new(
        Rules::load(&[("login.yaml", LOGINS)]).unwrap(),
        100_000,
        [1, 2],
    );
    let attempt = |number: &u64| {
        let (name, address) = (name(*number).to_string(), address(*number).to_string());
        let entries = [("name", &name), ("address", &address)];
        let entries = entries.map(|(key, value)| {
            [Entry {
                key,
                value: Some(value.as_bytes()),
            }]
        });
        let descriptors = entries.each_ref().map(|entries| Descriptor {
            entries,
            hits: None,
        });
        let now = Moment::ORIGIN.after(Duration::from_millis(10 * number));
        limiter.allow("login", &descriptors, now)
    };
    (0..6_000).filter(attempt).count()
}

#[test]
fn a_botnet_and_a_list_of_names_get_ten_log_ins_a_minute() {
    assert_eq!(passed(|_| 7, |number| number % 10_000), 10);
    assert_eq!(passed(|number| number % 10_000, |_| 7), 10);
}

#[test]
fn a_missing_value_is_limited_apart_from_an_empty_one() {
    let text = "domain: api\ndescriptors: [{key: x-api-key, rate_limit: {rate: 1/h}}]\n";
    let rules = Rules::load(&[("api.yaml", text)]).unwrap();
    let limiter = Limiter::new(rules, 1_000, [1, 2]);
    let passes = |value| {
        let key = "x-api-key";
        let descriptor = Descriptor {
            entries: &[Entry { key, value }],
            hits: None,
        };
        limiter.allow("api", &[descriptor], Moment::ORIGIN)
    };
    for value in [None, Some(&b""[..]), Some(b"\xff")] {
        assert!(passes(value), "{value:?}");
        assert!(!passes(value), "{value:?}");
    }
}
