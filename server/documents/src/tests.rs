//! Valid documents, and every way in which one is invalid.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{AlgorithmKind, SafeCapacity, Shrink, Template};
use doorward_yaml::DEPTH_MAX;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let error = parse_yaml(text, "t.yaml").expect_err("there are problems");
    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        expected,
        "in:\n{text}"
    );
}

#[track_caller]
fn only(text: &str) -> Template {
    let templates = parse_yaml(text, "t.yaml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(templates.len(), 1);
    templates.iter().next().unwrap().as_ref().clone()
}

#[test]
fn the_built_in_examples_are_in_order() {
    let templates = built_in().unwrap();
    let kinds: Vec<AlgorithmKind> = templates.iter().map(|t| t.algorithm.kind).collect();
    for kind in AlgorithmKind::ALL {
        assert!(kinds.contains(&kind), "{kind} has an example");
    }
    assert!(
        templates
            .find(&ResourceId::new("anything").unwrap())
            .is_some()
    );
}

#[test]
fn doormans_own_format_and_what_is_added_to_it_is_read() {
    let template = only(
        "resources:
- identifier_glob: \"proportional\"
  capacity: 5000
  safe_capacity: -1
  wants_max: 70.5
  subclients_max: 500
  share_floor: 2.5
  description: proportional sharing resource
  algorithm:
    kind: PROPORTIONAL_SHARE
    lease_length: 60
    refresh_interval: 16
    learning_mode_duration: 30
    parameters:
    - name: shrink
      value: immediate
",
    );
    assert_eq!(template.identifier_glob, "proportional");
    assert_eq!(template.capacity.get(), 5000.0);
    assert_eq!(template.safe_capacity, Some(SafeCapacity::Unlimited));
    let bounds = template.holder_bounds;
    assert_eq!(bounds.wants_max.map(Amount::get), Some(70.5));
    assert_eq!(bounds.subclients_max.map(Subclients::get), Some(500.0));
    assert_eq!(template.share_floor.map(Amount::get), Some(2.5));
    let algorithm = template.algorithm;
    assert_eq!(algorithm.kind, AlgorithmKind::ProportionalShare);
    assert_eq!(algorithm.lease_length, Duration::from_secs(60));
    assert_eq!(algorithm.refresh_interval, Duration::from_secs(16));
    assert_eq!(algorithm.learning_mode_duration, Duration::from_secs(30));
    assert_eq!(algorithm.shrink, Shrink::Immediate);
}

#[test]
fn durations_are_seconds_or_written_out_and_kinds_names_or_numbers() {
    let template = only(
        "resources: [{identifier_glob: a, capacity: 1.5, algorithm: {kind: 101, lease_length: 1m \
         30s, refresh_interval: 0.5, learning_mode_duration: 250ms, parameters: [{name: \
         min_share.7, value: 0.25}]}}]",
    );
    let algorithm = template.algorithm;
    assert_eq!(algorithm.kind, AlgorithmKind::PriorityBands);
    assert_eq!(algorithm.lease_length, Duration::from_secs(90));
    assert_eq!(algorithm.refresh_interval, Duration::from_millis(500));
    assert_eq!(algorithm.learning_mode_duration, Duration::from_millis(250));
    assert_eq!(algorithm.min_shares.get(&7), Some(&0.25));
}

#[test]
fn anchors_are_understood() {
    let text = "resources:
- identifier_glob: a
  capacity: 1
  algorithm: &fair {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}
- identifier_glob: b
  capacity: 2
  algorithm: *fair
";
    assert_eq!(parse_yaml(text, "t.yaml").unwrap().len(), 2);
}

#[test]
fn every_problem_is_found_at_once_and_said_where_it_is() {
    check(
        "resources:
- identifier_glob: db/*
  capacity: lots
  capcity: 3
  algorithm:
    kind: fair_share
    lease_length: soon
    refresh_interval: 5
- identifier_glob: [a
  , b]
  capacity: .nan
  algorithm: {kind: STATIC, lease_length: 10, refresh_interval: 20}
- just text
- identifier_glob: \"*\"
  capacity: -1
- identifier_glob: \"x[\"
  capacity: 1
  safe_capacity: -2
  wants_max: 0
  subclients_max: 1.5
  share_floor: 0
  algorithm:
    kind: FAIR_SHARE
    lease_length: 60
    refresh_interval: 5
    parameters:
    - {name: shirnk, value: immediate}
    - {value: 3}
    - 7
",
        &[
            "t.yaml:3:13: template 1 (\"db/*\"): capacity: is \"lots\"; give a number",
            "t.yaml:4:3: template 1 (\"db/*\"): capcity: is unknown; did you mean capacity?",
            "t.yaml:6:11: template 1 (\"db/*\"): algorithm.kind: is \"fair_share\"; give one of \
             NO_ALGORITHM, STATIC, PROPORTIONAL_SHARE, FAIR_SHARE, PRIORITY_BANDS, BUDGET; did you mean \
             FAIR_SHARE?",
            "t.yaml:7:19: template 1 (\"db/*\"): algorithm.lease_length: is \"soon\"; give \
             seconds, or a duration such as 15s or 2m",
            "t.yaml:9:20: template 2: identifier_glob: is a list; give a text",
            "t.yaml:11:13: template 2: capacity: is not a number; give a finite number that is not \
             negative",
            "t.yaml:12:65: template 2: algorithm.refresh_interval: is 20s, not shorter than the \
             lease length of 10s: every lease would expire before it is refreshed",
            "t.yaml:13:3: template 3: is \"just text\"; give a map of fields",
            "t.yaml:14:3: template 4 (\"*\"): algorithm: is missing; say how the capacity is shared",
            "t.yaml:14:20: template 4 (\"*\"): identifier_glob: the catch-all \"*\" must be the \
             last template; no later glob would be reached",
            "t.yaml:15:13: template 4 (\"*\"): capacity: is -1, which is negative; give a finite \
             number that is not negative",
            "t.yaml:16:20: template 5 (\"x[\"): identifier_glob: the class that starts with '[' at \
             character 2 is not closed; add ']', or write '\\[' for the character itself",
            "t.yaml:18:18: template 5 (\"x[\"): safe_capacity: is -2, which is negative; give a \
             finite number that is not negative (-1 means no limit)",
            "t.yaml:19:14: template 5 (\"x[\"): wants_max: is 0, so nobody could have anything; give what \
             one client can have at most, or remove it",
            "t.yaml:20:19: template 5 (\"x[\"): subclients_max: is 1.5; give a whole number of clients \
             from 1 to 1000000000000",
            "t.yaml:21:16: template 5 (\"x[\"): share_floor: is 0, so no share is below it; give what one \
             client needs at least, or remove it",
            "t.yaml:27:7: template 5 (\"x[\"): algorithm.parameters: \"shirnk\" is unknown; known \
             are shrink, decay_factor and min_share.<priority>",
            "t.yaml:28:7: template 5 (\"x[\"): algorithm.parameters: one has no name; give {name: \
             …, value: …}",
            "t.yaml:29:7: template 5 (\"x[\"): algorithm.parameters: one is 7; give {name: …, \
             value: …}",
        ],
    );
}

#[test]
fn a_document_that_is_no_list_of_templates_is_refused() {
    let expected = "a document starts with \"resources:\" and a list of templates";
    for (text, problem) in [
        ("", format!("t.yaml:1:1: is empty; {expected}")),
        ("# nothing\n", format!("t.yaml:1:1: is empty; {expected}")),
        (
            "just text",
            format!("t.yaml:1:1: is \"just text\"; {expected}"),
        ),
        (
            "{}",
            format!("t.yaml:1:1: has no \"resources\"; {expected}"),
        ),
        (
            "resources: 3",
            "t.yaml:1:12: resources: is 3; give a list of templates".to_owned(),
        ),
        (
            "resources:",
            "t.yaml:1:10: resources: is nothing; give a list of templates".to_owned(),
        ),
    ] {
        check(text, &[&problem]);
    }
    assert!(parse_yaml("resources: []", "t.yaml").unwrap().is_empty());
}

#[test]
fn invalid_yaml_is_refused_with_its_place() {
    for (text, place) in [
        ("{{{", "1:3"),
        ("resources:\n- identifier_glob: a\n capacity: 1\n", "3:2"),
        ("resources:\n\t- a\n", "2:2"),
        ("resources: *nobody\n", "1:12"),
        ("res\0ources: []\n", "1:4"),
        ("\u{1}\u{7f}", "1:1"),
    ] {
        let error = parse_yaml(text, "t.yaml").unwrap_err().to_string();
        let start = format!("t.yaml:{place}: is no YAML: ");
        assert!(error.starts_with(&start), "{text:?}: {error}");
        // One problem, with its place said once.
        assert!(
            !error.contains('\n') && !error.contains(" line "),
            "{error}"
        );
    }
}

#[test]
fn aliases_of_aliases_are_refused_before_they_are_memory() {
    let text = (1..8).fold("l0: &a0 [x]\n".to_owned(), |text, level| {
        let below = [&*format!("*a{}", level - 1); 10].join(", ");
        format!("{text}l{level}: &a{level} [{below}]\n")
    });
    let error = parse_yaml(&text, "t.yaml").unwrap_err().to_string();
    assert!(error.contains("aliases repeat too much"), "{error}");
}

#[test]
fn a_second_document_is_refused() {
    check(
        "resources: []\n---\nresources: []\n",
        &["t.yaml:3:1: a second document starts here; put everything into one"],
    );
    for text in ["---\nresources: []\n", "resources: []\n...\n"] {
        assert!(parse_yaml(text, "t.yaml").is_ok(), "{text:?}");
    }
}

#[test]
fn a_glob_whose_star_lacks_quotes_is_refused_with_that_advice() {
    for star in ["*", "*.example"] {
        let text = format!("resources:\n- identifier_glob: {star}\n  capacity: 1\n");
        let error = parse_yaml(&text, "t.yaml").unwrap_err().to_string();
        assert!(
            error.ends_with("; a text that starts with '*' needs quotes"),
            "{error}"
        );
    }
}

#[test]
fn a_key_given_twice_hides_nothing_else() {
    check(
        "resources:
- identifier_glob: a
  capacity: 1
  capacity: 2
  algorithm:
    kind: BAD
    lease_length: 60
    refresh_interval: 5
    lease_length: 61
    parameters: [{name: shrink, value: immediate, name: decay_factor}]
resources: []
",
        &[
            "t.yaml:4:3: template 1 (\"a\"): capacity: is given twice; remove one",
            "t.yaml:6:11: template 1 (\"a\"): algorithm.kind: is \"BAD\"; give one of \
             NO_ALGORITHM, STATIC, PROPORTIONAL_SHARE, FAIR_SHARE, PRIORITY_BANDS, BUDGET",
            "t.yaml:9:5: template 1 (\"a\"): algorithm.lease_length: is given twice; remove one",
            "t.yaml:10:51: template 1 (\"a\"): algorithm.parameters.name: is given twice; remove \
             one",
            "t.yaml:11:1: resources: is given twice; remove one",
        ],
    );
}

#[test]
fn a_key_from_a_merge_does_not_count_as_repeated() {
    let text = "resources:
- &first
  identifier_glob: a
  capacity: 1
  algorithm: &static {kind: STATIC, lease_length: 60, refresh_interval: 5}
- <<: *first
  identifier_glob: b
  algorithm: {kind: FAIR_SHARE, <<: *static}
";
    let templates = parse_yaml(text, "t.yaml").unwrap_or_else(|error| panic!("{error}"));
    let found: Vec<_> = templates
        .iter()
        .map(|t| (t.identifier_glob.as_str(), t.algorithm.kind))
        .collect();
    assert_eq!(
        found,
        [
            ("a", AlgorithmKind::Static),
            ("b", AlgorithmKind::FairShare)
        ]
    );
}

#[test]
fn a_glob_that_yaml_takes_for_something_else_must_be_quoted() {
    let of = |glob: &str| {
        format!(
            "resources: [{{identifier_glob: {glob}, capacity: 1, algorithm: {{kind: STATIC, \
             lease_length: 60, refresh_interval: 5}}}}]"
        )
    };
    for (glob, expected) in [
        ("1.10", "is the number 1.1"),
        ("007", "is the number 7"),
        ("0x1F", "is the number 31"),
        ("1e3", "is the number 1000"),
        (".inf", "is the number inf"),
        ("yes", "is the truth value true"),
    ] {
        let expected =
            format!("t.yaml:1:31: template 1: identifier_glob: {expected}; put a text in quotes");
        check(&of(glob), &[&expected]);
        assert_eq!(only(&of(&format!("\"{glob}\""))).identifier_glob, glob);
    }
    check(
        &of("~"),
        &["t.yaml:1:31: template 1: identifier_glob: is missing; give a resource id or a glob"],
    );
}

#[test]
fn the_place_of_too_large_guarantees_is_that_of_the_last() {
    check(
        "resources:
- identifier_glob: a
  capacity: 1
  algorithm:
    kind: PRIORITY_BANDS
    lease_length: 60
    refresh_interval: 5
    parameters:
    - {name: shrink, value: immediate}
    - {name: min_share.1, value: 0.5}
    - {name: min_share.2, value: 0.75}
",
        &[
            "t.yaml:11:7: template 1 (\"a\"): algorithm.parameters: the min_share parameters add \
           up to 1.25; at most 1",
        ],
    );
}

#[test]
fn durations_that_are_none_are_refused() {
    for (written, described) in [
        ("-1", "-1"),
        (".nan", "NaN"),
        (".inf", "inf"),
        ("1e300", "1e300"),
        ("true", "true"),
        ("\"60\"", "\"60\""),
        ("[60]", "a list"),
    ] {
        let text = format!(
            "resources: [{{identifier_glob: a, capacity: 1, algorithm: {{lease_length: {written}, \
             kind: STATIC, refresh_interval: 5}}}}]"
        );
        let expected = format!(
            "t.yaml:1:73: template 1 (\"a\"): algorithm.lease_length: is {described}; give \
             seconds, or a duration such as 15s or 2m"
        );
        check(&text, &[&expected]);
    }
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    for text in [
        BUILT_IN.replace('\n', "\r\n"),
        format!("\u{feff}{BUILT_IN}"),
    ] {
        assert_eq!(
            parse_yaml(&text, "t.yaml").unwrap().len(),
            built_in().unwrap().len()
        );
    }
}

#[test]
fn many_and_long_problems_are_cut_when_shown() {
    let long = "x".repeat(100_000);
    let text = format!(
        "resources:\n- identifier_glob: {long}\n{}",
        "- {}\n".repeat(2000)
    );
    let error = parse_yaml(&text, "t.yaml").unwrap_err();
    // Three for each template, and one more: the long glob is too long.
    assert_eq!(error.problems.len(), 3 * 2000 + 3);
    let shown = error.to_string();
    assert_eq!(shown.lines().count(), PROBLEMS_SHOWN_MAX + 1);
    assert!(shown.ends_with("\nt.yaml: and 5003 more problems"));
    assert!(shown.lines().all(|line| line.len() < 200));
}

/// Lists in one another.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn a_document_that_nests_too_deeply_is_refused_before_the_stack_overflows() {
    let no_map =
        "t.yaml:1:1: is a list; a document starts with \"resources:\" and a list of templates";
    check(&nested(DEPTH_MAX), &[no_map]);
    let too_deep =
        "t.yaml:1:33: is in more than the 32 maps and lists in one another that there may be";
    for levels in [DEPTH_MAX + 1, 100, 200] {
        check(&nested(levels), &[too_deep]);
    }
}

#[test]
fn hostile_documents_are_refused_in_no_time() {
    let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
        let before = i - 1;
        text + &format!("a{i}: &a{i} [*a{before}, *a{before}, *a{before}, *a{before}]\n")
    });
    let parameters: String = (0..50_000).map(|i| format!("{{name: {i}}},")).collect();
    for text in [
        bomb,
        "[".repeat(500_000),
        nested(1_000),
        format!("resources: [{{algorithm: {{parameters: [{parameters}]}}}}]"),
        format!("resources:\n{}", "- {}\n".repeat(200_000)),
    ] {
        assert!(parse_yaml(&text, "t.yaml").is_err());
    }
    let too_large = "t.yaml:1:1: is larger than the 1048576 bytes that a document may have";
    check(&"x".repeat(DOCUMENT_BYTES_MAX + 1), &[too_large]);
    // Cut off behind the limit, in the middle of a character.
    let cut = parse_bytes(
        &"☺".repeat(400_000).as_bytes()[..=DOCUMENT_BYTES_MAX],
        "t.yaml",
    );
    assert_eq!(cut.unwrap_err().to_string(), too_large);
    let error = parse_bytes(b"resources:\n- \xff\xfe\n", "t.yaml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.yaml:2:1: is not UTF-8 text; save it as UTF-8"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _whatever = parse_yaml(&text, "t.yaml");
    }

    #[test]
    fn no_text_that_is_nearly_a_document_makes_it_panic(
        text in "(resources:|\n- |  |identifier_glob|capacity|: |[a-z*\\[]|[0-9.]|\\{|\\}|,|&a|\\*a){0,60}",
    ) {
        let _whatever = parse_yaml(&text, "t.yaml");
    }
}
