//! The simplest fraction between two numbers: the one with the smallest denominator.
//!
//! A share such as 33.751938442 per second is exact only in very small parts, so a bucket of it has more drops
//! ([`crate::flow`]) than a word can count. A slightly lower fraction with a small denominator has few.
//!
//! The search uses continued fractions: it splits the whole parts off both numbers and inverts the rests, until a whole
//! number lies between them.

/// Largest whole number that floating point represents exactly.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// Returns numerator and denominator of the fraction from `least` to `most` with the smallest denominator; among whole
/// numbers, the largest. None if every such denominator is above `under_max` or beyond exact floating point, if the
/// numbers are not positive, or if `least` is above `most`.
pub(crate) fn simplest(least: f64, most: f64, under_max: u64) -> Option<(u64, u64)> {
    if !(least > 0.0 && most >= least && most < EXACT_MAX) {
        return None;
    }
    if most.floor() >= least {
        // The largest whole number: each has the same period.
        return exact(most.floor(), 1.0);
    }
    let under_max = (under_max as f64).min(EXACT_MAX);
    let (mut low, mut high) = (least, most);
    let (mut before, mut last): ((f64, f64), (f64, f64)) = ((0.0, 1.0), (1.0, 0.0));
    // Denominators at least double with every second step.
    for _ in 0..80 {
        let whole = low.floor();
        let within = if whole < low { whole + 1.0 } else { whole };
        let (over, under) = next(before, last, within);
        if under > under_max {
            return None;
        }
        if within <= high {
            let is_between = least <= over / under && over / under <= most;
            return exact(over, under).filter(|_| is_between);
        }
        (before, last) = (last, next(before, last, whole));
        (low, high) = ((high - whole).recip(), (low - whole).recip());
    }
    None
}

/// Returns both as whole numbers, if floating point represents them exactly.
fn exact(over: f64, under: f64) -> Option<(u64, u64)> {
    let is_exact = over < EXACT_MAX && under < EXACT_MAX;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers below 2⁵³, not negative"
    )]
    is_exact.then_some((over as u64, under as u64))
}

/// Returns the next approximation, from the last two.
fn next(before: (f64, f64), last: (f64, f64), whole: f64) -> (f64, f64) {
    (whole * last.0 + before.0, whole * last.1 + before.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fraction_is_found_again() {
        #[track_caller]
        fn check(number: f64, over: u64, under: u64) {
            let found = simplest(number * (1.0 - 1e-14), number * (1.0 + 1e-14), 1 << 53);
            assert_eq!(found, Some((over, under)), "{number}");
        }
        check(100.0, 100, 1);
        check(1.0 / 3.0, 1, 3);
        check(100.0 / 3.0, 100, 3);
        check(0.1, 1, 10);
        check(123_456.789, 123_456_789, 1_000);
        check(4_999.0 / 86_400.0, 4_999, 86_400);
        check(1e-9, 1, 1_000_000_000);
        check(1e12, 1_000_000_000_000, 1);
    }

    #[test]
    fn numbers_that_are_not_positive_have_no_fraction() {
        for (least, most) in [
            (0.0, 1.0),
            (-1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
            (1e300, 1e301),
        ] {
            assert_eq!(simplest(least, most, 1 << 53), None, "{least} {most}");
        }
    }

    proptest! {
        #[test]
        fn nothing_between_is_simpler(
            number in prop_oneof![0.001..1_000.0_f64, 1.0..1e6_f64], width in 1e-6..0.1_f64,
        ) {
            let (least, most) = (number * (1.0 - width), number);
            let (over, under) = simplest(least, most, 1 << 53).unwrap();
            prop_assert_eq!(simplest(least, most, under), Some((over, under)));
            prop_assert_eq!(simplest(least, most, under - 1).filter(|_| under > 1), None);
            prop_assert!(least <= over as f64 / under as f64 && over as f64 / under as f64 <= most);
            for shorter in 1..under.min(3_000) {
                let over = (least * shorter as f64).ceil();
                prop_assert!(over / shorter as f64 > most, "{over}/{shorter} is simpler");
            }
        }
    }
}
