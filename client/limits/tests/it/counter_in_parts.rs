//! A sliding counter in parts equals the sum over all requests, each in its part.

use doorward_limits::{Decision, Limiter, Moment, SlidingCounter};
use proptest::prelude::*;

const PARTS: i64 = 4;
const PART: i64 = 250;
const LIMIT: i64 = 7;

/// Computes ⌊estimate⌋ from all requests.
fn estimate(taken: &[(i64, i64)], now: i64) -> i64 {
    let fades = |it: &i64| PART - now.rem_euclid(PART) * i64::from(*it == PARTS);
    let weighted = taken.iter().map(|(at, cost)| {
        let age = now.div_euclid(PART) - at.div_euclid(PART);
        cost * if age > PARTS { 0 } else { fades(&age) }
    });
    weighted.sum::<i64>().div_euclid(PART)
}

proptest! {
    #[test]
    fn a_counter_in_parts_is_the_sum_over_all_requests(
        ops in prop::collection::vec((0..400_i64, 1..4_u64, 0..10_u32), 1..60),
    ) {
        let rate = "7/1000ns".parse().unwrap();
        let mut limit = Limiter::new(SlidingCounter::<4>::in_parts(rate).unwrap());
        let (mut now, mut taken) = (0, Vec::new());
        for (pause, cost, kind) in ops {
            now += pause;
            let (at, amount) = (Moment::from_nanos(now), i64::try_from(cost).unwrap());
            if kind == 0 {
                limit.charge(cost, at);
                taken.push((now, amount));
                continue;
            }
            let passes = |now| estimate(&taken, now) + amount <= LIMIT;
            match limit.take(cost, at) {
                Decision::Allowed(allowed) => {
                    prop_assert!(passes(now));
                    taken.push((now, amount));
                    let reset = now + i64::try_from(allowed.reset.as_nanos()).unwrap();
                    prop_assert!(limit.is_fresh(Moment::from_nanos(reset)));
                    prop_assert!(!limit.is_fresh(Moment::from_nanos(reset - 1)));
                }
                Decision::After(wait) => {
                    let until = now + i64::try_from(wait.as_nanos()).unwrap();
                    prop_assert!(!passes(now) && !passes(until - 1) && passes(until));
                }
                Decision::Never(reason) => prop_assert!(false, "{}", reason),
            }
        }
    }
}
