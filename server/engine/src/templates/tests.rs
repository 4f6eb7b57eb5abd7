//! Templates: the problems of each field, and the template that a resource takes.

use super::*;
use crate::id::ResourceId;
use crate::templates::Templates;

/// A valid template.
fn spec(glob: &str) -> TemplateSpec {
    TemplateSpec {
        identifier_glob: Some(glob.to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        ..TemplateSpec::default()
    }
}

fn parameter(name: &str, value: &str) -> Vec<(String, Option<String>)> {
    vec![(name.to_owned(), Some(value.to_owned()))]
}

/// Checks the problems of some templates, as text.
#[track_caller]
fn check(specs: &[TemplateSpec], expected: &[&str]) {
    let problems = Templates::parse(specs).expect_err("there are problems");
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, expected);
}

#[test]
fn an_absent_field_has_its_default() {
    let templates = Templates::parse(&[spec("*")]).unwrap();
    let template = templates.find(&ResourceId::new("x").unwrap()).unwrap();
    let algorithm = &template.algorithm;
    assert_eq!(algorithm.learning_mode_duration, algorithm.lease_length);
    assert_eq!(algorithm.shrink, Shrink::Acknowledged);
    assert_eq!(algorithm.decay_factor, 0.5);
    assert_eq!(
        (template.safe_capacity, template.description.as_str()),
        (None, "")
    );
    assert!(Templates::parse(&[]).unwrap().is_empty());
}

#[test]
fn all_missing_fields_are_reported_at_once() {
    check(
        &[TemplateSpec::default()],
        &[
            "template 1: identifier_glob: is missing; give a resource id or a glob",
            "template 1: capacity: is missing; give what there is to share",
            "template 1: algorithm.kind: is missing; give one of NO_ALGORITHM, STATIC, \
             PROPORTIONAL_SHARE, FAIR_SHARE, PRIORITY_BANDS, BUDGET",
            "template 1: algorithm.lease_length: is missing; give seconds, or a duration such as \
             15s or 2m",
            "template 1: algorithm.refresh_interval: is missing; give seconds, or a duration such \
             as 15s or 2m",
        ],
    );
}

#[test]
fn numbers_that_are_no_amounts_are_refused() {
    for (capacity, expected) in [
        (
            f64::NAN,
            "is not a number; give a finite number that is not negative",
        ),
        (
            -1.0,
            "is -1, which is negative; give a finite number that is not negative",
        ),
        (
            f64::INFINITY,
            "is inf, which is above the largest amount, 1000000000000000",
        ),
        (
            1e16,
            "is 10000000000000000, which is above the largest amount, 1000000000000000",
        ),
    ] {
        let of = |field| format!("template 1: {field}: {expected}");
        check(
            &[TemplateSpec {
                capacity: Some(capacity),
                ..spec("a")
            }],
            &[&of("capacity")],
        );
        if capacity != -1.0 {
            let safe = TemplateSpec {
                safe_capacity: Some(capacity),
                ..spec("a")
            };
            check(&[safe], &[&(of("safe_capacity") + " (-1 means no limit)")]);
        }
    }
}

#[test]
fn a_safe_capacity_of_minus_one_is_no_limit() {
    for (given, expected) in [
        (-1.0, SafeCapacity::Unlimited),
        (0.0, SafeCapacity::Limited(Amount::ZERO)),
        (7.0, SafeCapacity::Limited(Amount::new(7.0).unwrap())),
    ] {
        let safe = TemplateSpec {
            safe_capacity: Some(given),
            ..spec("a")
        };
        let templates = Templates::parse(&[safe]).unwrap();
        assert_eq!(
            templates.iter().next().unwrap().safe_capacity,
            Some(expected)
        );
    }
}

#[test]
fn a_lease_must_outlast_the_refresh_interval() {
    for refresh in [60, 61] {
        let refresh_interval = Some(Duration::from_secs(refresh));
        check(
            &[TemplateSpec {
                refresh_interval,
                ..spec("a")
            }],
            &[&format!(
                "template 1: algorithm.refresh_interval: is {refresh}s, not shorter than the lease \
                 length of 60s: every lease would expire before it is refreshed"
            )],
        );
    }
}

