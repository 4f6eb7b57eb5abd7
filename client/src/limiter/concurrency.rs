//! So many at once, following a limit that changes.
//!
//! A limit that shrinks below what is in flight takes nothing away: it takes effect as permits come
//! back. What is in flight is what the client says it *has*, so a server gives it to nobody else.
//! Of a limit with a fraction, the whole permits count.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_limits::{InFlight, Moment};

use crate::capacity::{Allowance, Capacity};
use crate::limiter::FAST_CLOCK_BEHIND;
use crate::time::Time;

/// As many permits as a lease allows, shared by threads: what the `ConcurrencyLimiter` of programs decides by.
#[derive(Debug)]
pub struct LeasedPermits {
    in_flight: InFlight,
    /// What was applied last. Whoever has the lock may set the limit.
    applied: Mutex<Allowance>,
}

impl Default for LeasedPermits {
    fn default() -> Self {
        Self {
            in_flight: InFlight::new(FAST_CLOCK_BEHIND),
            applied: Mutex::new(Allowance::NONE),
        }
    }
}

impl LeasedPermits {
    /// A new limit is in force from now on. Once this has returned, nothing is taken by the former one.
    pub fn handle_allowance(&self, allowance: Allowance) {
        self.set(&mut self.lock(), allowance);
    }

    fn set(&self, applied: &mut Allowance, allowance: Allowance) {
        *applied = allowance;
        let then = allowance.until.map(|until| {
            let turn = Moment::ORIGIN.after(until.since_origin());
            (turn, permits(allowance.then))
        });
        self.in_flight.set_limit(permits(allowance.capacity), then);
    }

    /// Takes `permits` if they are within the limit. Returns whether they were.
    pub fn try_acquire(&self, permits: u64, now: Time) -> bool {
        // Held to the end, so that nobody sets a limit that is over by then.
        let mut applied = self.lock();
        // Who was frozen may have slept through several changes, of which the limiter knows the next one.
        let seen = applied.seen_at(now);
        if applied.safe.is_some() && seen != *applied {
            self.set(&mut applied, seen);
        }
        let now = Moment::ORIGIN.after(now.since_origin());
        self.in_flight.take(permits, now)
    }

    fn lock(&self) -> MutexGuard<'_, Allowance> {
        // Nothing panics while it is held.
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same without a lock, by a clock that may be behind by [`FAST_CLOCK_BEHIND`]. None: look at a better one, and
    /// call [`LeasedPermits::try_acquire`]. So it is after the end of a lease and shortly before it, and where
    /// there are no permits at all.
    #[inline]
    pub fn try_acquire_at_once(&self, permits: u64, now: Moment) -> Option<bool> {
        self.in_flight.take_at_once(permits, now)
    }

    /// Gives back `permits` that were taken.
    #[inline]
    pub fn release(&self, permits: u64) {
        self.in_flight.release(permits);
    }

    /// How many permits are out.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// When the limit changes by itself, if it has not yet.
    pub fn until(&self) -> Option<Time> {
        let turn = self.in_flight.turn()?;
        let nanos = turn.nanos_since(Moment::ORIGIN);
        Some(Time::after_origin(Duration::from_nanos(nanos)))
    }
}

/// How many may be out; none is no limit.
fn permits(capacity: Capacity) -> Option<u64> {
    match capacity {
        Capacity::Unlimited => None,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a capacity is not negative, and what is larger than all numbers is no limit"
        )]
        Capacity::Limited(limit) => Some(limit as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Source;

    fn limit(limit: f64, until: Option<u64>, then: f64) -> Allowance {
        Allowance {
            capacity: Capacity::Limited(limit),
            source: Source::Lease,
            until: until.map(|s| Time::after_origin(Duration::from_secs(s))),
            then: Capacity::Limited(then),
            safe: None,
        }
    }

    #[test]
    fn so_many_and_no_more() {
        let limiter = LeasedPermits::default();
        assert!(!limiter.try_acquire(1, Time::ZERO));
        limiter.handle_allowance(limit(2.9, None, 0.0));
        let taken = (0..5)
            .filter(|_| limiter.try_acquire(1, Time::ZERO))
            .count();
        assert_eq!(taken, 2);
        limiter.release(1);
        assert!(limiter.try_acquire(1, Time::ZERO));
    }

    #[test]
    fn a_shrink_takes_effect_as_permits_come_back() {
        let limiter = LeasedPermits::default();
        limiter.handle_allowance(limit(3.0, None, 0.0));
        assert!(limiter.try_acquire(3, Time::ZERO));
        limiter.handle_allowance(limit(1.0, None, 0.0));
        assert_eq!(limiter.in_flight(), 3);
        limiter.release(2);
        assert!(!limiter.try_acquire(1, Time::ZERO));
        limiter.release(1);
        assert!(limiter.try_acquire(1, Time::ZERO));
    }

    #[test]
    fn the_end_of_a_lease_is_obeyed_though_nobody_said_so() {
        let limiter = LeasedPermits::default();
        limiter.handle_allowance(limit(9.0, Some(5), 1.0));
        let end = Time::after_origin(Duration::from_secs(5));
        assert!(limiter.try_acquire(1, end));
        assert!(!limiter.try_acquire(1, end));
    }

    #[test]
    fn it_says_when_the_limit_changes_by_itself() {
        let limiter = LeasedPermits::default();
        assert_eq!(limiter.until(), None);
        limiter.handle_allowance(limit(3.0, Some(5), 1.0));
        assert_eq!(
            limiter.until(),
            Some(Time::after_origin(Duration::from_secs(5)))
        );
    }
}
