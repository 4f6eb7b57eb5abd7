//! Fields of documents: unknown ones, numbers in quotes, and a queue without a wait.

use doorward::rules::Rules;

use crate::documents::{TWO, check};

#[test]
fn all_unknown_fields_are_told_with_the_other_problems() {
    let text = "domain: a
hedaers: next
descriptors:
- key: user
  burst: 3
  quota_mode: true
  metadata: {any: [thing]}
  rate_limit:
    unit: minute
    unit_multiplier: 5
    requests_per_hour: 20
    soft_limit: x
  descriptors:
  - ky: path
    ban: {treshold: 1}
    rate_limit: ~
  callers: [{nam: a}]
";
    let problems = Rules::load(&[("a.yaml", text)]).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let lacks = "envoyproxy/ratelimit has this field and Doorward does not; remove it";
    let limit =
        "algorithm, burst, name, rate, replaces, requests_per_unit, soft_limit, unit, unlimited";
    let descriptor = "action, ban, callers, cost, descriptors, detailed_metric, hash, key, max_wait, on_failure, \
                      priority, processes, rate_limit, scope, shadow_mode, value, weight";
    let expected = [
        "a.yaml:2: hedaers: is unknown; write one of count, descriptors, domain, empty, headers, unmatched",
        "a.yaml:5: burst: this field belongs to the limit; write it below rate_limit",
        &format!("a.yaml:6: quota_mode: {lacks}"),
        &format!("a.yaml:7: metadata: {lacks}"),
        "a.yaml:10: unit_multiplier: write a rate instead, such as rate: 20/5min",
        &format!("a.yaml:11: requests_per_hour: is unknown; write one of {limit}"),
        "a.yaml:12: soft_limit: x is invalid; write an amount such as 20",
        &format!("a.yaml:14: ky: is unknown; write one of {descriptor}"),
        "a.yaml:15: treshold: is unknown; write one of growing, interval, length, threshold",
        "a.yaml:17: nam: is unknown; write one of name, priority, weight",
        "a.yaml:17: callers: has an empty name; write it",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn fields_of_a_wrong_shape_hide_no_other_problem() {
    let text = "domain: a
descriptors:
- key: [user]
  cost: 0
  cost: 1
- key: b
  rate_limit: 5/s
  callers: {name: c}
  ban: [1]
- 7
- key: c
  rate_limit: {rate: {a: b}, burst: x}
- key: d
  callers: [bob]
  rate_limit: {rate: 5/s}
";
    let problems = Rules::load(&[("a.yaml", text)]).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let expected = [
        "a.yaml:3: key: a single value belongs here, not a list or map",
        "a.yaml:5: cost: is there twice; remove one of the two",
        "a.yaml:7: rate_limit: fields belong here; write them below it",
        "a.yaml:8: callers: a list belongs here; begin each entry with a dash",
        "a.yaml:9: ban: fields belong here; write them below it",
        "a.yaml:10: write fields, as in key: user",
        "a.yaml:12: rate: a single value belongs here, not a list or map",
        "a.yaml:12: burst: x is invalid; write an amount such as 20",
        "a.yaml:14: write fields, as in key: user",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn a_missing_field_is_told_unless_an_unknown_one_beside_it_may_be_that_field() {
    check(
        "{rate: 2/min}",
        "ban: {threshold: 2}\n  cots: 3",
        &[
            "shop.yaml:5: interval: is missing; write it, as in ban: {threshold: 20, interval: 1min, length: 10min}",
            "shop.yaml:5: length: is missing; write it, as in ban: {threshold: 20, interval: 1min, length: 10min}",
            "shop.yaml:6: cots: is unknown; write one of action, ban, callers, cost, descriptors, detailed_metric, hash, key, max_wait, on_failure, priority, processes, rate_limit, scope, shadow_mode, value, weight",
        ],
    );
    check(
        "{rate: 2/min}",
        "ban: {threshold: 2, intervall: 1s}",
        &["shop.yaml:5: intervall: is unknown; write one of growing, interval, length, threshold"],
    );
    check(
        "{unlimited: yes}",
        "",
        &["shop.yaml:4: unlimited: yes is invalid; write true or false"],
    );
}

#[test]
fn a_number_is_written_as_yaml_has_it_and_without_quotes() {
    let amount = |text: &str| format!("{{unit: day, requests_per_unit: {text}}}");
    for (text, units) in [("20", 20), ("0x10", 16), ("0o17", 15), ("+7", 7), ("0", 0)] {
        let text = format!(
            "domain: a\ndescriptors: [{{key: a, rate_limit: {}}}]\n",
            amount(text)
        );
        let rules = Rules::load(&[("a.yaml", &text)]).unwrap();
        let counted = rules.rules()[0].counted().unwrap();
        assert_eq!(counted.rate.amount().floor(), units, "{text}");
    }
    let what = "a whole number from 0 to 4294967295";
    for text in ["\"20\"", "'0x10'", "\"x\""] {
        let expected = format!(
            "shop.yaml:4: requests_per_unit: \"{}\" is a text; write {what}, without quotes",
            text.trim_matches(['"', '\''])
        );
        check(&amount(text), "", &[&expected]);
    }
    // Octal to envoyproxy/ratelimit, and decimal to YAML 1.2.
    for text in ["010", "1.5", "0x", "-1", "0x100000000"] {
        let expected = format!("shop.yaml:4: requests_per_unit: {text} is invalid; write {what}");
        check(&amount(text), "", &[&expected]);
    }
    for (limit, beside, field, text, what) in [
        (
            "{rate: 2/min, soft_limit: \"1\"}",
            "",
            "4: soft_limit",
            "1",
            "an amount such as 20",
        ),
        (
            "{unlimited: \"true\", rate: 2/min}",
            "",
            "4: unlimited",
            "true",
            "true or false",
        ),
        (
            TWO,
            "shadow_mode: 'true'",
            "5: shadow_mode",
            "true",
            "true or false",
        ),
        (TWO, "cost: \"2\"", "5: cost", "2", "a whole number above 0"),
        (TWO, "priority: \"2\"", "5: priority", "2", "a whole number"),
        (
            TWO,
            "ban: {threshold: 2, interval: 1min, length: 1min, growing: \"true\"}",
            "5: growing",
            "true",
            "true or false",
        ),
    ] {
        let expected =
            format!("shop.yaml:{field}: \"{text}\" is a text; write {what}, without quotes");
        check(limit, beside, &[&expected]);
    }
}

#[test]
fn a_queue_whose_turns_are_longer_than_the_default_wait_says_how_long() {
    let queue = |rest: &str| format!("{{rate: {rest}, algorithm: leaky_queue}}");
    let needs = |wait: &str| {
        format!(
            "shop.yaml:4: max_wait: is missing; a request of this queue may wait for {wait}, and by default for 5ms only; write it"
        )
    };
    check(&queue("10/s, burst: 20"), "", &[&needs("1s 900ms")]);
    check(&queue("10/s"), "", &[&needs("100ms")]);
    check(&queue("10/s, burst: 20"), "max_wait: 1s", &[]);
    check(&queue("1000/s"), "", &[]);
    check(&queue("1000/s, burst: 6"), "", &[]);
    check(&queue("0/s"), "", &[]);
}
