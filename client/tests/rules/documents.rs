//! Problems of documents that the vectors do not have: fields beyond envoyproxy/ratelimit.

use doorward::rules::{Rank, Rules, domain_of};

/// Returns the problems of a document with these lines below `rate_limit` and beside it.
fn problems(limit: &str, beside: &str) -> Vec<String> {
    let text =
        format!("domain: shop\ndescriptors:\n- key: user\n  rate_limit: {limit}\n  {beside}\n");
    match Rules::load(&[("shop.yaml", &text)]) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
pub(crate) fn check(limit: &str, beside: &str, expected: &[&str]) {
    assert_eq!(problems(limit, beside), expected, "{limit} {beside}");
}

pub(crate) const TWO: &str = "{rate: 2/min}";

#[test]
fn fields_of_a_limit_are_checked_with_their_line_and_advice() {
    check(TWO, "", &[]);
    check(
        "{rate: 2000/20min, algorithm: token_bucket, burst: 5, soft_limit: 2.5}",
        "",
        &[],
    );
    check(
        TWO,
        "ban: {threshold: 3, interval: 1min, length: 1h, growing: true}",
        &[],
    );
    check(
        TWO,
        "value: sk-1\n  hash: true",
        &["shop.yaml:6: hash: hides no value that the document has; remove it, or the value sk-1"],
    );
    check(
        "{rate: 2 per minute}",
        "",
        &["shop.yaml:4: rate: 2 per minute is invalid; write a rate such as 10/min or 2000/20min"],
    );
    check(
        "{rate: 2/min, algorithm: magic}",
        "",
        &[
            "shop.yaml:4: algorithm: magic is unknown; write one of fixed_window, gcra, leaky_bucket, token_bucket, leaky_queue, sliding_log, sliding_counter",
        ],
    );
    check(
        "{rate: 2/min, burst: 4}",
        "",
        &["shop.yaml:4: burst: needs algorithm: token_bucket or leaky_queue; windows have none"],
    );
    check(
        "{rate: 2/min, soft_limit: 2}",
        "",
        &["shop.yaml:4: soft_limit: 2 is not below the limit; write less than 2"],
    );
    check(
        "{rate: 0/min, soft_limit: 1}",
        "",
        &["shop.yaml:4: soft_limit: 1 is not below the limit; remove it, since nothing is below 0"],
    );
}

#[test]
fn fields_of_a_descriptor_are_checked_with_their_line_and_advice() {
    check(
        TWO,
        "ban: {threshold: 3, interval: 1min}",
        &[
            "shop.yaml:5: length: is missing; write it, as in ban: {threshold: 20, interval: 1min, length: 10min}",
        ],
    );
    check(
        "{unlimited: true, burst: 1}",
        "ban: {threshold: 3, interval: 1min, length: 1h}",
        &[
            "shop.yaml:4: burst: stands beside unlimited; remove one of the two",
            "shop.yaml:4: ban: stands beside unlimited; remove one of the two",
        ],
    );
    check(
        TWO,
        "burst: 3",
        &["shop.yaml:5: burst: this field belongs to the limit; write it below rate_limit"],
    );
    check(
        TWO,
        "quota_mode: true",
        &[
            "shop.yaml:5: quota_mode: envoyproxy/ratelimit has this field and Doorward does not; remove it",
        ],
    );
    check(
        TWO,
        "cost: 0",
        &["shop.yaml:5: cost: 0 is invalid; write a whole number above 0"],
    );
    check(
        TWO,
        "max_wait: soon",
        &["shop.yaml:5: max_wait: soon is invalid; write a duration up to 1min, such as 5ms"],
    );
}

#[test]
fn the_first_name_that_matches_gives_the_rank_of_a_caller() {
    let text = "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {rate: 2/s}\n  priority: 1\n  weight: 2\n  \
                callers: [{name: web-1, priority: -3}, {name: web-*, weight: 100}]\n";
    let rules = Rules::load(&[("shop.yaml", text)]).unwrap();
    let ranks = &rules.rules()[0].ranks;
    for (caller, priority, weight) in [("web-1", -3, 2), ("web-2", 1, 100), ("batch", 1, 2)] {
        assert_eq!(ranks.of(caller), Rank { priority, weight }, "{caller}");
    }
    let invalid = |field: &str, value: &str, what: &str| {
        format!("shop.yaml:5: {field}: {value} is invalid; write a whole number{what}")
    };
    let from = " from 1 to 100";
    check(TWO, "priority: high", &[&invalid("priority", "high", "")]);
    check(TWO, "weight: 0", &[&invalid("weight", "0", from)]);
    let weight = "callers: [{name: a, weight: 101}]";
    check(TWO, weight, &[&invalid("weight", "101", from)]);
    let written = invalid("processes", "0", " from 1 to 10000");
    let local = "shop.yaml:5: processes: needs scope: shared and on_failure: safe; remove it";
    check(TWO, "processes: 0", &[&written, local]);
    check(TWO, "processes: 2", &[local]);
    let nameless = "shop.yaml:5: callers: has an empty name; write it";
    check(TWO, "callers: [{weight: 2}]", &[nameless]);
}

#[test]
fn rules_that_refuse_every_request_or_have_no_effect_are_problems() {
    check("{rate: 0/min}", "", &[]);
    check("{rate: 10/min}", "cost: 10", &[]);
    check("{rate: 10/min}", "max_wait: 1min", &[]);
    let refuses = |most, cost| {
        format!(
            "shop.yaml:4: rate_limit: {most} at once is less than the cost of {cost}, so no request passes; write a larger amount or burst, or a smaller cost"
        )
    };
    check("{rate: 10/min}", "cost: 20", &[&refuses("10", 20)]);
    check("{rate: 0.5/s}", "", &[&refuses("0.5", 1)]);
    let bucket = "{rate: 2/s, algorithm: token_bucket, burst: 0}";
    check(bucket, "", &[&refuses("0", 1)]);
    let example = "write it, as in ban: {threshold: 20, interval: 1min, length: 10min}";
    check(
        TWO,
        "ban:",
        &[&format!("shop.yaml:5: ban: is empty; {example}")],
    );
    check(
        TWO,
        "ban: {threshold: 0, interval: 0s, length: 1h, growing: 5min}",
        &[
            "shop.yaml:5: threshold: 0 is invalid; write a whole number of attempts above 0",
            "shop.yaml:5: interval: 0s is invalid; write a duration above 0, such as 1min",
            "shop.yaml:5: growing: is shorter than length; write a longer duration",
        ],
    );
    check(
        TWO,
        "max_wait: 61s",
        &["shop.yaml:5: max_wait: 61s is invalid; write a duration up to 1min, such as 5ms"],
    );
    for length in ["1month", "1h 2M", "1year", "1y"] {
        let ban = format!("ban: {{threshold: 1, interval: 1min, length: {length}}}");
        let expected = format!(
            "shop.yaml:5: length: {length} is invalid; write a duration such as 10min or 30days"
        );
        check(TWO, &ban, &[&expected]);
    }
    check("{rate: 100000/s, algorithm: sliding_log}", "", &[]);
    check(
        "{rate: 100001/s, algorithm: sliding_log}",
        "",
        &[
            "shop.yaml:4: algorithm: sliding_log keeps each request, 100000 at most; write sliding_counter",
        ],
    );
    for (field, value) in [
        ("shadow_mode", "true"),
        ("cost", "2"),
        ("action", "drop"),
        ("scope", "shared"),
        ("max_wait", "5ms"),
        ("on_failure", "open"),
        ("priority", "1"),
        ("weight", "2"),
    ] {
        let text = format!("domain: shop\ndescriptors:\n- key: user\n  {field}: {value}\n");
        let problems = Rules::load(&[("shop.yaml", &text)]).unwrap_err();
        let expected = format!("{field}: stands without rate_limit; write the limit too");
        assert_eq!((problems[0].line, &problems[0].message), (4, &expected));
    }
}

#[test]
fn an_address_of_ipv6_has_its_prefix() {
    let address = |value: &str| {
        let limit = format!("rate_limit: {TWO}");
        let text = format!(
            "domain: a\ndescriptors:\n- key: remote_address\n  value: {value}\n  {limit}\n"
        );
        Rules::load(&[("a.yaml", &text)]).map_err(|problems| problems[0].to_string())
    };
    assert!(address("2001:db8::/64").is_ok());
    assert!(address("10.1.2.3").is_ok());
    let expected = "a.yaml:4: value: 2001:db8:1:2:3::4 matches no client, because IPv6 addresses count by prefix; write \"2001:db8:1:2::/64\"";
    assert_eq!(address("2001:db8:1:2:3::4"), Err(expected.to_owned()));
}

#[test]
fn a_number_needs_quotes_wherever_it_stands() {
    for (start, number, is_valid) in [
        ("", "\"1.10\"", true),
        ("", "'1.10'", true),
        ("", "1.10", false),
        ("\u{feff}", "\"1.10\"", true),
        ("# größer\r\n", "\"1.10\"", true),
        ("# größer\r\n", "1.10", false),
    ] {
        let rule = format!("{{key: é, value: {number}, rate_limit: {TWO}}}");
        let text = format!("{start}domain: größer\ndescriptors: [{rule}]\n");
        assert_eq!(
            Rules::load(&[("a.yaml", &text)]).is_ok(),
            is_valid,
            "{text}"
        );
    }
}

#[test]
fn problems_of_the_parser_are_told_in_the_words_of_a_document() {
    #[track_caller]
    fn check(text: &str, line: u64, message: &str) {
        let problems = Rules::load(&[("a.yaml", text)]).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert_eq!((problem.line, problem.message.as_str()), (line, message));
    }
    let (open, close) = ("[{key: a, descriptors: ".repeat(40), "}]".repeat(40));
    let deep = format!("domain: a\ndescriptors: {open}{close}\n");
    let levels = "is in more than the 32 maps and lists in one another that there may be";
    check(&deep, 2, levels);
    let several = "a second document starts here; write one file for each domain";
    check("domain: a\n---\ndomain: b\n", 3, several);
    check(
        "domain: [a]\n",
        1,
        "domain: a single value belongs here, not a list or map",
    );
    check(
        "domain: a\ndescriptors: [user]\n",
        2,
        "write fields, as in key: user",
    );
    check("just text\n", 1, "write fields, as in key: user");
    check("domain: {\n", 1, "is no YAML: unclosed bracket '{'");
    let list = "descriptors: a list belongs here; begin each entry with a dash";
    check("domain: a\ndescriptors: {key: user}\n", 2, list);
    check(
        "domain: a\ndomain: b\n",
        2,
        "domain: is there twice; remove one of the two",
    );
}

#[test]
fn a_document_has_hundreds_of_thousands_of_values_and_many_aliases() {
    let names = "{name: a}, ".repeat(90_000);
    let mut text = format!(
        "domain: a\ndescriptors:\n- key: a\n  rate_limit: {{rate: 1/s, replaces: [{names}]}}\n"
    );
    for number in 0..2_000 {
        let limit = if number == 0 { "&a {rate: 1/s}" } else { "*a" };
        text += &format!("- key: a\n  value: \"{number}.0\"\n  rate_limit: {limit}\n");
    }
    let rules = Rules::load(&[("a.yaml", &text)]).map(|rules| rules.rules().len());
    assert_eq!(rules, Ok(2_001));
}

#[test]
fn a_document_without_a_rule_is_valid_only_if_it_says_so() {
    let none =
        "a.yaml:1: descriptors: there is no rule; write one, or empty: true if that is intended";
    let many = "a.yaml:2: empty: there are rules; remove this field";
    let rule = format!("descriptors: [{{key: user, rate_limit: {TWO}}}]");
    let below =
        format!("descriptors: [{{key: user, descriptors: [{{key: b, rate_limit: {TWO}}}]}}]");
    for (rest, expected) in [
        ("descriptors:", Some(none)),
        ("descriptors: []", Some(none)),
        ("descriptors: [{key: user}]", Some(none)),
        ("unmatched: reject", Some(none)),
        ("empty: false", Some(none)),
        ("empty: true", None),
        ("empty: true\ndescriptors: []", None),
        (&rule, None),
        (&below, None),
        (
            "descriptors: [{key: user, rate_limit: {unlimited: true}}]",
            None,
        ),
        (&format!("empty: true\n{rule}"), Some(many)),
    ] {
        let loaded = Rules::load(&[("a.yaml", &format!("domain: a\n{rest}\n"))]);
        let told = loaded.err().map(|problems| problems[0].to_string());
        assert_eq!(told.as_deref(), expected, "{rest}");
    }
}

#[test]
fn rules_that_go_are_named_with_their_file() {
    let load = |rules: &str| {
        let text = format!("domain: a\ndescriptors: [{rules}]\n");
        Rules::load(&[("limits.yaml", &text)]).unwrap()
    };
    let rule = |key: &str| format!("{{key: {key}, rate_limit: {TWO}}}");
    let before = load(&[rule("user"), rule("path")].join(", "));
    assert_eq!(before.gone(&before), [""; 0]);
    assert_eq!(before.gone(&load(&rule("users"))), ["a.user", "a.path"]);
    assert_eq!(before.file("a"), Some("limits.yaml"));
    assert_eq!(before.file("limits"), None);
}

#[test]
fn the_domain_of_an_invalid_text_is_known() {
    for (text, expected) in [
        ("# first\ndomain: api\nrules: {", Some("api")),
        ("domain: 'a b' # why\n", Some("a b")),
        ("domain:\n", None),
        ("domain: [api]\n", None),
        ("descriptors:\n  domain: api\n", None),
    ] {
        assert_eq!(domain_of(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn aliases_of_aliases_are_refused_before_they_are_memory() {
    let said = "aliases repeat too much; write the values out";
    let check = |text: &str| match Rules::load(&[("a.yaml", text)]) {
        Ok(_) => String::new(),
        Err(problems) => problems[0].message.clone(),
    };
    let list = |of: &str| [of; 10].join(", ");
    let mut text = format!("domain: a\ndescriptors:\n- &a0 {{key: k, rate_limit: {TWO}}}\n");
    for level in 1..8 {
        let below = list(&format!("*a{}", level - 1));
        text += &format!("- &a{level} {{key: k{level}, descriptors: [{below}]}}\n");
    }
    assert_eq!(check(&text), said);
    let long = "x".repeat(100_000);
    let text = format!(
        "domain: &d {long}\ndescriptors: [{{key: *d, rate_limit: {{replaces: [{}]}}}}]",
        list("{name: *d}")
    );
    assert_eq!(check(&text), said);
}

#[test]
fn a_long_key_above_many_descriptors_is_refused_before_it_is_memory() {
    let below = (0..2_000).map(|number| format!("{{key: k{number}, rate_limit: {TWO}}}"));
    let below: Vec<String> = below.collect();
    let check = |domain: usize, key: usize| {
        let text = format!(
            "domain: {}\ndescriptors: [{{key: {}, descriptors: [{}]}}]",
            "d".repeat(domain),
            "k".repeat(key),
            below.join(", ")
        );
        let problems = Rules::load(&[("a.yaml", &text)]).err().unwrap_or_default();
        problems.len() == 1 && problems[0].message.contains("too long for so many")
    };
    assert!(!check(10, 1_000));
    assert!(check(10, 10_000));
    assert!(check(10_000, 10));
}

#[test]
fn all_problems_of_all_documents_are_told_by_line() {
    let first = "domain: a\nunmatched: perhaps\ndescriptors:\n- key: user\n  rate_limit: {rate: x}\n- value: 1\n";
    let second = "domain: ''\n";
    let again = [
        ("a.yaml", "domain: a\nempty: true\n"),
        ("b.yaml", "# b\ndomain: a\n"),
    ];
    let problems = Rules::load(&again).unwrap_err();
    let expected = "b.yaml:2: domain: a is in a.yaml too; put all of its rules into one";
    assert_eq!(problems[0].to_string(), expected);
    let problems = Rules::load(&[("a.yaml", first), ("b.yaml", second)]).unwrap_err();
    let lines: Vec<_> = problems
        .iter()
        .map(|it| (it.file.as_str(), it.line))
        .collect();
    assert_eq!(
        lines,
        [("a.yaml", 2), ("a.yaml", 5), ("a.yaml", 6), ("b.yaml", 1)]
    );
}

#[test]
fn valid_rules_have_warnings() {
    let warnings = |descriptor: &str| {
        let text = format!("domain: a\ndescriptors: [{descriptor}]\n");
        Rules::load(&[("a.yaml", &text)]).unwrap().warnings()
    };
    let secret = |key: &str| {
        format!(
            "a: {key} is named like a secret, and the status, pages and metrics may show its values; write hash: true beside the key"
        )
    };
    for (descriptor, expected) in [
        ("{key: user, rate_limit: {rate: 1/s}}", vec![]),
        (
            "{key: user, detailed_metric: true, rate_limit: {rate: 1/s}}",
            vec!["a.user: detailed_metric has no effect".to_owned()],
        ),
        (
            "{key: user, on_failure: closed, max_wait: 1s, rate_limit: {rate: 1/s}}",
            vec![
                "a.user: on_failure has no effect without scope: shared".to_owned(),
                "a.user: max_wait has no effect: no request waits".to_owned(),
            ],
        ),
        (
            "{key: user, max_wait: 1s, rate_limit: {rate: 2/min, algorithm: leaky_queue, burst: 20}}",
            vec![
                "a.user: max_wait is shorter than the time between two requests of the queue, so no request waits".to_owned(),
            ],
        ),
        (
            "{key: user, max_wait: 31s, rate_limit: {rate: 2/min, algorithm: leaky_queue, burst: 20}}",
            vec![],
        ),
        (
            "{key: user, rate_limit: {rate: 1/s, name: one, replaces: [{name: two}]}}, {key: b, rate_limit: {rate: 1/s, name: two, replaces: [{name: nope}]}}",
            vec!["a.b: replaces has no effect: no rule is named nope".to_owned()],
        ),
        (
            "{key: user, weight: 3, rate_limit: {rate: 1/s}}",
            vec![
                "a.user: priority, weight and callers have no effect without scope: shared"
                    .to_owned(),
            ],
        ),
        (
            "{key: user, shadow_mode: true, rate_limit: {unlimited: true}}",
            vec![
                "a.user: shadow_mode, action and cost have no effect on an unlimited rule"
                    .to_owned(),
            ],
        ),
        (
            "{key: X-Api-Key, rate_limit: {rate: 1/s}}",
            vec![secret("X-Api-Key")],
        ),
        (
            "{key: X-Api-Key, hash: true, rate_limit: {rate: 1/s}}",
            vec![],
        ),
        // Only levels that lead to a limit have values, each key once.
        (
            "{key: token}, {key: cookie, descriptors: [{key: a, rate_limit: {rate: 1/s}}, {key: b, rate_limit: {rate: 1/s}}]}",
            vec![secret("cookie")],
        ),
    ] {
        assert_eq!(warnings(descriptor), expected, "{descriptor}");
    }
}
