//! Two runs, figure by figure.

use super::*;
use crate::report::plausible;

fn compare(a: &Recording, b: &Recording) -> (Vec<String>, String) {
    let side = |recording| Side {
        name: "x",
        recording,
    };
    let (a, b) = (side(a), side(b));
    let comparison = Comparison::of(&a, &b);
    (comparison.shape.clone(), comparison.title())
}

#[test]
fn a_run_is_as_good_as_itself() {
    let run = plausible::small();
    let (shape, title) = compare(&run, &run);
    assert_eq!(
        shape,
        ["nothing: they have the same trace, so they are the same run"]
    );
    assert_eq!(title, "Both are as good.");
}

#[test]
fn what_differs_in_shape_is_said() {
    let (shape, title) = compare(&plausible::small(), &plausible::day());
    assert!(title.starts_with("Nothing can be compared"), "{title}");
    for expected in [
        "seed: A 7, B 20260412",
        "length: A 1 min, B 1 h",
        "levels: A 1, B 3",
        "resource requests: only in A",
        "resource exports: only in B",
    ] {
        assert!(
            shape.contains(&expected.to_owned()),
            "{expected}: {shape:?}"
        );
    }
}

#[test]
fn a_peak_within_the_capacity_wins_nothing() {
    let (a, mut b) = (plausible::small(), plausible::small());
    b.resources[0].figures.peak_of_capacity = 0.5;
    assert_eq!(compare(&a, &b).1, "Both are as good.");
    b.resources[0].figures.unfairness = 0.05;
    assert_eq!(compare(&a, &b).1, "B is better in 1 figure, A in none.");
    b.resources[0].figures.utilisation = 0.5;
    assert_eq!(compare(&a, &b).1, "A is better in 1 figure, B in 1.");
}

#[test]
fn differences_have_a_sign_and_a_unit() {
    for (unit, a, b, expected) in [
        (Unit::Part, 0.5, 0.525, "+2.50 points"),
        (Unit::Seconds, 90.0, 30.0, "-1 min"),
        (Unit::Count, 1.0, 1.0, "="),
        (Unit::PerMinute, 0.0, 0.25, "+0.25"),
        (Unit::Part, f64::NAN, 0.5, "="),
        (Unit::Points, 0.012, 0.01, "-0.20 points"),
        (Unit::Points, 0.000_01, 0.000_02, "="),
    ] {
        assert_eq!(difference(unit, a, b), expected, "{a} {b}");
    }
}
