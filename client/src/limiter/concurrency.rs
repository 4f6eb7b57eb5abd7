//! So many at once, following a limit that changes.
//!
//! A limit that shrinks below what is in flight takes nothing away: it takes effect as permits come
//! back. What is in flight is what the client says it *has*, so a server gives it to nobody else.
//! Of a limit with a fraction, the whole permits count.

use doorward_limits::InFlight;

use crate::capacity::{Allowance, Capacity};
use crate::time::Time;

/// A concurrency limiter at a moment.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimiter {
    allowance: Allowance,
    in_flight: InFlight,
}

impl Default for ConcurrencyLimiter {
    fn default() -> Self {
        Self {
            allowance: Allowance::NONE,
            in_flight: InFlight::NONE,
        }
    }
}

impl ConcurrencyLimiter {
    /// A new limit is in force from now on.
    pub fn handle_allowance(&mut self, allowance: Allowance) {
        self.allowance = allowance;
    }

    /// Takes `permits` if they are within the limit. Returns whether they were.
    pub fn try_acquire(&mut self, permits: u64, now: Time) -> bool {
        let limit = match self.allowance.at(now) {
            Capacity::Unlimited => None,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a capacity is not negative, and what is larger than all numbers is no limit"
            )]
            Capacity::Limited(limit) => Some(limit as u64),
        };
        self.in_flight.take(permits, limit)
    }

    /// Gives back `permits` that were taken.
    pub fn release(&mut self, permits: u64) {
        self.in_flight.release(permits);
    }

    /// How many permits are out.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// When the limit changes by itself.
    pub fn until(&self) -> Option<Time> {
        self.allowance.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::capacity::Source;

    fn limit(limit: f64, until: Option<u64>, then: f64) -> Allowance {
        Allowance {
            capacity: Capacity::Limited(limit),
            source: Source::Lease,
            until: until.map(|s| Time::after_origin(Duration::from_secs(s))),
            then: Capacity::Limited(then),
        }
    }

    #[test]
    fn so_many_and_no_more() {
        let mut limiter = ConcurrencyLimiter::default();
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
        let mut limiter = ConcurrencyLimiter::default();
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
        let mut limiter = ConcurrencyLimiter::default();
        limiter.handle_allowance(limit(9.0, Some(5), 1.0));
        let end = Time::after_origin(Duration::from_secs(5));
        assert!(limiter.try_acquire(1, end));
        assert!(!limiter.try_acquire(1, end));
    }

    #[test]
    fn it_says_when_the_limit_changes_by_itself() {
        let mut limiter = ConcurrencyLimiter::default();
        assert_eq!(limiter.until(), None);
        limiter.handle_allowance(limit(3.0, Some(5), 1.0));
        assert_eq!(
            limiter.until(),
            Some(Time::after_origin(Duration::from_secs(5)))
        );
    }
}
