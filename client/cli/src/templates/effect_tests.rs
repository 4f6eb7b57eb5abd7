//! Effects of changes in tables: templates and figures in, words out.

use super::*;

fn templates(fields: &[(&str, &str)]) -> Templates {
    let list: Vec<String> = fields
        .iter()
        .map(|(glob, fields)| {
            let (capacity, rest) = fields.split_once(' ').unwrap_or((fields, ""));
            let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let kind = if kind.is_empty() { "FAIR_SHARE" } else { kind };
            let spans = if rest.is_empty() {
                "lease_length: 60, refresh_interval: 5"
            } else {
                rest
            };
            format!(
                "{{identifier_glob: {glob:?}, capacity: {capacity}, algorithm: {{kind: {kind}, \
                 {spans}}}}}"
            )
        })
        .collect();
    let text = format!("resources: [{}]", list.join(", "));
    doorward_documents::parse_yaml(&text, "test").unwrap()
}

/// 40 clients of `db` that want, have, and may be using so much of 500.
fn live(wants: f64, granted: f64, reserved: f64) -> Live {
    Live {
        resource: "db".to_owned(),
        algorithm: "FAIR_SHARE".to_owned(),
        capacity: 500.0,
        wants,
        granted,
        reserved,
        clients: 40,
        lease_length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
    }
}

#[track_caller]
fn check(old: Option<&[(&str, &str)]>, new: &[(&str, &str)], live: &Live, expected: &[&str]) {
    let old = old.map(templates);
    let effects = effects(old.as_ref(), &templates(new), std::slice::from_ref(live));
    let words: Vec<&str> = effects
        .affected
        .iter()
        .flat_map(|effect| effect.words.iter().map(String::as_str))
        .collect();
    assert_eq!(words, expected);
    assert_eq!(effects.unaffected, usize::from(expected.is_empty()));
}

#[test]
fn a_lowered_capacity_shrinks_who_has_more() {
    let old = Some(&[("*", "500")][..]);
    for (new, live, expected) in [
        (
            "250",
            live(600.0, 500.0, 500.0),
            &[
                "40 clients shrink from 500 to 250 within a refresh interval of 5s",
                "250 beyond the new capacity stays reserved until they have refreshed, for 1m at most",
            ][..],
        ),
        (
            "250",
            live(600.0, 200.0, 200.0),
            &["40 clients can have 250 of the 600 wanted (200 now)"],
        ),
        (
            "250",
            live(200.0, 200.0, 200.0),
            &["there is enough for everyone: 40 clients with 200"],
        ),
        (
            "250",
            live(200.0, 200.0, 400.0),
            &[
                "150 beyond the new capacity stays reserved until they have refreshed, for 1m at most",
            ],
        ),
        (
            "0",
            live(200.0, 200.0, 200.0),
            &[
                "40 clients shrink from 200 to 0 within a refresh interval of 5s",
                "200 beyond the new capacity stays reserved until they have refreshed, for 1m at most",
            ],
        ),
    ] {
        check(old, &[("*", new)], &live, expected);
    }
}

#[test]
fn a_raised_capacity_is_there_for_who_wants_it() {
    let old = Some(&[("*", "500")][..]);
    for (new, live, expected) in [
        (
            "800",
            live(600.0, 500.0, 500.0),
            "there will be enough for everyone: 40 clients can have all of 600 within a refresh \
             interval of 5s",
        ),
        (
            "550",
            live(600.0, 500.0, 500.0),
            "40 clients can have 550 of the 600 wanted (500 now)",
        ),
        (
            "800",
            live(300.0, 300.0, 300.0),
            "there is enough for everyone: 40 clients with 300",
        ),
    ] {
        check(old, &[("*", new)], &live, &[expected]);
    }
}

#[test]
fn what_no_template_matches_runs_down() {
    let live = live(600.0, 500.0, 500.0);
    let gone = "no template matches any more: its leases run down within 1m, and requests are \
                refused (40 clients of 500)";
    check(Some(&[("*", "500")]), &[("x", "500")], &live, &[gone]);
    check(None, &[("x", "500")], &live, &[gone]);
    check(Some(&[("y", "500")]), &[("x", "500")], &live, &[]);
    check(
        Some(&[("y", "500")]),
        &[("*", "500")],
        &live,
        &[
            "there is a template for it again",
            "40 clients can have 500 of the 600 wanted (500 now)",
        ],
    );
}

#[test]
fn another_template_that_says_the_same_is_no_effect() {
    let live = live(600.0, 500.0, 500.0);
    check(
        Some(&[("*", "500")]),
        &[("d*", "500"), ("*", "9")],
        &live,
        &[],
    );
    check(None, &[("*", "500")], &live, &[]);
}

#[test]
fn another_algorithm_is_reported_with_what_it_does() {
    let live = live(600.0, 500.0, 500.0);
    for (new, expected) in [
        (
            "500 PRIORITY_BANDS",
            [
                "divided by PRIORITY_BANDS instead of FAIR_SHARE, as clients refresh",
                "40 clients can have 500 of the 600 wanted (500 now)",
            ],
        ),
        (
            "500 NO_ALGORITHM",
            [
                "divided by NO_ALGORITHM instead of FAIR_SHARE, as clients refresh",
                "everyone gets what it wants: the capacity is not looked at",
            ],
        ),
        (
            "20 STATIC",
            [
                "divided by STATIC instead of FAIR_SHARE, as clients refresh",
                "each of 40 clients gets up to 20: together they want 600",
            ],
        ),
    ] {
        check(Some(&[("*", "500")]), &[("*", new)], &live, &expected);
        check(None, &[("*", new)], &live, &expected);
    }
}

#[test]
fn lengths_are_shown() {
    let live = live(600.0, 500.0, 500.0);
    let new = &[("*", "500 FAIR_SHARE lease_length: 30, refresh_interval: 10")];
    let expected = "leases last 30s instead of 1m and are refreshed every 10s instead of 5s, from \
                    the next refresh on";
    check(Some(&[("*", "500")]), new, &live, &[expected]);
    check(None, new, &live, &[expected]);
    // If it follows from the lease length, it is not shown besides.
    let lengths = "lease_length: 60, refresh_interval: 5, learning_mode_duration: 0";
    let none = format!("500 FAIR_SHARE {lengths}");
    let expected = "learning mode lasts 0s instead of 1m, where it has begun, too";
    check(Some(&[("*", "500")]), &[("*", &none)], &live, &[expected]);
}

#[test]
fn a_server_that_goes_by_something_else_is_noticed() {
    let live = [live(100.0, 100.0, 100.0)];
    for (old, elsewhere) in [("500", 0), ("300", 1)] {
        let old = templates(&[("*", old)]);
        let effects = effects(Some(&old), &templates(&[("*", "250")]), &live);
        assert_eq!(effects.elsewhere, elsewhere);
    }
    assert_eq!(
        effects(None, &templates(&[("*", "250")]), &live).elsewhere,
        0
    );
}

#[test]
fn who_loses_most_comes_first() {
    let resource = |name: &str, wants| Live {
        resource: name.to_owned(),
        ..live(wants, wants, wants)
    };
    let all = [
        resource("a", 10.0),
        resource("b", 400.0),
        resource("c/d", 5.0),
    ];
    let effects = effects(
        Some(&templates(&[("*/*", "500"), ("*", "500")])),
        &templates(&[("*", "250")]),
        &all,
    );
    let order: Vec<&str> = effects
        .affected
        .iter()
        .map(|e| e.resource.as_str())
        .collect();
    assert_eq!(order, ["b", "c/d", "a"]);
}
