//! A token bucket: a rate per second and a burst, kept as the time when the bucket is full again.
//!
//! Callers pass the time. A bucket that stays unused for long enough equals a new one.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Time;

/// A rate per second, and the burst after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per second.
    pub per_second: NonZeroU32,
    /// Burst, in seconds of the rate. 0 counts as 1.
    pub burst_seconds: u32,
}

impl Rate {
    /// A rate of `per_second`, with a burst of `burst_seconds` times that.
    pub const fn new(per_second: NonZeroU32, burst_seconds: u32) -> Self {
        Self {
            per_second,
            burst_seconds,
        }
    }

    /// Cost of one token, in nanoseconds.
    const fn cost(self) -> u64 {
        1_000_000_000 / self.per_second.get() as u64
    }

    /// The burst, in nanoseconds.
    const fn depth(self) -> u64 {
        let seconds = if self.burst_seconds == 0 {
            1
        } else {
            self.burst_seconds as u64
        };
        seconds * 1_000_000_000
    }
}

/// A bucket, full at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    full_at: Time,
}

impl Bucket {
    /// Takes a token.
    ///
    /// # Errors
    ///
    /// The time until there is a token, if there is none now. Then the bucket is unchanged.
    pub(crate) fn take(&mut self, rate: Rate, now: Time) -> Result<(), Duration> {
        let full_at = self.full_at.max(now) + Duration::from_nanos(rate.cost());
        let spent = full_at.since(now);
        let depth = Duration::from_nanos(rate.depth());
        if spent > depth {
            return Err(spent - depth);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Whether the bucket is full.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::new(NonZeroU32::new(10).unwrap(), 2);

    fn taken(bucket: &mut Bucket, now: Time) -> u32 {
        let mut taken = 0;
        while bucket.take(RATE, now).is_ok() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_burst_comes_at_once_and_then_the_rate_each_second() {
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 20);
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 0);
        assert_eq!(taken(&mut bucket, Time::from_secs(8)), 10);
        assert!(!bucket.is_full(Time::from_secs(9)));
        assert!(bucket.is_full(Time::from_secs(10)));
        assert_eq!(taken(&mut bucket, Time::from_secs(100)), 20);
    }

    #[test]
    fn a_caller_that_waits_for_the_retry_delay_is_served() {
        let mut bucket = Bucket::default();
        let now = Time::from_secs(7);
        taken(&mut bucket, now);
        let wait = bucket.take(RATE, now).unwrap_err();
        assert!(
            bucket
                .take(RATE, now + wait - Duration::from_millis(1))
                .is_err()
        );
        assert_eq!(bucket.take(RATE, now + wait), Ok(()));
    }
}
