//! Allowance of safe mode without a lease, over time.
//!
//! **A safe capacity decays.** It was right for the number of clients at the time of its grant; that number may have
//! grown since. So the safe capacity halves one lease length after its lease ended, and again after each further lease
//! length. *No limit* does not decay, because it is the operator's decision and not a share.
//!
//! Limiters receive the whole course, and not only its next step. After a freeze of several lease lengths, a program
//! calls its limiters before the client's task can update them.

use std::time::Duration;

use crate::capacity::{Allowance, Capacity};
use crate::time::Time;

/// A safe capacity, and the lease it came with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantedSafeCapacity {
    /// Amount, as the server granted it.
    pub granted: Capacity,
    /// Lease length at that time.
    pub length: Duration,
    /// End of its lease.
    pub since: Time,
}

/// A client in safe mode without a lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InSafeMode {
    /// Safe capacity that the server granted.
    pub safe: GrantedSafeCapacity,
    /// Amount that the client wants; it uses no more.
    pub wants: f64,
}

/// Number of halvings after which nothing is left.
const HALVINGS_MAX: u32 = 64;

impl InSafeMode {
    /// Returns the allowance from now on, with the next halving.
    pub fn allowance(self, now: Time) -> Allowance {
        let halvings = self.safe.halvings(now);
        let capacity = self.after(halvings);
        let is_over = capacity == Capacity::NONE || capacity == Capacity::Unlimited;
        if is_over {
            return Allowance::by_mode(capacity);
        }
        let next = self.safe.length().saturating_mul(halvings + 1);
        Allowance {
            until: Some(self.safe.since + next),
            then: self.after(halvings + 1),
            safe: Some(self),
            ..Allowance::by_mode(capacity)
        }
    }

    fn after(self, halvings: u32) -> Capacity {
        match self.safe.granted {
            Capacity::Unlimited => Capacity::Unlimited,
            Capacity::Limited(_) if halvings >= HALVINGS_MAX => Capacity::NONE,
            Capacity::Limited(safe) => {
                let left = safe / f64::from(halvings).exp2();
                Capacity::Limited(left.min(self.wants))
            }
        }
    }
}

impl GrantedSafeCapacity {
    /// Returns the lease length, never 0, so that each halving comes after the previous one.
    fn length(&self) -> Duration {
        self.length.max(Duration::from_nanos(1))
    }

    fn halvings(&self, now: Time) -> u32 {
        if now <= self.since {
            return 0;
        }
        let lengths = now.since(self.since).as_nanos() / self.length().as_nanos();
        u32::try_from(lengths).map_or(HALVINGS_MAX, |lengths| lengths.min(HALVINGS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::after_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_late_look_sees_the_same_as_looks_at_each_change() {
        let safe = GrantedSafeCapacity {
            granted: Capacity::Limited(8.0),
            length: Duration::from_secs(10),
            since: at(100),
        };
        let mode = InSafeMode { safe, wants: 6.0 };
        let first = mode.allowance(at(100));
        for (seconds, capacity) in [
            (100, 6.0),
            (109, 6.0),
            (110, 4.0),
            (125, 2.0),
            (171, 0.0625),
        ] {
            let now = at(seconds);
            assert_eq!(first.at(now), Capacity::Limited(capacity), "{seconds}");
            assert_eq!(
                first.seen_at(now),
                mode.allowance(now).seen_at(now),
                "{seconds}"
            );
        }
        assert_eq!(first.at(at(100 + 640)), Capacity::NONE);
    }
}
