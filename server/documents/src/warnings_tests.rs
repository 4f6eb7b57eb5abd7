//! Documents that say hardly what was meant, and those that only look so.

use super::*;

/// A document of `(glob, rest)`; an empty rest is 100, shared fairly, with leases of 60 s.
fn located(list: &[(&str, &str)]) -> Located {
    let mut text = String::from("resources:");
    for (glob, rest) in list {
        let rest = match *rest {
            "" => "capacity: 100",
            rest => rest,
        };
        let rest = match rest.contains("algorithm") {
            true => rest.to_owned(),
            false => format!("{rest}, {}", lengths("60", "5")),
        };
        text += &format!("\n- {{identifier_glob: {glob:?}, {rest}}}");
    }
    if list.is_empty() {
        text += " []";
    }
    crate::locate_bytes(text.as_bytes(), "test").unwrap()
}

fn lengths(lease: &str, refresh: &str) -> String {
    format!("algorithm: {{kind: FAIR_SHARE, lease_length: {lease}, refresh_interval: {refresh}}}")
}

fn used(resource: &str, clients: u64) -> ResourcePlan {
    let mut plan = ResourcePlan::default();
    plan.root.resource_id = resource.to_owned();
    plan.root.planned_algorithm = Some("FAIR_SHARE".to_owned());
    plan.root.capacity = 100.0;
    plan.root.granted = 10.0;
    plan.root.clients_count = clients;
    plan
}

type List<'a> = &'a [(&'a str, &'a str)];

fn found(old: Option<List<'_>>, new: List<'_>, in_use: &[ResourcePlan]) -> Vec<Warning> {
    let old = old.map(|old| located(old).templates);
    let before = InForceBefore {
        templates: old.as_ref(),
        in_use,
        ..InForceBefore::default()
    };
    warnings(&located(new), &before)
}

/// `!` before those that need force.
fn said(warnings: &[Warning]) -> Vec<String> {
    let list = warnings.iter();
    list.map(|warning| {
        let force = if warning.needs_force() { "!" } else { "" };
        format!("{force}{}", warning.problem)
    })
    .collect()
}

#[track_caller]
fn check(old: Option<List<'_>>, new: List<'_>, in_use: &[ResourcePlan], expected: &[&str]) {
    assert_eq!(said(&found(old, new, in_use)), expected);
}

#[test]
fn what_changes_little_is_not_warned_of() {
    check(None, &[("a", "")], &[], &[]);
    check(Some(&[]), &[("a", "")], &[], &[]);
    let old: List<'_> = &[("a", ""), ("db/*", "capacity: 100, safe_capacity: 20")];
    check(Some(old), old, &[used("db/x", 5), used("a", 900)], &[]);
    let longer = format!("capacity: 11, {}", lengths("599", "49"));
    check(Some(old), &[("a", &longer), old[1]], &[], &[]);
}

#[test]
fn lengths_of_ten_times_those_in_force_need_force_and_a_tenth_does_not() {
    let hour = format!("capacity: 100, {}", lengths("2h", "1h"));
    check(
        Some(&[("b", ""), ("a", "")]),
        &[("b", ""), ("a", &hour)],
        &[],
        &[
            "!template 2 (\"a\"): algorithm.lease_length: is 2h, 120 times the 1m in force: the lease \
             of a client that dies is lost for so long, and a restarted server learns for so long",
            "!template 2 (\"a\"): algorithm.refresh_interval: is 1h, 720 times the 5s in force: changes \
             take effect so much later",
        ],
    );
    let exactly = format!("capacity: 100, {}", lengths("600", "50"));
    let found = found(Some(&[("a", "")]), &[("a", &exactly)], &[]);
    assert_eq!(found.len(), 2);
    // The way back.
    check(
        Some(&[("a", &hour)]),
        &[("a", "")],
        &[],
        &[
            "template 1 (\"a\"): algorithm.lease_length: is 1m, a tenth of the 2h in force, or less: a \
             client that reaches no server for so long loses its lease",
            "template 1 (\"a\"): algorithm.refresh_interval: is 5s, a tenth of the 1h in force, or less: \
             servers get so many more requests",
        ],
    );
}

#[test]
fn learning_that_lasts_longer_is_reported_only_if_leases_do_not_explain_it() {
    let learns = "capacity: 100, algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, \
                  learning_mode_duration: 600}";
    check(
        Some(&[("a", "")]),
        &[("a", learns)],
        &[],
        &[
            "!template 1 (\"a\"): algorithm.learning_mode_duration: is 10m, 10 times the 1m in force: a \
             restarted server gives newcomers nothing for so long",
        ],
    );
    let none = learns.replace("600", "0");
    check(Some(&[("a", &none)]), &[("a", learns)], &[], &[]);
}

