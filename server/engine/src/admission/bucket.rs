//! So many each second, and some at once: a token bucket, kept as the time when it is full again.
//!
//! Time is what it is handed. A bucket that was left alone for long enough is like a new one.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Time;

/// How many there may be each second, and how many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Each second.
    pub per_second: NonZeroU32,
    /// At once: so many seconds' worth. 0 counts as 1.
    pub burst_seconds: u32,
}

impl Rate {
    /// So many each second, and at once what comes in that many seconds.
    pub const fn new(per_second: NonZeroU32, burst_seconds: u32) -> Self {
        Self {
            per_second,
            burst_seconds,
        }
    }

    /// What one costs, in nanoseconds.
    const fn cost(self) -> u64 {
        1_000_000_000 / self.per_second.get() as u64
    }

    /// What may be spent at once.
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
    /// Takes one.
    ///
    /// # Errors
    ///
    /// If there is none: how long until there is. Nothing is taken then.
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

    /// Whether nothing is missing.
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
    fn so_many_come_at_once_and_then_so_many_each_second() {
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 20);
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 0);
        assert_eq!(taken(&mut bucket, Time::from_secs(8)), 10);
        assert!(!bucket.is_full(Time::from_secs(9)));
        assert!(bucket.is_full(Time::from_secs(10)));
        assert_eq!(taken(&mut bucket, Time::from_secs(100)), 20);
    }

    #[test]
    fn who_comes_back_when_it_was_told_is_served() {
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
