//! Counts of decisions by rule: the outcomes, their bound, and refusals that begin.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use doorward::rules::{Entry, Limiter, Outcome, tally};
use doorward_limits::Moment;

use crate::story::{Story, rules};

const SHOP: &str = "domain: shop
unmatched: reject
descriptors:
- key: user
  rate_limit: {rate: 2/min}
- key: team
  shadow_mode: true
  rate_limit: {rate: 1/min}
- key: queue
  action: wait
  max_wait: 1s
  rate_limit: {rate: 2/s, algorithm: token_bucket, burst: 1}
";

/// Returns each row that is not zero: domain, rule, and the counts of all outcomes.
fn rows(limiter: &Limiter) -> Vec<String> {
    let tallies = limiter.tallies().into_iter();
    let rows = tallies.map(|it| {
        let counts = Outcome::ALL.map(|(outcome, _)| it.count(outcome));
        (counts, format!("{} {} {counts:?}", it.domain, it.rule))
    });
    let rows = rows.filter(|(counts, _)| counts.iter().any(|count| *count > 0));
    rows.map(|(_, row)| row).collect()
}

#[test]
fn each_rule_counts_its_own_answers() {
    let story = Story::new(SHOP);
    for entry in ["user", "user", "user", "team", "team", "queue", "queue"] {
        story.ask(&[(entry, "a")], None);
    }
    story.ask(&[("nobody", "knows")], None);
    let expected = [
        "shop unmatched [0, 0, 1, 0]",
        "shop shop.user [2, 0, 1, 0]",
        "shop shop.team [1, 0, 0, 1]",
        "shop shop.queue [1, 1, 0, 0]",
    ];
    assert_eq!(rows(&story.limiter), expected);
}

#[test]
fn counts_go_on_when_rules_change_and_a_rule_that_goes_takes_its_counts_along() {
    let story = Story::new(SHOP);
    for entry in ["user", "team"] {
        story.ask(&[(entry, "a")], None);
    }
    let text = "domain: shop\ndescriptors:\n- key: zone\n  rate_limit: {rate: 9/s}\n- key: user\n  rate_limit: {rate: 9/s}\n";
    story.limiter.replace(rules(text), story.now);
    story.ask(&[("user", "a")], None);
    assert_eq!(rows(&story.limiter), ["shop shop.user [2, 0, 0, 0]"]);
}

#[test]
fn rules_beyond_the_bound_and_rules_of_one_path_share_counts() {
    let mut text = "domain: shop\ndescriptors:\n".to_owned();
    for number in 0..tally::RULES_MAX + 3 {
        text += &format!("- {{key: user, value: u{number}, rate_limit: {{rate: 9/s}}}}\n");
    }
    let story = Story::new(&text);
    for number in [0, 998, 999, 1002] {
        story.ask(&[("user", &format!("u{number}"))], None);
    }
    let expected = [
        "shop shop.user_u0 [1, 0, 0, 0]",
        "shop shop.user_u998 [1, 0, 0, 0]",
        "other other [2, 0, 0, 0]",
    ];
    assert_eq!(rows(&story.limiter), expected);
    let text = "domain: shop\ndescriptors:\n- {key: a_b, rate_limit: {rate: 9/s}}\n- {key: a, value: b, rate_limit: {rate: 9/s}}\n";
    let story = Story::new(text);
    story.ask(&[("a_b", "1")], None);
    story.ask(&[("a", "b")], None);
    assert_eq!(rows(&story.limiter), ["shop shop.a_b [2, 0, 0, 0]"]);
}