#[test]
fn lengths_are_compared_by_what_a_resource_in_use_takes_too() {
    let slow = format!("capacity: 100, {}", lengths("599", "200"));
    let mut moves = used("db/orders1", 1);
    moves.root.planned_template = Some("db/orders*".to_owned());
    check(
        Some(&[("db/*", ""), ("*", "")]),
        &[("db/orders*", &slow), ("db/*", ""), ("*", "")],
        &[moves],
        &[
            "!template 1 (\"db/orders*\"): algorithm.refresh_interval: is 3m 20s, 40 times the 5s that \
             db/orders1 has in force: changes take effect so much later",
        ],
    );
}

#[test]
fn a_safe_capacity_by_which_clients_use_too_much_needs_force() {
    let safe: List<'_> = &[("db/*", "capacity: 100, safe_capacity: 10")];
    let ten = [used("db/x", 3), used("db/y", 10)];
    let old: List<'_> = &[("db/*", "")];
    check(Some(old), safe, &ten, &[]);
    let eleven = [used("db/x", 3), used("db/y", 11), used("other", 100)];
    let expected = "template 1 (\"db/*\"): safe_capacity: is 10, and the 11 clients of db/y may use 110 \
                    of 100 together when no server answers; give less, or leave it out, for an equal part \
                    each";
    check(Some(old), safe, &eleven, &[&format!("!{expected}")]);
    // It was so before, and is no worse.
    check(Some(safe), safe, &eleven, &[expected]);
    let worse: List<'_> = &[("db/*", "capacity: 90, safe_capacity: 10")];
    assert!(
        found(Some(safe), worse, &eleven)
            .iter()
            .any(Warning::needs_force)
    );

    check(
        None,
        &[("db/*", "capacity: 100, safe_capacity: 101")],
        &[],
        &[
            "!template 1 (\"db/*\"): safe_capacity: is 101, more than the capacity of 100: a single client \
             may use more than there is when no server answers; give less, or leave it out, for an equal \
             part each",
        ],
    );
    let fine = "capacity: 100, safe_capacity: -1";
    check(None, &[("db/*", fine)], &eleven, &[]);
}

#[test]
fn a_capacity_of_ten_times_that_in_force_or_a_tenth_needs_force() {
    let capacity = |amount: &str| format!("capacity: {amount}");
    for (was, is, expected) in [
        (
            "100",
            "1",
            Some("is 1, 100 times less than the 100 in force"),
        ),
        (
            "100",
            "100000",
            Some("is 100000, 1000 times the 100 in force"),
        ),
        (
            "100",
            "10",
            Some("is 10, 10 times less than the 100 in force"),
        ),
        ("100", "10.1", None),
        ("100", "999", None),
        ("0", "100", None),
    ] {
        let expected = expected.map(|it| format!("!template 1 (\"a\"): capacity: {it}"));
        let expected: Vec<&str> = expected.as_deref().into_iter().collect();
        let (was, is) = (capacity(was), capacity(is));
        check(Some(&[("a", &was)]), &[("a", &is)], &[], &expected);
    }
}

#[test]
fn a_blank_field_counts_as_absent() {
    check(
        None,
        &[("a", "wants_max: , capacity: 100")],
        &[],
        &[
            "template 1 (\"a\"): wants_max: is blank, which counts as absent; give a value, or remove it",
        ],
    );
}

#[test]
fn a_capacity_of_zero_needs_force_unless_it_is_not_looked_at_or_in_force() {
    let zero: List<'_> = &[("db/*", "capacity: 0")];
    let expected =
        "template 1 (\"db/*\"): capacity: is 0: no client gets anything of its resources";
    check(Some(&[("db/*", "")]), zero, &[], &[&format!("!{expected}")]);
    check(None, zero, &[], &[&format!("!{expected}")]);
    check(Some(zero), zero, &[], &[expected]);
    // Elsewhere is not here.
    let both: List<'_> = &[zero[0], ("x", "capacity: 0")];
    assert!(
        found(Some(zero), both, &[])
            .iter()
            .any(Warning::needs_force)
    );
    let unlimited =
        "capacity: 0, algorithm: {kind: NO_ALGORITHM, lease_length: 60, refresh_interval: 5}";
    check(None, &[("db/*", unlimited)], &[], &[]);
}

#[test]
fn a_template_that_no_id_reaches_is_found_where_that_is_certain() {
    let taken = |number: usize, glob: &str, earlier: usize, taker: &str| {
        format!(
            "!template {number} ({glob:?}): identifier_glob: no id reaches it, unless it is spelt like \
             that: template {earlier} ({taker:?}) takes all that it matches; move this one before it, or \
             remove it"
        )
    };
    let all: List<'_> = &[
        ("db/*", ""),
        ("db/orders", ""),
        ("db/orders*", ""),
        ("db/*/x", ""),
        ("?*", ""),
        ("a*", ""),
        ("z[y]", ""),
        ("*", ""),
    ];
    let expected = [
        taken(3, "db/orders*", 1, "db/*"),
        taken(6, "a*", 5, "?*"),
        taken(7, "z[y]", 5, "?*"),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(None, all, &[], &expected);
    // "*" takes the empty text, which is no id, so nothing reaches it; but that is not proved.
    check(
        None,
        &[("z[y]", ""), ("zy", "")],
        &[],
        &[&taken(1, "z[y]", 2, "zy")],
    );
    check(
        None,
        &[("[ab]*", ""), ("a*", "")],
        &[],
        &[&taken(2, "a*", 1, "[ab]*")],
    );
    // Both together take all of it; that is not looked for.
    check(None, &[("a*", ""), ("b*", ""), ("[ab]*", "")], &[], &[]);
    check(
        None,
        &[("[z-a]", "")],
        &[],
        &[
            "!template 1 (\"[z-a]\"): identifier_glob: matches nothing: it has a class that takes no \
             character",
        ],
    );
}

