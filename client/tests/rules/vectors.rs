//! The vectors of `tests/vectors`, or of the folder `DOORWARD_RULES_VECTORS`.

use doorward::rules::{Descriptor, Entry, Limit, Limiter, Problem, Problems, Rules, Status, Why};
use doorward_limits::Moment;
use serde_json::{Value, json};

use crate::cases;

/// Fields of envoyproxy/ratelimit that the crate refuses.
const LACKED: [&str; 3] = ["share_threshold", "value_to_metric", "quota_mode"];

fn texts(case: &Value) -> Vec<String> {
    let one = std::slice::from_ref(&case["config"]);
    let all = case["configs"].as_array().map_or(one, Vec::as_slice);
    all.iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn load(case: &Value) -> Result<Rules, Problems> {
    let texts = texts(case);
    let names: Vec<_> = (0..texts.len()).map(|number| number.to_string()).collect();
    let documents: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    Rules::load(&documents)
}

fn is_expected(problem: &Problem, error: &Value) -> bool {
    let line = json!(problem.line);
    let words = error["contains"].as_array().unwrap();
    (error["line"] == line
        || error["or_line"]
            .as_array()
            .is_some_and(|lines| lines.contains(&line)))
        && words
            .iter()
            .all(|word| problem.message.contains(word.as_str().unwrap()))
        && error
            .get("file")
            .is_none_or(|file| json!(problem.file.parse::<u64>().unwrap()) == *file)
}

/// Loads the rules of a case. `None`: they are refused, as expected.
fn rules_of(case: &Value) -> Option<Rules> {
    let name = &case["name"];
    match load(case) {
        Ok(rules) => {
            assert!(case.get("error").is_none(), "{name}: loads");
            Some(rules)
        }
        Err(problems) => {
            let errors: Vec<_> = (case.get("error").into_iter())
                .chain(case["or_error"].as_array().into_iter().flatten())
                .collect();
            let problem = problems.first().unwrap();
            assert!(
                errors.iter().any(|error| is_expected(problem, error)),
                "{name}: {problem}, not {errors:?}"
            );
            None
        }
    }
}

type Entries = Vec<(String, String)>;

fn entries(descriptor: &Value) -> Entries {
    let pairs = descriptor["entries"].as_array().unwrap().iter();
    pairs
        .map(|pair| {
            (
                pair[0].as_str().unwrap().to_owned(),
                pair[1].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

fn borrowed(entries: &Entries) -> Vec<Entry<'_>> {
    (entries.iter())
        .map(|(key, value)| Entry {
            key,
            value: Some(value.as_bytes()),
        })
        .collect()
}

fn check_limit(name: &Value, limit: &Limit, rule_name: Option<&str>, expected: &Value) {
    match limit {
        Limit::Unlimited => assert!(
            expected["unlimited"] == true || *expected == json!("unlimited"),
            "{name}: {expected}"
        ),
        Limit::Counted(counted) => {
            let rate = counted.rate;
            assert_eq!(
                json!(rate.amount().floor()),
                expected["requests_per_unit"],
                "{name}"
            );
            assert_eq!(rule_name, expected["name"].as_str(), "{name}");
            let unit = expected["unit"].as_str().unwrap();
            let text = format!("{}/{unit}", rate.amount());
            if !["month", "year"].contains(&unit) {
                assert_eq!(rate, text.parse().unwrap(), "{name}");
            }
        }
    }
}

fn check_find(case: &Value, rules: &Rules) {
    let name = &case["name"];
    for op in case["ops"].as_array().into_iter().flatten() {
        let request = &op["request"];
        let domain = request["domain"].as_str().unwrap_or_default();
        let Some(statuses) = op["expect"]["statuses"].as_array() else {
            continue;
        };
        let owned: Vec<_> = request["descriptors"]
            .as_array()
            .unwrap()
            .iter()
            .map(entries)
            .collect();
        let descriptors: Vec<_> = owned.iter().map(borrowed).collect();
        let found = descriptors.iter().map(|it| rules.find(domain, it));
        let found: Vec<_> = found.collect();
        let replaced = found.iter().flatten().flat_map(|rule| &rule.replaces);
        let replaced: Vec<_> = replaced.map(String::as_str).collect();
        assert_eq!(found.len(), statuses.len(), "{name}");
        for (rule, expected) in found.iter().zip(statuses) {
            let Some(rule) = rule else {
                assert_eq!(expected["rule"], Value::Null, "{name}");
                continue;
            };
            assert_eq!(json!(rule.path), expected["rule"], "{name}");
            let name_of = rule.name.as_deref().filter(|_| rule.counted().is_some());
            let is_replaced = name_of.is_some_and(|name| replaced.contains(&name));
            assert_eq!(is_replaced, expected["replaced"] == true, "{name}");
            assert_eq!(rule.shadow, expected["shadow"] == true, "{name}");
            check_limit(name, &rule.limit, rule.name.as_deref(), &expected["limit"]);
            if let Some(metric) = expected["metric"].as_str() {
                let is_same = rule.path == metric;
                assert!(is_same || rule.detailed_metric, "{name}: {metric}");
            }
        }
    }
}

#[test]
fn documents_load_or_are_refused() {
    for case in cases("config.json") {
        if let Some(rules) = rules_of(&case) {
            check_find(&case, &rules);
        }
    }
}

#[test]
fn descriptors_find_their_rules() {
    let mut refused = 0;
    for case in cases("match.json") {
        // A request has no limit of its own here.
        if case["needs"] == json!(["override"]) {
            continue;
        }
        match rules_of(&case) {
            Some(rules) => check_find(&case, &rules),
            None => {
                refused += 1;
                let text = texts(&case).concat();
                assert!(
                    LACKED.iter().any(|field| text.contains(field)),
                    "{}",
                    case["name"]
                );
            }
        }
    }
    assert_eq!(refused, 2, "for fields that the crate lacks");
}

/// Units as the vectors write them: those of an unlimited rule are the largest of 32 bits.
fn check_status(name: &Value, status: &Status, expected: &Value) {
    let code = if status.is_over { "OVER_LIMIT" } else { "OK" };
    assert_eq!(code, expected["code"], "{name}");
    let remaining = status.remaining().min(u64::from(u32::MAX));
    assert_eq!(json!(remaining), expected["remaining"], "{name}");
    if let Some(reset) = expected["reset_s"].as_u64() {
        let nanos = status.reset().unwrap().as_nanos();
        assert_eq!(nanos.div_ceil(1_000_000_000), reset.into(), "{name}");
    }
    if let Some(rule) = expected.get("rule") {
        let path = status.rule.as_ref().map(|rule| &rule.path);
        assert_eq!(json!(path), *rule, "{name}");
    }
}

#[test]
fn requests_are_decided_as_the_vectors_say() {
    let (mut decided, mut lacking) = (0, 0);
    for mut case in cases("decide.json") {
        // A request has no limit of its own here.
        if case["needs"] == json!(["override"]) {
            continue;
        }
        if case["count"] == "attempts" {
            let text = format!("{}\ncount: attempts\n", case["config"].as_str().unwrap());
            case["config"] = json!(text);
        }
        match rules_of(&case) {
            Some(rules) => {
                check_decisions(&case, rules);
                decided += 1;
            }
            None => lacking += 1,
        }
    }
    assert_eq!(lacking, 1, "for quota_mode");
    assert!(decided >= 21, "only {decided} cases");
}

fn check_decisions(case: &Value, rules: Rules) {
    let name = &case["name"];
    let limiter = Limiter::new(rules, 1000, [1, 2]);
    for op in case["ops"].as_array().unwrap() {
        let (request, expected) = (&op["request"], &op["expect"]);
        // The front answers requests in error: those without a domain, or without descriptors.
        let Some(statuses) = expected["statuses"].as_array() else {
            assert!(expected.get("error").is_some(), "{name}");
            continue;
        };
        let owned = request["descriptors"].as_array().unwrap();
        let all: Vec<_> = owned.iter().map(entries).collect();
        let all: Vec<_> = all.iter().map(borrowed).collect();
        let descriptors: Vec<_> = (owned.iter().zip(&all))
            .map(|(descriptor, entries)| Descriptor {
                entries,
                hits: descriptor["hits_addend"].as_u64(),
            })
            .collect();
        let hits = request["hits_addend"].as_u64().filter(|hits| *hits > 0);
        let now = Moment::from_nanos(op["t_ns"].as_i64().unwrap());
        let domain = request["domain"].as_str().unwrap();
        let decision = limiter.decide(domain, &descriptors, hits, now);
        let code = if decision.is_allowed {
            "OK"
        } else {
            "OVER_LIMIT"
        };
        assert_eq!(code, expected["code"], "{name}");
        let is_over = matches!(decision.why, Why::Over | Why::CostAboveLimit);
        assert_ne!(decision.is_allowed, is_over, "{name}: {decision:?}");
        for (status, expected) in decision.statuses.iter().zip(statuses) {
            check_status(name, status, expected);
        }
    }
}
