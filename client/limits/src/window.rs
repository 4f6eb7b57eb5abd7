//! Windows of a length, which follow each other without a gap, aligned to 1970 in UTC: [k·length, (k+1)·length).

use std::num::NonZeroU64;

use crate::moment::Moment;

/// Returns the window of a moment, counted from 1970.
#[inline]
pub(crate) fn of_moment(length: NonZeroU64, now: Moment) -> i64 {
    match i64::try_from(length.get()) {
        Ok(length) => now.nanos().div_euclid(length),
        // All moments before 1970 are in one window, and all others in the next.
        Err(_) => now.nanos().signum().min(0),
    }
}

/// Returns the start of a window, in nanoseconds.
#[inline]
pub(crate) fn start(length: NonZeroU64, window: i64) -> i128 {
    i128::from(window) * i128::from(length.get())
}

/// Returns the nanoseconds from now until an instant.
#[inline]
pub(crate) fn nanos_until(instant: i128, now: Moment) -> u128 {
    u128::try_from(instant - i128::from(now.nanos())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_in_its_window() {
        let hour = NonZeroU64::new(3_600_000_000_000).unwrap();
        for length in [NonZeroU64::MIN, hour, NonZeroU64::MAX] {
            for now in [i64::MIN, -1, 0, 1, 1_767_225_600_000_000_000, i64::MAX] {
                let start = start(length, of_moment(length, Moment::from_nanos(now)));
                let end = start + i128::from(length.get());
                assert!((start..end).contains(&now.into()), "{length} {now}");
            }
        }
    }
}