#[test]
fn durations_have_bounds() {
    let millisecond = Some(Duration::from_millis(1));
    let month = Some(Duration::from_secs(30 * 24 * 3600));
    check(
        &[
            TemplateSpec {
                refresh_interval: millisecond,
                ..spec("a")
            },
            TemplateSpec {
                lease_length: month,
                ..spec("b")
            },
            TemplateSpec {
                learning_mode_duration: month,
                ..spec("c")
            },
        ],
        &[
            "template 1: algorithm.refresh_interval: is 1ms; the shortest is 10ms",
            "template 2: algorithm.lease_length: is 2592000s; the longest is 604800s",
            "template 3: algorithm.learning_mode_duration: is 2592000s; the longest is 604800s",
        ],
    );
    let no_learning = TemplateSpec {
        learning_mode_duration: Some(Duration::ZERO),
        ..spec("a")
    };
    assert!(Templates::parse(&[no_learning]).is_ok());
}

#[test]
fn a_glob_must_parse_and_be_there_once_and_the_catch_all_come_last() {
    check(
        &[
            spec("*"),
            spec("a["),
            spec(""),
            spec("b"),
            spec("b"),
            spec(&"x".repeat(300)),
            spec("*"),
        ],
        &[
            "template 1: identifier_glob: the catch-all \"*\" must be the last template; no later \
             glob would be reached",
            "template 2: identifier_glob: the class that starts with '[' at character 2 is not \
             closed; add ']', or write '\\[' for the character itself",
            "template 3: identifier_glob: is empty; give a resource id or a glob",
            "template 5: identifier_glob: \"b\" is template 4 already; remove one",
            "template 6: identifier_glob: is 300 bytes long; the longest is 256",
            "template 7: identifier_glob: \"*\" is template 1 already; remove one",
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn named_parameters_are_checked() {
    let bands = AlgorithmKind::PriorityBands;
    #[track_caller]
    fn refused(kind: AlgorithmKind, parameters: &[(&str, &str)], number: usize, expected: &str) {
        let given = parameters
            .iter()
            .flat_map(|(name, value)| parameter(name, value));
        let spec = TemplateSpec {
            kind: Some(kind),
            parameters: given.collect(),
            ..spec("a")
        };
        let place = format!("template 1: algorithm.parameters[{number}]: ");
        check(&[spec], &[&(place + expected)]);
    }
    for (name, value, expected) in [
        (
            "shrink",
            "now",
            "shrink is \"now\"; give acknowledged or immediate",
        ),
        (
            "decay_factor",
            "0",
            "decay_factor is \"0\"; give a number from 0.01 to 100",
        ),
        (
            "shirnk",
            "immediate",
            "\"shirnk\" is unknown; known are shrink, decay_factor and min_share.<priority>",
        ),
        (
            "min_share.1",
            "1.5",
            "min_share.1 is \"1.5\"; give a number from 0 to 1",
        ),
        (
            "min_share.1",
            "NaN",
            "min_share.1 is \"NaN\"; give a number from 0 to 1",
        ),
    ] {
        refused(bands, &[(name, value)], 0, expected);
    }
    for priority in [
        "high",
        "9223372036854775808",
        "-9223372036854775809",
        "",
        "1.5",
    ] {
        let name = format!("min_share.{priority}");
        let expected = format!("{priority:?} is not a priority; give a whole number of 64 bits");
        refused(bands, &[(&name, "0.5")], 0, &expected);
    }
    for (first, second, expected) in [
        (
            ("shrink", "immediate"),
            ("shrink", "immediate"),
            "shrink is given twice; remove one",
        ),
        (
            ("min_share.0", "0.6"),
            ("min_share.1", "0.6"),
            "the min_share parameters add up to 1.2; at most 1",
        ),
        (
            ("min_share.1", "0.1"),
            ("min_share.+1", "0.1"),
            "min_share.+1 is given twice; remove one",
        ),
    ] {
        refused(bands, &[first, second], 1, expected);
    }
    let fair = AlgorithmKind::FairShare;
    let expected = "only PRIORITY_BANDS takes min_share.0; remove it";
    refused(fair, &[("min_share.0", "0.5")], 0, expected);
    let without_a_value = TemplateSpec {
        parameters: vec![("shrink".to_owned(), None)],
        ..spec("a")
    };
    let expected = "shrink is \"\"; give acknowledged or immediate";
    check(
        &[without_a_value],
        &[&format!("template 1: algorithm.parameters[0]: {expected}")],
    );
}

#[test]
fn one_bad_field_hides_no_other() {
    let bad = TemplateSpec {
        identifier_glob: Some("a[".to_owned()),
        capacity: Some(f64::NEG_INFINITY),
        safe_capacity: Some(-2.0),
        kind: None,
        lease_length: Some(Duration::ZERO),
        refresh_interval: Some(Duration::ZERO),
        learning_mode_duration: Some(DURATION_MAX + Duration::from_nanos(1)),
        parameters: [parameter("shrink", "now"), parameter("decay_factor", "NaN")].concat(),
        ..TemplateSpec::default()
    };
    let problems = Templates::parse(&[spec("fine"), bad]).unwrap_err();
    let fields: Vec<(usize, Field)> = problems.iter().map(|p| (p.index, p.field)).collect();
    let expected = [
        Field::IdentifierGlob,
        Field::Capacity,
        Field::SafeCapacity,
        Field::Kind,
        Field::LeaseLength,
        Field::RefreshInterval,
        Field::LearningModeDuration,
        Field::Parameter(0),
        Field::Parameter(1),
    ];
    assert_eq!(fields, expected.map(|field| (1, field)));
}

#[test]
fn the_number_of_templates_is_limited() {
    let mut specs: Vec<TemplateSpec> = (0..TEMPLATES_MAX).map(|i| spec(&i.to_string())).collect();
    assert_eq!(Templates::parse(&specs).unwrap().len(), TEMPLATES_MAX);
    specs.push(spec("one more"));
    check(
        &specs,
        &["template 10001: identifier_glob: there are 10001 templates; at most 10000"],
    );
}

#[test]
fn many_parameters_are_checked_quickly() {
    let parameters = (0..100_000).flat_map(|i| parameter(&format!("unknown {i}"), ""));
    let spec = TemplateSpec {
        parameters: parameters.collect(),
        ..spec("a")
    };
    assert_eq!(Templates::parse(&[spec]).unwrap_err().len(), 100_000);
}

#[test]
fn guarantees_may_be_for_any_priority() {
    let parameters = [
        parameter(&format!("min_share.{}", i64::MIN), "0.3"),
        parameter(&format!("min_share.{}", i64::MAX), "0.7"),
    ]
    .concat();
    let bands = TemplateSpec {
        kind: Some(AlgorithmKind::PriorityBands),
        parameters,
        ..spec("a")
    };
    let templates = Templates::parse(&[bands]).unwrap();
    let min_shares = &templates.iter().next().unwrap().algorithm.min_shares;
    assert_eq!(
        min_shares.keys().copied().collect::<Vec<_>>(),
        [i64::MIN, i64::MAX]
    );
}

#[test]
fn a_resource_takes_the_exact_template_then_the_first_glob_that_matches() {
    let globs = ["db/*", "db/orders", "db/[o-z]*", "[x]", "api/?", "*"];
    let templates = Templates::parse(&globs.map(spec)).unwrap();
    for (resource, expected) in [
        ("db/orders", Some("db/orders")),
        ("db/users", Some("db/*")),
        // The text of a glob is also the exact id of a resource.
        ("[x]", Some("[x]")),
        ("x", Some("[x]")),
        ("api/1", Some("api/?")),
        ("api", Some("*")),
        ("api/12", None),
        ("a/b/c", None),
    ] {
        let found = templates.find(&ResourceId::new(resource).unwrap());
        let found = found.map(|template| template.identifier_glob.as_str());
        assert_eq!(found, expected, "{resource}");
    }
}
