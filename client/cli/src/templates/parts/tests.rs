//! Two documents, and the lines that say how they differ.

use super::*;
use crate::documents::parts::changes;

fn templates(list: &[(&str, &str)]) -> Templates {
    let mut text = String::from("resources:\n");
    for (glob, rest) in list {
        let rest = match *rest {
            "" => {
                "capacity: 100, algorithm: {kind: FAIR_SHARE, lease_length: 60, \
                       refresh_interval: 5}"
            }
            rest => rest,
        };
        text += &format!("- {{identifier_glob: {glob:?}, {rest}}}\n");
    }
    if list.is_empty() {
        text = "resources: []".to_owned();
    }
    doorward_documents::parse_yaml(&text, "test").unwrap()
}

#[track_caller]
fn check(old: &[(&str, &str)], new: &[(&str, &str)], expected: &[&str]) {
    let lines = changes(&of(&templates(old)), &of(&templates(new)), true);
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected);
}

#[test]
fn what_means_the_same_has_no_lines() {
    check(&[], &[], &[]);
    check(&[("a", ""), ("b", "")], &[("a", ""), ("b", "")], &[]);
}

#[test]
fn templates_come_and_go() {
    check(
        &[("a", "")],
        &[("b", "")],
        &[
            "- \"a\" removed: kind FAIR_SHARE, capacity 100, lease_length 1m, refresh_interval 5s",
            "+ \"b\" added at place 1: kind FAIR_SHARE, capacity 100, lease_length 1m, \
                 refresh_interval 5s",
        ],
    );
}

#[test]
fn every_field_that_differs_is_reported() {
    check(
        &[("a", "")],
        &[(
            "a",
            "capacity: 100.0000001, safe_capacity: -1, wants_max: 20, subclients_max: 500, description: new, algorithm: {kind: \
                 PRIORITY_BANDS, lease_length: 30, refresh_interval: 2.5, parameters: [{name: \
                 min_share.3, value: '0.5'}, {name: shrink, value: immediate}, {name: \
                 decay_factor, value: '1'}]}",
        )],
        &[
            "~ \"a\" kind FAIR_SHARE → PRIORITY_BANDS; capacity 100 → 100.0000001; safe_capacity dynamic → unlimited; \
                 wants_max none → 20; subclients_max none → 500; lease_length 1m → 30s; refresh_interval 5s → 2s \
                 500ms; learning_mode_duration 1m → 30s; description \"\" → \"new\"; shrink acknowledged → immediate; \
                 decay_factor 0.5 → 1; min_share.3 none → 0.5",
        ],
    );
}

#[test]
fn a_move_is_one_move() {
    check(
        &[("db/*", ""), ("db/orders*", ""), ("x", ""), ("*", "")],
        &[("db/orders*", ""), ("db/*", ""), ("x", ""), ("*", "")],
        &["~ \"db/orders*\" moved from place 2 to 1"],
    );
}

#[test]
fn what_comes_between_moves_nothing() {
    check(
        &[("db/*/reads", ""), ("*", "")],
        &[("db/eu/*", ""), ("db/*/reads", ""), ("*", "")],
        &[
            "+ \"db/eu/*\" added at place 1: kind FAIR_SHARE, capacity 100, lease_length 1m, \
                 refresh_interval 5s",
        ],
    );
}
