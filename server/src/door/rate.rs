//! Rate limits shared by many threads: a token bucket in one word (GCRA), and a limit on the time of work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A rate limit. The burst is what one second allows.
#[derive(Debug)]
pub struct AtomicRate {
    /// Cost of one, in nanoseconds. 0: no limit.
    cost: u64,
    /// Time when the bucket is full again, in nanoseconds since the start.
    full_at: AtomicU64,
}

/// Time that fills an empty bucket, in nanoseconds.
const BURST: u64 = 1_000_000_000;

impl AtomicRate {
    /// Makes a full bucket. 0 a second: no limit.
    pub fn new(per_second: u64) -> Self {
        Self {
            cost: BURST.checked_div(per_second).unwrap_or(0),
            full_at: AtomicU64::new(0),
        }
    }

    /// Takes one token. `now` is the time since the start.
    ///
    /// # Errors
    ///
    /// The time until the next token.
    pub fn take(&self, now: Duration) -> Result<(), Duration> {
        let now = nanos(now);
        let taken = self
            .full_at
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
                let next = full_at.max(now) + self.cost;
                (next - now <= BURST).then_some(next)
            });
        match taken {
            Ok(_) => Ok(()),
            Err(full_at) => {
                let wait = (full_at + self.cost).saturating_sub(now + BURST);
                Err(Duration::from_nanos(wait))
            }
        }
    }

    /// Returns whether the bucket is full, so that a new one would be the same.
    pub fn is_full(&self, now: Duration) -> bool {
        self.full_at.load(Ordering::Relaxed) <= nanos(now)
    }
}

/// A limit on the share of time for work whose duration is known only afterwards. Later work waits for the time that
/// earlier work took.
#[derive(Debug)]
pub struct WorkRate {
    /// Work time allowed in each second.
    per_second: Duration,
    /// Time when all work done is paid for, in nanoseconds since the start.
    made_up_at: AtomicU64,
}

/// Largest debt with which new work may begin.
const AHEAD: Duration = Duration::from_secs(4);

impl WorkRate {
    /// Makes a limit without debt. At most one second a second.
    pub fn new(per_second: Duration) -> Self {
        Self {
            per_second,
            made_up_at: AtomicU64::new(0),
        }
    }

    /// Returns whether more work may begin. `now` is the time since the start.
    pub fn is_open(&self, now: Duration) -> bool {
        self.made_up_at.load(Ordering::Relaxed) <= nanos(now + AHEAD)
    }

    /// Returns whether all work is paid for, so that a new limit would be the same.
    pub fn is_made_up(&self, now: Duration) -> bool {
        self.made_up_at.load(Ordering::Relaxed) <= nanos(now)
    }

    /// Adds work that took `took`.
    pub fn charge(&self, took: Duration, now: Duration) {
        let parts = self.per_second.as_secs_f64().clamp(1e-6, 1.0);
        let span = nanos(took.min(Duration::from_secs(3_600)).div_f64(parts));
        self.made_up_at
            .update(Ordering::Relaxed, Ordering::Relaxed, |at| {
                at.max(nanos(now)).saturating_add(span)
            });
    }
}

fn nanos(span: Duration) -> u64 {
    // Covers 584 years.
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_brings_as_many_as_are_allowed_and_no_more() {
        let rate = AtomicRate::new(100);
        let start = Duration::from_secs(7);
        for _ in 0..100 {
            assert_eq!(rate.take(start), Ok(()));
        }
        assert_eq!(rate.take(start), Err(Duration::from_millis(10)));
        assert!(!rate.is_full(start));
        let later = start + Duration::from_millis(25);
        assert_eq!(rate.take(later), Ok(()));
        assert_eq!(rate.take(later), Ok(()));
        assert_eq!(rate.take(later), Err(Duration::from_millis(5)));
        assert!(rate.is_full(start + Duration::from_secs(2)));
    }

    #[test]
    fn work_is_made_up_for_before_there_is_more() {
        let rate = WorkRate::new(Duration::from_millis(250));
        let at = Duration::from_secs;
        // Four seconds' worth of it may be done at once.
        for _ in 0..5 {
            assert!(rate.is_open(at(0)));
            rate.charge(Duration::from_millis(240), at(0));
        }
        assert!(!rate.is_open(at(0)));
        assert!(rate.is_open(at(1)));
    }

    #[test]
    fn no_rate_is_no_limit() {
        let rate = AtomicRate::new(0);
        for _ in 0..100_000 {
            assert_eq!(rate.take(Duration::ZERO), Ok(()));
        }
    }
}
