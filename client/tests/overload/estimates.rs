//! Estimates of costs.

use doorward::overload::estimate::Estimate;
use doorward::overload::operations::Operations;

use crate::service::Chance;

/// Returns the number of 100 seeds for which an estimate is near a mean after some values of each mean.
fn near(means: &[(f64, usize)], deviation: f64, tolerance: f64) -> usize {
    let is_near = |seed: &u64| {
        let mut chance = Chance(*seed);
        let mut estimate = Estimate::new(7.0);
        for (mean, values) in means {
            for _ in 0..*values {
                estimate.record(mean * chance.cost(deviation));
            }
        }
        let mean = means.last().unwrap().0;
        (estimate.mean() / mean - 1.0).abs() <= tolerance
    };
    (1..=100).filter(is_near).count()
}

#[test]
fn an_estimate_is_near_the_mean_after_100_values() {
    for deviation in [0.0, 0.25, 0.5] {
        let near = near(&[(100.0, 100)], deviation, 0.2);
        assert!(near >= 95, "deviation {deviation}: {near} of 100");
    }
}

#[test]
fn an_estimate_follows_a_tenfold_change_within_50_values() {
    for (from, to) in [(100.0, 1_000.0), (1_000.0, 100.0)] {
        let near = near(&[(from, 103), (to, 50)], 0.5, 0.3);
        assert!(near >= 95, "{from} to {to}: {near} of 100");
    }
}

#[test]
fn values_that_are_no_cost_are_ignored() {
    let mut estimate = Estimate::new(5.0);
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        estimate.record(value);
    }
    assert_eq!(estimate, Estimate::new(5.0));
    for _ in 0..100 {
        estimate.record(0.0);
    }
    assert_eq!(estimate.mean(), 0.0);
}

#[test]
fn a_new_operation_costs_what_all_cost() {
    let mut operations = Operations::new(1.0, 0.01);
    for _ in 0..100 {
        operations.record(1, 40.0, 0.2);
    }
    let known = *operations.of(2);
    assert!((known.cost.mean() - 40.0).abs() < 1.0, "{known:?}");
    assert!((known.latency.mean() - 0.2).abs() < 0.01, "{known:?}");
}

#[test]
fn memory_is_bounded_and_operations_in_use_are_kept() {
    let mut operations = Operations::new(1.0, 0.01);
    for _ in 0..50 {
        operations.record(0, 500.0, 0.1);
    }
    for other in 1..100_000 {
        operations.record(other, 1.0, 0.001);
        if other % 1_000 == 0 {
            assert!((operations.of(0).cost.mean() - 500.0).abs() < 50.0);
        }
        assert!(operations.len() <= 20_000);
    }
}
