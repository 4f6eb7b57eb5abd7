//! The claim index against a plain list of claims.

use proptest::prelude::*;

use super::*;
use crate::amount::Amount;
use crate::claims::Subclients;

fn claim(wants: f64, subclients: f64) -> Claim {
    Claim {
        wants: Amount::new(wants).unwrap(),
        subclients: Subclients::new(subclients).unwrap(),
    }
}

/// Computes D(w) by its definition.
fn dumb_demand_at(claims: &[Claim], level: f64) -> f64 {
    claims
        .iter()
        .map(|claim| claim.wants.get().min(level * claim.subclients.get()))
        .sum()
}

/// Computes the level by filling up from the lowest ratio.
fn dumb_level_for(claims: &[Claim], capacity: f64) -> Level {
    let total: f64 = claims.iter().map(|claim| claim.wants.get()).sum();
    if is_enough(capacity, total) {
        return Level::AboveAll;
    }
    let mut sorted = claims.to_vec();
    sorted.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let mut left = capacity;
    let mut subclients: f64 = sorted.iter().map(|claim| claim.subclients.get()).sum();
    for claim in sorted {
        if claim.ratio() * subclients > left {
            return Level::At(left / subclients);
        }
        left -= claim.wants.get();
        subclients -= claim.subclients.get();
    }
    Level::AboveAll
}

#[track_caller]
fn check_close(what: &str, got: f64, expected: f64) {
    assert!(
        is_close(got, expected),
        "{what}: {got}, expected {expected}"
    );
}

fn is_close(got: f64, expected: f64) -> bool {
    let tolerance = 1e-9 * expected.abs().max(1e-3);
    (got - expected).abs() <= tolerance
}

/// Checks that the index answers as the list does, at levels and capacities at the edges.
#[track_caller]
fn check(index: &ClaimIndex, claims: &[Claim]) {
    match &index.claims {
        Claims::One(leaf) => leaf.assert_consistent(),
        Claims::Few(leaf) => leaf.assert_consistent(),
        Claims::Many(tree) => tree.assert_consistent(),
    }
    assert_eq!(index.len(), claims.len());
    let total: f64 = claims.iter().map(|claim| claim.wants.get()).sum();
    check_close("Σ wants", index.total_wants(), total);
    let subclients: f64 = claims.iter().map(|claim| claim.subclients.get()).sum();
    check_close("Σ subclients", index.total_subclients(), subclients);
    let ratios = claims
        .iter()
        .step_by(claims.len() / 8 + 1)
        .map(|claim| claim.ratio());
    for level in ratios.flat_map(|ratio| [ratio, ratio * 0.7, ratio * 1.1]) {
        check_close("D", index.demand_at(level), dumb_demand_at(claims, level));
    }
    for fraction in [0.0, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0, 1.5] {
        let capacity = total * fraction;
        match (index.level_for(capacity), dumb_level_for(claims, capacity)) {
            // A level set by few small subclients moves far for a rounding of the capacity. Then a level is right if
            // the shares at it add up to the capacity.
            (Level::At(got), Level::At(expected)) if !is_close(got, expected) => {
                check_close("D at the level", dumb_demand_at(claims, got), capacity);
            }
            (Level::At(_), Level::At(_)) => {}
            (got, expected) => assert_eq!(got, expected, "capacity {capacity} of {total}"),
        }
    }
}

#[test]
fn an_empty_index_is_satisfied_by_nothing() {
    let index = ClaimIndex::default();
    assert_eq!(index.level_for(0.0), Level::AboveAll);
    assert_eq!(index.demand_at(5.0), 0.0);
    assert!(index.is_empty());
}

#[test]
fn claims_in_rising_falling_and_equal_order_come_out_again() {
    for order in 0..3 {
        let claims: Vec<Claim> = (0..3000)
            .map(|i| match order {
                0 => claim(f64::from(i), 1.0),
                1 => claim(f64::from(3000 - i), 1.0),
                _ => claim(f64::from(i % 7), 1.0),
            })
            .collect();
        let mut index = ClaimIndex::default();
        claims.iter().for_each(|claim| index.insert(*claim));
        check(&index, &claims);
        for (taken, claim) in claims.iter().enumerate() {
            index.remove(*claim);
            if taken % 500 == 0 {
                check(&index, &claims[taken + 1..]);
            }
        }
        assert!(index.is_empty());
        assert_eq!((index.total_wants(), index.total_subclients()), (0.0, 0.0));
    }
}

#[test]
fn a_capacity_one_rounding_below_the_sum_is_enough_for_all() {
    let claims: Vec<Claim> = (1..100).map(|i| claim(f64::from(i) * 0.1, 1.0)).collect();
    let mut index = ClaimIndex::default();
    claims.iter().for_each(|claim| index.insert(*claim));
    let total = index.total_wants();
    assert_eq!(
        index.level_for(total.next_down().next_down()),
        Level::AboveAll
    );
    assert!(matches!(
        index.level_for(total * (1.0 - 1e-12)),
        Level::At(_)
    ));
}

