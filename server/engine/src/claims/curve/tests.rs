//! Curves against their claims.

use proptest::prelude::*;

use super::*;

fn amount(value: f64) -> Amount {
    Amount::new(value).unwrap()
}

fn index_of(claims: &[(f64, f64)]) -> ClaimIndex {
    let mut index = ClaimIndex::default();
    for (wants, subclients) in claims {
        index.insert(Claim {
            wants: amount(*wants),
            subclients: Subclients::new(*subclients).unwrap(),
        });
    }
    index
}

fn rebuilt(curve: &DemandCurve, clients: f64) -> ClaimIndex {
    let mut index = ClaimIndex::default();
    curve.claims(clients).for_each(|claim| index.insert(claim));
    index
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()) + 1e-12
}

#[test]
fn the_worked_example_one_big_and_nine_small() {
    let mut claims = vec![(1000.0, 1.0)];
    claims.extend([(1.0, 1.0); 9]);
    let curve = DemandCurve::of(&index_of(&claims), 64);
    let points: Vec<_> = curve.points().iter().map(|p| (p.level, p.demand)).collect();
    assert_eq!(points, [(1.0, 10.0), (1000.0, 1009.0)]);
    let pieces: Vec<_> = curve
        .claims(10.0)
        .map(|claim| (claim.wants.get(), claim.subclients.get()))
        .collect();
    assert_eq!(pieces, [(9.0, 9.0), (1000.0, 1.0)]);
}

#[test]
fn a_claim_without_wants_is_counted_and_takes_nothing() {
    let curve = DemandCurve::of(&index_of(&[(0.0, 1.0), (0.0, 1.0), (5.0, 1.0)]), 64);
    assert_eq!(curve.points().len(), 1);
    assert_eq!(rebuilt(&curve, 3.0).total_subclients(), 3.0);
    assert_eq!(rebuilt(&curve, 3.0).total_wants(), 5.0);
    assert_eq!(
        DemandCurve::of(&ClaimIndex::default(), 64),
        DemandCurve::default()
    );
    assert_eq!(DemandCurve::default().demand_at(7.0), 0.0);
}

#[test]
fn a_level_may_be_smaller_than_the_smallest_amount() {
    // Twenty clients together want the smallest amount, beside another claim.
    let least = 0.5_f64.powi(128);
    let (levels, demands) = ([least / 20.0, 5.0], [21.0 * (least / 20.0), 5.0]);
    let curve = DemandCurve::parse(&levels, &demands, amount(5.0), 21.0).unwrap();
    let points: Vec<_> = curve.points().iter().map(|p| (p.level, p.demand)).collect();
    assert_eq!(
        points,
        [(levels[0], demands[0]), (levels[1], demands[1])],
        "the points as sent"
    );
}