#[test]
fn a_document_that_leaves_nothing_needs_force() {
    let nothing = "!resources: there are no templates: every request is refused, and leases that are out \
                   run down";
    check(Some(&[("a", "")]), &[], &[], &[nothing]);
    check(None, &[], &[], &[nothing]);
    check(Some(&[]), &[], &[], &[]);
    let others = "!resources: none of the templates in force is among them: requests for other resources are \
                  refused, and their leases run down";
    check(Some(&[("a", ""), ("b", "")]), &[("c", "")], &[], &[others]);
    check(Some(&[("a", ""), ("b", "")]), &[("b", "")], &[], &[]);
    check(
        Some(&[("db/a", ""), ("db/b*", "")]),
        &[("db/*", "")],
        &[],
        &[],
    );
}

#[test]
fn a_resource_in_use_that_no_template_matches_any_more_needs_force() {
    let unmatched = |resource: &str| {
        let mut plan = used(resource, 40);
        plan.root.planned_algorithm = None;
        plan
    };
    let old: List<'_> = &[("a", ""), ("shared/api/*", "")];
    for (new, in_use, expected) in [
        (
            &[("b", ""), ("shared/api/*", "")][..],
            &[unmatched("a")][..],
            "resources: no template matches a, which 40 clients hold: its leases run down, and \
             requests are refused; keep a template for \"a\"",
        ),
        (
            &[("a", ""), ("shared/*", "")],
            &[unmatched("shared/api/user=ann"), unmatched("shared/api/x")],
            "resources: no template matches shared/api/user=ann (and 1 more), which 40 clients \
             hold: its leases run down, and requests are refused; the * of \"shared/*\" matches no /: add \
             a template for \"shared/*/*\"",
        ),
    ] {
        check(Some(old), new, in_use, &[&format!("!{expected}")]);
    }
    check(Some(old), old, &[used("a", 40)], &[]);
}

#[test]
fn a_template_that_goes_needs_force_while_its_clients_are_not_known() {
    let old: List<'_> = &[("a", ""), ("db/*", "")];
    let said = |new: List<'_>, unknown| {
        let old = located(old).templates;
        let before = InForceBefore {
            templates: Some(&old),
            unknown,
            ..InForceBefore::default()
        };
        said(&warnings(&located(new), &before))
    };
    let gone = Some("eu is gone: its clients are not known");
    let expected = "!resources: the template \"db/*\" goes, and its clients may be refused: eu is gone: its \
                    clients are not known";
    for (new, needs_force) in [
        (&[("a", "")][..], true),
        (&[("a", ""), ("db/x*", "")], true),
        (&[("a", ""), ("d*/*", "")], true),
        (&[("a", ""), ("db/*", "capacity: 60")], false),
    ] {
        let expected = Vec::from_iter(needs_force.then(|| expected.to_owned()));
        assert_eq!(said(new, gone), expected, "{new:?}");
        assert_eq!(said(new, None), [""; 0], "{new:?}");
    }
}

#[test]
fn a_capacity_that_was_in_force_is_no_typo() {
    let old = located(&[("a", "")]).templates;
    for (was_in_force, count) in [(true, 0), (false, 1)] {
        let before = InForceBefore {
            templates: Some(&old),
            was_in_force,
            ..InForceBefore::default()
        };
        let found = warnings(&located(&[("a", "capacity: 5")]), &before);
        assert_eq!(found.len(), count);
    }
}

#[test]
fn an_algorithm_that_keeps_no_total_needs_force() {
    let of = |kind: &str| {
        format!("capacity: 5, algorithm: {{kind: {kind}, lease_length: 60, refresh_interval: 5}}")
    };
    let (fair, each, all) = (of("FAIR_SHARE"), of("STATIC"), of("NO_ALGORITHM"));
    let said = |how: &str| {
        format!(
            "!template 1 (\"a\"): algorithm.kind: is {how}: together they may use more than the 5 that \
             FAIR_SHARE keeps to. To limit each client as well, keep FAIR_SHARE and set wants_max"
        )
    };
    let is_static = said("STATIC, which gives each client up to the capacity");
    check(Some(&[("a", &fair)]), &[("a", &each)], &[], &[&is_static]);
    let is_nothing = said("NO_ALGORITHM, which gives everyone what it wants");
    check(Some(&[("a", &fair)]), &[("a", &all)], &[], &[&is_nothing]);
    check(Some(&[("a", &each)]), &[("a", &all)], &[], &[]);
    check(Some(&[("a", &each)]), &[("a", &fair)], &[], &[]);
}
