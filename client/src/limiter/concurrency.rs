//! A limit of permits at once, which follows a changing capacity.
//!
//! A limit that shrinks below the permits in flight takes none away; it takes effect as permits come back. The client
//! reports the permits in flight as the amount that it *has*, so a server grants them to no other client. Of a limit
//! with a fraction, only whole permits count.

use std::sync::Mutex;
use std::time::Duration;

use doorward_limits::{InFlight, Moment};

use crate::capacity::{Allowance, Capacity};
use crate::limiter::FAST_CLOCK_BEHIND;
use crate::lock::lock;
use crate::time::Time;

/// Permits within a lease, shared by threads. The program's `ConcurrencyLimiter` decides by them.
#[derive(Debug)]
pub struct LeasedPermits {
    in_flight: InFlight,
    /// Allowance that was applied last. The holder of the lock may set the limit.
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
    /// Applies a new limit. Once this has returned, the previous limit admits nothing.
    pub fn handle_allowance(&self, allowance: Allowance) {
        self.set(&mut lock(&self.applied), allowance);
    }

    fn set(&self, applied: &mut Allowance, allowance: Allowance) {
        *applied = allowance;
        let then = allowance.until.map(|until| {
            let turn = Moment::ORIGIN.after(until.since_origin());
            (turn, permits(allowance.then))
        });
        self.in_flight.set_limit(permits(allowance.capacity), then);
    }

    /// Takes `permits` if they are within the limit. Returns whether it took them.
    pub fn try_acquire(&self, permits: u64, now: Time) -> bool {
        // Holds the lock to the end, so that no other thread sets an outdated limit.
        let mut applied = lock(&self.applied);
        // A frozen process may have missed several changes, and the limiter knows only the next one.
        let seen = applied.seen_at(now);
        if applied.safe.is_some() && seen != *applied {
            self.set(&mut applied, seen);
        }
        let now = Moment::ORIGIN.after(now.since_origin());
        self.in_flight.take(permits, now)
    }

    /// Does the same without a lock, by a clock that may be behind by [`FAST_CLOCK_BEHIND`]. None: call
    /// [`LeasedPermits::try_acquire`] with a good clock. That happens after the end of a lease, shortly before it, and
    /// where the limit is 0.
    #[inline]
    pub fn try_acquire_at_once(&self, permits: u64, now: Moment) -> Option<bool> {
        self.in_flight.take_at_once(permits, now)
    }

    /// Gives back `permits`.
    #[inline]
    pub fn release(&self, permits: u64) {
        self.in_flight.release(permits);
    }

    /// Returns the number of permits that are out.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// Returns the time at which the limit changes by itself, if it has not changed yet.
    pub fn until(&self) -> Option<Time> {
        let turn = self.in_flight.turn()?;
        let nanos = turn.nanos_since(Moment::ORIGIN);
        Some(Time::after_origin(Duration::from_nanos(nanos)))
    }
}

/// Returns the largest number of permits, or `None` if there is no limit.
fn permits(capacity: Capacity) -> Option<u64> {
    match capacity {
        Capacity::Unlimited => None,
        // A capacity is not negative, and what is larger than all numbers is no limit.
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
    fn permits_within_the_limit_are_admitted_and_no_more() {
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
    fn the_end_of_a_lease_is_obeyed_without_a_new_allowance() {
        let limiter = LeasedPermits::default();
        limiter.handle_allowance(limit(9.0, Some(5), 1.0));
        let end = Time::after_origin(Duration::from_secs(5));
        assert!(limiter.try_acquire(1, end));
        assert!(!limiter.try_acquire(1, end));
    }

    #[test]
    fn the_next_change_of_the_limit_is_known() {
        let limiter = LeasedPermits::default();
        assert_eq!(limiter.until(), None);
        limiter.handle_allowance(limit(3.0, Some(5), 1.0));
        assert_eq!(
            limiter.until(),
            Some(Time::after_origin(Duration::from_secs(5)))
        );
    }
}