#[test]
fn requests_that_another_program_decided_count_for_the_rule_of_exactly_their_keys() {
    let limiter = Limiter::new(rules(SHOP), 100, [1, 2]);
    for (key, allowed, denied) in [("user", 7, 2), ("zone", 1, 4), ("team", u64::MAX, u64::MAX)] {
        let values = BTreeMap::from([(key.to_owned(), "a".to_owned())]);
        limiter.count_unordered("shop", &values, [allowed, denied], Moment::ORIGIN);
    }
    let most = u32::MAX;
    let expected = [
        "shop unmatched [1, 0, 4, 0]".to_owned(),
        "shop shop.user [7, 0, 2, 0]".to_owned(),
        format!("shop shop.team [{most}, 0, {most}, 0]"),
    ];
    assert_eq!(rows(&limiter), expected);
}

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn refusals_begin_after_a_quiet_time() {
    let text = "domain: shop\ndescriptors:\n- {key: user, rate_limit: {rate: 0/s}}\n";
    let mut story = Story::new(text);
    story.limiter = story.limiter.telling(|domain, rule| {
        let name = format!("{domain} {rule}");
        Box::new(move |outcome, count, begins| {
            let line = format!("{name} {outcome:?} {count} {begins}");
            TOLD.lock().unwrap().push(line);
        })
    });
    for wait in [Duration::ZERO, Duration::from_secs(1), tally::QUIET] {
        story.advance(wait);
        story.user("ann");
    }
    let expected = [true, false, true];
    let expected = expected.map(|begins| format!("shop shop.user Refused 1 {begins}"));
    assert_eq!(*TOLD.lock().unwrap(), expected);
    let tallies = story.limiter.tallies();
    let at = Duration::from_nanos(story.now.nanos().unsigned_abs());
    assert_eq!(tallies[1].refused_at(), Some(at));
}

/// `printf 'api_key\0sk-live-1' | sha256sum | head -c 32`, and so on.
#[test]
fn a_hashed_value_is_in_no_name_of_a_resource() {
    let text = "domain: shop
descriptors:
- key: api_key
  hash: true
  scope: shared
  rate_limit: {rate: 1/s}
- key: api_key
  value: sk-live-*
  hash: true
  scope: shared
  rate_limit: {rate: 1/s}
  descriptors:
  - {key: path, scope: shared, rate_limit: {rate: 1/s}}
- key: user
  descriptors:
  - {key: token, hash: true, scope: shared, rate_limit: {rate: 1/s}}
";
    let limiter = Limiter::new(rules(text), 100, [1, 2]);
    let check = |entries: &[(&str, &str)], expected: &str| {
        let values = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let values: BTreeMap<_, _> = values.collect();
        let entries: Vec<_> = entries
            .iter()
            .map(|(key, value)| Entry {
                key,
                value: Some(value.as_bytes()),
            })
            .collect();
        let descriptors = [doorward::rules::Descriptor {
            entries: &entries,
            hits: None,
        }];
        let shared = limiter.shared("shop", &descriptors, None);
        assert_eq!(shared[0].0, expected);
        assert_eq!(limiter.find_unordered("shop", &values).unwrap().0, expected);
    };
    check(
        &[("api_key", "pk-1")],
        "api_key==e3e7621cefca66a2f0f3d9f677fef92d",
    );
    check(
        &[("api_key", "sk-live-1")],
        "api_key=sk-live-*=42b13d4b489581ca068d4528b06bb6eb",
    );
    check(
        &[("api_key", "sk-live-1"), ("path", "/a")],
        "api_key=sk-live-*=42b13d4b489581ca068d4528b06bb6eb,path=/a",
    );
    check(
        &[("user", "ann"), ("token", "t")],
        "user=ann,token==0c20490b1e29187229239844462729f1",
    );
}

/// A server refuses domains whose documents are invalid.
#[test]
fn refusals_of_a_domain_without_a_document_are_its_own() {
    let mut rules = rules(SHOP);
    rules.refuse("api");
    let limiter = Limiter::new(rules, 1_000, [1, 2]);
    limiter.decide("api", &[], None, Moment::ORIGIN);
    assert_eq!(rows(&limiter), ["api unmatched [0, 0, 1, 0]"]);
}