#[test]
fn a_million_updates_do_not_make_the_sums_drift() {
    // A small generator of its own, so that the test is the same on every machine.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut random_claim = move || {
        let exponent = (next() % 24) as f64 - 9.0;
        let mantissa = 1.0 + (next() % 1_000_000) as f64 / 1e6;
        claim(mantissa * 10f64.powf(exponent), 1.0 + (next() % 3) as f64)
    };
    let mut claims: Vec<Claim> = (0..500).map(|_| random_claim()).collect();
    let mut index = ClaimIndex::default();
    claims.iter().for_each(|claim| index.insert(*claim));
    for round in 0..1_000_000 {
        let place = round % claims.len();
        let new = random_claim();
        index.remove(std::mem::replace(&mut claims[place], new));
        index.insert(new);
    }
    check(&index, &claims);
}

fn claims() -> impl Strategy<Value = Claim> {
    let wants = prop_oneof![
        Just(0.0),
        0.0..100.0,
        (0i32..12).prop_map(f64::from),
        (-9f64..12.0).prop_map(|exponent| 10f64.powf(exponent)),
    ];
    let subclients = prop_oneof![Just(1.0), (1i32..60).prop_map(f64::from), 0.01..9.0];
    (wants, subclients).prop_map(|(wants, subclients)| claim(wants, subclients))
}

/// Claims with the same number of subclients, as those of clients are. Some are equal.
fn alike() -> impl Strategy<Value = Vec<Claim>> {
    let wants = prop_oneof![(0..40_u32).prop_map(f64::from), 0.0..40.0];
    let list = prop::collection::vec(wants, 2..1500);
    (list, prop_oneof![Just(1.0), Just(0.3)])
        .prop_map(|(wants, of)| wants.into_iter().map(|it| claim(it, of)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sequence_of_updates_answers_as_a_fresh_list(
        steps in prop::collection::vec((claims(), any::<prop::sample::Index>(), 0..10u8), 1..1500),
    ) {
        let mut index = ClaimIndex::default();
        let mut list: Vec<Claim> = Vec::new();
        // The index grows in the first half and shrinks in the second, so nodes split and merge.
        let half = steps.len() / 2;
        for (at, (claim, place, chance)) in steps.into_iter().enumerate() {
            if chance < if at < half { 8 } else { 2 } || list.is_empty() {
                index.insert(claim);
                list.push(claim);
            } else {
                let gone = list.swap_remove(place.index(list.len()));
                index.remove(gone);
            }
            if at % 100 == 0 {
                check(&index, &list);
            }
        }
        check(&index, &list);
    }

    #[test]
    fn a_changed_claim_equals_a_removal_and_an_insertion(
        list in prop::collection::vec(claims(), 1..1500),
        changes in prop::collection::vec((any::<prop::sample::Index>(), claims()), 1..300),
    ) {
        let mut list = list;
        let mut index = ClaimIndex::default();
        list.iter().for_each(|claim| index.insert(*claim));
        let mut twice = index.clone();
        for (place, after) in changes {
            let place = place.index(list.len());
            let before = std::mem::replace(&mut list[place], after);
            prop_assert!(index.replace(before, after));
            twice.remove(before);
            twice.insert(after);
            prop_assert_eq!(index.total_wants().to_bits(), twice.total_wants().to_bits());
        }
        check(&index, &list);
    }

    #[test]
    fn claims_of_as_many_subclients_change_into_each_other(
        list in alike(),
        changes in prop::collection::vec([any::<prop::sample::Index>(), any::<prop::sample::Index>()], 1..300),
    ) {
        // Half of the claims are present. They change into any others: near ones, equal ones, and themselves.
        let (there, all) = (list.len().div_ceil(2), list);
        let mut list = all[..there].to_vec();
        let mut index = ClaimIndex::default();
        list.iter().for_each(|claim| index.insert(*claim));
        for [place, after] in changes {
            let after = *after.get(&all);
            let before = std::mem::replace(place.get_mut(&mut list), after);
            prop_assert!(index.replace(before, after));
        }
        check(&index, &list);
        for claim in list {
            let before = index.len();
            index.remove(claim);
            prop_assert_eq!(index.len(), before - 1);
        }
        prop_assert!(index.is_empty());
    }

    #[test]
    fn few_claims_answer_as_a_fresh_list_after_each_step(
        steps in prop::collection::vec((claims(), any::<prop::sample::Index>(), any::<bool>()), 1..60),
    ) {
        let mut index = ClaimIndex::default();
        let mut list: Vec<Claim> = Vec::new();
        // Sizes around those at which the claims change their form.
        for (claim, place, goes) in steps {
            if goes && !list.is_empty() || list.len() > INLINE_MAX + 2 {
                let gone = list.swap_remove(place.index(list.len()));
                index.remove(gone);
            } else {
                index.insert(claim);
                list.push(claim);
            }
            check(&index, &list);
            prop_assert_eq!(index.highest_ratio().is_some(), !list.is_empty());
        }
    }

    #[test]
    fn at_the_level_all_claims_together_get_the_capacity(
        list in prop::collection::vec(claims(), 1..200),
        fraction in 0.0..1.0f64,
    ) {
        let mut index = ClaimIndex::default();
        list.iter().for_each(|claim| index.insert(*claim));
        let capacity = index.total_wants() * fraction;
        let level = index.level_for(capacity);
        let shared: f64 = list.iter().map(|claim| level.share_of(*claim)).sum();
        check_close("Σ shares", shared, capacity.min(index.total_wants()));
    }
}
