//! So many a second, and a burst: a token bucket in one word (GCRA), for many threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many a second there may be, and how many at once: what one second brings.
#[derive(Debug)]
pub struct AtomicRate {
    /// What one costs, in nanoseconds. 0: nothing is limited.
    cost: u64,
    /// When the bucket is full again, in nanoseconds since the start.
    full_at: AtomicU64,
}

/// A bucket is full after so long.
const BURST: u64 = 1_000_000_000;

impl AtomicRate {
    /// A full bucket. 0 a second: no limit.
    pub fn new(per_second: u64) -> Self {
        Self {
            cost: BURST.checked_div(per_second).unwrap_or(0),
            full_at: AtomicU64::new(0),
        }
    }

    /// Takes one, so long after the start.
    ///
    /// # Errors
    ///
    /// After how long there is one again.
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

    /// Whether nothing is lost by forgetting it.
    pub fn is_full(&self, now: Duration) -> bool {
        self.full_at.load(Ordering::Relaxed) <= nanos(now)
    }
}

/// So much time a second for work of which nobody knows before how long it takes: it is made up for
/// afterwards.
#[derive(Debug)]
pub struct WorkRate {
    /// Of a second.
    per_second: Duration,
    /// When all work is made up for, in nanoseconds since the start.
    made_up_at: AtomicU64,
}

/// Work of so long may be done ahead.
const AHEAD: Duration = Duration::from_secs(4);

impl WorkRate {
    /// Nothing was done yet. At most a second a second.
    pub fn new(per_second: Duration) -> Self {
        Self {
            per_second,
            made_up_at: AtomicU64::new(0),
        }
    }

    /// Whether there is time for more, so long after the start.
    pub fn is_open(&self, now: Duration) -> bool {
        self.made_up_at.load(Ordering::Relaxed) <= nanos(now + AHEAD)
    }

    /// Whether nothing is lost by forgetting it.
    pub fn is_made_up(&self, now: Duration) -> bool {
        self.made_up_at.load(Ordering::Relaxed) <= nanos(now)
    }

    /// Work has taken so long.
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
    // 584 years.
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
