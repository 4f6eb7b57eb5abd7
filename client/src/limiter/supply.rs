//! Supply of a bucket by a capacity: its rate and its burst.
//!
//! A rate is rounded to 14 digits. The rate of an uneven share has too many drops for one word
//! ([`TokenBucket::simplest`]), so every call would need a lock. Instead, a simpler rate is used, lower by up to a
//! hundred-millionth. So the rate never exceeds the leased one, except in the fifteenth digit.

use std::time::Duration;

use doorward_limits::{Rate, Supply, TokenBucket, Units};

use crate::capacity::Capacity;

/// Amount that may come at once.
///
/// All limiters of a resource together admit the amount of the capacity, plus one burst each. So the default is small:
/// one request, and the amount of 20 ms, by which a task may wake late. A burst of a whole second would let them admit
/// twice the capacity within one second. If requests come in groups and the resource can bear that, give a longer span
/// or a larger least amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Span whose supply may come at once.
    pub span: Duration,
    /// Amount in addition, in the resource's units: the cost of a usual request.
    pub least: f64,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            span: Duration::from_millis(20),
            least: 1.0,
        }
    }
}

/// Largest burst, 10¹⁵ units, so that exact numbers fit at every rate.
const BURST_MAX: Units = Units::whole(1_000_000_000_000_000);

/// Relative error of floating-point arithmetic, at most.
const NOISE: f64 = 1e-14;

/// Largest relative loss for an uneven rate.
const LOSS: f64 = 1e-8;

/// Returns the supply of a capacity.
pub(super) fn supply(burst: Burst, capacity: Capacity) -> Supply {
    match capacity {
        Capacity::Unlimited => Supply::Unlimited,
        Capacity::Limited(rate) => limited(burst, rate),
    }
}

fn limited(burst: Burst, rate: f64) -> Supply {
    let size = burst.least + rate * burst.span.as_secs_f64();
    let size = Units::try_from(size).unwrap_or(BURST_MAX).min(BURST_MAX);
    let of = |rate| TokenBucket::new(size, rate).ok();
    let simple = |loss: f64| {
        let (least, most) = (rate * (1.0 - loss), rate * (1.0 + NOISE));
        TokenBucket::simplest(size, least, most)
    };
    // Exact rates need a lock: small uneven ones, and very large ones.
    let exact = || of(Rate::from_per_second(rate).ok()?);
    // Fractions of a millionth per second do not fit in so large a burst; whole parts per second do.
    let coarse = || of(Rate::per_second(Units::try_from(rate).ok()?));
    simple(NOISE)
        .or_else(|| simple(LOSS))
        .or_else(exact)
        .or_else(coarse)
        .map_or(Supply::NOTHING, Supply::Limited)
}

#[cfg(test)]
mod tests {
    use doorward_limits::{Algorithm, Moment};
    use proptest::prelude::*;

    use super::*;

    fn bucket(rate: f64) -> TokenBucket {
        match limited(Burst::default(), rate) {
            Supply::Limited(bucket) => bucket,
            Supply::Unlimited => panic!("it is limited"),
        }
    }

    #[test]
    fn rates_that_people_write_are_exact() {
        for (number, rate) in [
            (1.0, "1/s"),
            (0.5, "1/2s"),
            (10.0, "10/s"),
            (33.25, "33.25/s"),
            (1e6, "1000000/s"),
            (100.0 / 3.0, "100/3s"),
            (1.0 / 7.0, "1/7s"),
            (1_234.567, "1234.567/s"),
            (4_999.0 / 86_400.0, "4999/day"),
        ] {
            let size = Units::try_from(1.0 + number * 0.02).unwrap();
            let exact = TokenBucket::new(size, rate.parse().unwrap()).unwrap();
            assert_eq!(bucket(number), exact, "{rate}");
        }
    }

    /// Returns the time in which the burst comes in.
    fn seconds(bucket: &TokenBucket) -> f64 {
        let state = bucket.empty(Moment::ORIGIN);
        bucket.standing(&state, Moment::ORIGIN).reset.as_secs_f64()
    }

    proptest! {
        /// A bucket that does not fit a word needs a lock.
        #[test]
        fn shares_of_all_sizes_fit_a_word(rate in 20.0..4e8_f64) {
            let size = Units::try_from(1.0 + rate * 0.02).unwrap();
            let (least, most) = (rate * (1.0 - LOSS), rate * (1.0 + NOISE));
            prop_assert!(TokenBucket::simplest(size, least, most).is_some(), "{rate}");
        }

        #[test]
        fn the_supplied_rate_is_never_more_and_hardly_less_than_the_leased_one(exponent in -6.0..15.0_f64) {
            let rate = 10_f64.powf(exponent);
            // It comes in within ten million seconds or more, so the error of a nanosecond is negligible.
            let burst = Burst { span: Duration::from_secs(10_000_000), least: 0.0 };
            let Supply::Limited(bucket) = limited(burst, rate) else {
                panic!("it is limited");
            };
            let comes = bucket.limit().as_f64() / seconds(&bucket);
            // Very small and very large rates are the nearest ones with that many decimal places.
            let rounding = 1.1e-9;
            prop_assert!(comes <= rate * (1.0 + rounding), "{comes} of {rate}");
            prop_assert!(comes >= rate * (1.0 - 1.01 * LOSS - rounding), "{comes} of {rate}");
        }
    }
}
