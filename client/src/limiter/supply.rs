//! Supply of a bucket by a capacity: its rate and its burst.

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
pub(super) const BURST_MAX: Units = Units::whole(1_000_000_000_000_000);

/// Returns the supply of a capacity.
pub(super) fn supply(burst: Burst, capacity: Capacity) -> Supply {
    let Capacity::Limited(rate) = capacity else {
        return Supply::Unlimited;
    };
    let size = burst.least + rate * burst.span.as_secs_f64();
    let size = Units::try_from(size).unwrap_or(BURST_MAX).min(BURST_MAX);
    let of = |rate| TokenBucket::new(size, rate).ok();
    // Fractions of a millionth per second do not fit in a very large burst; whole parts per second do.
    let coarse = || of(Rate::per_second(Units::try_from(rate).ok()?));
    let fine = Rate::from_per_second(rate).ok().and_then(of);
    fine.or_else(coarse)
        .map_or(Supply::NOTHING, Supply::Limited)
}

#[cfg(test)]
mod tests {
    use doorward_limits::{Algorithm, Moment};
    use proptest::prelude::*;

    use super::*;

    fn bucket(rate: f64) -> TokenBucket {
        match supply(Burst::default(), Capacity::Limited(rate)) {
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
            (1_234.567, "1234.567/s"),
        ] {
            let size = Units::try_from(1.0 + number * 0.02).unwrap();
            let exact = TokenBucket::new(size, rate.parse().unwrap()).unwrap();
            assert_eq!(bucket(number), exact, "{rate}");
        }
    }

    /// Returns the time in which the burst comes in.
    fn seconds(bucket: &TokenBucket) -> f64 {
        let mut state = bucket.fresh();
        bucket.charge(&mut state, bucket.limit(), Moment::ORIGIN);
        bucket.standing(&state, Moment::ORIGIN).reset.as_secs_f64()
    }

    proptest! {
        #[test]
        fn the_supplied_rate_is_the_leased_one(exponent in -6.0..15.0_f64) {
            let rate = 10_f64.powf(exponent);
            // It comes in within ten million seconds or more, so the error of a nanosecond is negligible.
            let burst = Burst { span: Duration::from_secs(10_000_000), least: 0.0 };
            let Supply::Limited(bucket) = supply(burst, Capacity::Limited(rate)) else {
                panic!("it is limited");
            };
            let comes = bucket.limit().as_f64() / seconds(&bucket);
            // Very small and very large rates are the nearest ones with that many decimal places.
            let rounding = 1.1e-9;
            prop_assert!(comes <= rate * (1.0 + rounding), "{comes} of {rate}");
            prop_assert!(comes >= rate * (1.0 - rounding), "{comes} of {rate}");
        }
    }
}
