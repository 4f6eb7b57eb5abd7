//! Waits that are spread, so that callers refused at the same time do not return at the same time.
//!
//! Random waits would leave gaps and crowds. Multiples of the golden ratio leave none: the waits of any number of
//! consecutive refusals divide the range evenly. The same number always gives the same wait.

use std::time::Duration;

/// Returns the wait of the refusal with that number: `least` or more, and less than `most`.
pub fn evenly(number: u64, (least, most): (Duration, Duration)) -> Duration {
    /// 2^32 divided by the golden ratio.
    const STEP: u64 = 2_654_435_769;
    let part = number.wrapping_mul(STEP) & u64::from(u32::MAX);
    #[expect(clippy::cast_precision_loss, reason = "below 2^32")]
    let part = part as f64 / 2_f64.powi(32);
    least + most.saturating_sub(least).mul_f64(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_divide_the_range_evenly_wherever_the_numbers_begin() {
        for first in [0, 123_456_789, u64::MAX - 500] {
            let mut tenths = [0; 10];
            for number in 0..1_000 {
                let wait = evenly(first.wrapping_add(number), (SECOND, 5 * SECOND));
                assert!((SECOND..5 * SECOND).contains(&wait), "{wait:?}");
                let tenth = (wait - SECOND).as_millis() / 400;
                tenths[usize::try_from(tenth).unwrap()] += 1;
            }
            assert!(
                tenths.iter().all(|count| (98..=102).contains(count)),
                "{tenths:?}"
            );
        }
    }

    #[test]
    fn a_range_of_nothing_is_its_least() {
        assert_eq!(evenly(7, (SECOND, SECOND)), SECOND);
        assert_eq!(evenly(7, (2 * SECOND, SECOND)), 2 * SECOND);
    }
}