#[test]
fn a_curve_may_end_a_few_roundings_below_tiny_wants() {
    // The claims want three times the smallest amount, and the rounded curve ends at two times it.
    let least = 0.5_f64.powi(128);
    let (level, clients) = (2.0 * least / 1e5, 1e5);
    DemandCurve::parse(&[level], &[2.0 * least], amount(3.0 * least), clients).unwrap();
    let refused = DemandCurve::parse(&[2.0], &[2.0], amount(3.0), 1.0);
    assert!(
        matches!(refused, Err(DemandCurveError::NotTheTotal { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_curve_does_not_rise_without_end() {
    let least = f64::from_bits(1);
    let (levels, demands) = ([least, 2.0 * least], [0.0, 1e15]);
    let curve = DemandCurve::parse(&levels, &demands, Amount::MAX, 1e9);
    assert_eq!(curve, Err(DemandCurveError::NotConcave(1)));
}

#[test]
fn an_invalid_demand_curve_is_refused_with_the_reason() {
    type Case<'a> = (&'a [f64], &'a [f64], f64, f64, &'a str);
    let cases: [Case<'_>; 10] = [
        (&[1.0], &[], 0.0, 1.0, "1 levels and 0 demands"),
        (&[f64::NAN], &[1.0], 1.0, 1.0, "not a number"),
        (&[1.0], &[-1.0], 1.0, 1.0, "negative"),
        (&[1.0, 1.0], &[1.0, 2.0], 2.0, 9.0, "levels must rise"),
        (&[1.0, 2.0], &[2.0, 1.0], 1.0, 9.0, "must not fall"),
        (&[1.0, 2.0], &[1.0, 3.0], 3.0, 9.0, "slope must not rise"),
        (&[1.0], &[1.0], 2.0, 1.0, "2 is wanted in total"),
        (&[], &[], 2.0, 1.0, "2 is wanted in total"),
        (&[1.0], &[5.0], 5.0, 4.0, "more than 4 clients can"),
        (&[1e300], &[5.0], 5.0, 4.0, "above the largest"),
    ];
    for (levels, demands, wants, clients, message) in cases {
        let error = DemandCurve::parse(levels, demands, amount(wants), clients).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let many: Vec<f64> = (1..=1025).map(f64::from).collect();
    assert_eq!(
        DemandCurve::parse(&many, &many, amount(1025.0), 2.0),
        Err(DemandCurveError::TooManyPoints(1025))
    );
}

/// Claims of many kinds: equal ones, idle ones, some over nine orders of magnitude.
fn claims() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let wants = prop_oneof![
        Just(0.0),
        Just(10.0),
        0.0..100.0,
        (-4.0..5.0).prop_map(|e: f64| 10f64.powf(e))
    ];
    let subclients = prop_oneof![4 => Just(1.0), 1 => 0.01..50.0];
    prop::collection::vec((wants, subclients), 0..200)
}

proptest! {
    #[test]
    fn a_curve_with_enough_points_is_exact(claims in claims()) {
        let index = index_of(&claims);
        let curve = DemandCurve::of(&index, 1000);
        for (wants, subclients) in &claims {
            for level in [wants / subclients, wants / subclients * 0.7, wants / subclients * 1.3] {
                let (sent, truth) = (curve.demand_at(level), index.demand_at(level));
                prop_assert!(close(sent, truth, 1e-11), "{sent} for {truth} at {level}");
            }
        }
    }

    #[test]
    fn a_compressed_curve_never_claims_too_much_and_keeps_the_totals(
        claims in claims(),
        points in 1..40_usize,
    ) {
        let index = index_of(&claims);
        let curve = DemandCurve::of(&index, points);
        prop_assert!(curve.points().len() <= points);
        prop_assert!(close(curve.demand_at(f64::MAX), index.total_wants(), 1e-12));
        for (wants, subclients) in &claims {
            for level in [wants / subclients, wants / subclients * 0.7, wants / subclients * 1.3] {
                let (sent, truth) = (curve.demand_at(level), index.demand_at(level));
                prop_assert!(sent <= truth * (1.0 + 1e-12), "{sent} for {truth} at {level}");
            }
        }
        let clients = index.total_subclients();
        let again = rebuilt(&curve, clients);
        prop_assert!(close(again.total_wants(), index.total_wants(), 1e-9));
        prop_assert!(close(again.total_subclients(), clients, 1e-9));
    }

    #[test]
    fn a_corner_just_below_the_end_is_not_above_it(
        claims in prop::collection::vec((0.01..1.0f64, 0.3..1.3f64, 1..50_usize), 1..12),
    ) {
        // The largest claim has hardly any subclients, and the next one wants nearly as much. So the demands of the two
        // corners differ by a rounding.
        let highest = claims.iter().map(|(level, ..)| *level).fold(0.0, f64::max);
        let mut index = index_of(&[(highest * (1.0 + 1e-10) * 1e-9, 1e-9)]);
        for (level, subclients, count) in claims {
            let claim = Claim {
                wants: amount(level * subclients),
                subclients: Subclients::new(subclients).unwrap(),
            };
            (0..count).for_each(|_| index.insert(claim));
        }
        let curve = DemandCurve::of(&index, POINTS_MAX);
        let (levels, demands): (Vec<f64>, Vec<f64>) =
            curve.points().iter().map(|p| (p.level, p.demand)).unzip();
        let wants = Amount::from_computed(index.total_wants());
        let parsed = DemandCurve::parse(&levels, &demands, wants, index.total_subclients());
        prop_assert!(parsed.is_ok(), "{:?}", parsed);
    }

    #[test]
    fn a_sent_curve_is_accepted_and_stays_the_same(claims in claims()) {
        let index = index_of(&claims);
        let curve = DemandCurve::of(&index, POINTS_MAX);
        let levels: Vec<f64> = curve.points().iter().map(|p| p.level).collect();
        let demands: Vec<f64> = curve.points().iter().map(|p| p.demand).collect();
        let wants = Amount::from_computed(index.total_wants());
        let parsed = DemandCurve::parse(&levels, &demands, wants, index.total_subclients());
        prop_assert_eq!(parsed, Ok(curve));
    }

    #[test]
    fn pieces_add_up_to_the_curve(claims in claims(), level in 0.0..200.0) {
        let index = index_of(&claims);
        let curve = DemandCurve::of(&index, 16);
        let again = rebuilt(&curve, index.total_subclients());
        prop_assert!(close(again.demand_at(level), curve.demand_at(level), 1e-9));
    }
}
