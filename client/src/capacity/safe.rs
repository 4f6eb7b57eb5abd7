//! What safe mode allows without a lease, as time goes by.
//!
//! **A safe capacity wears out.** It was right when it was told, for as many clients as there were then.
//! Nobody knows for how many more it is used since. So from one lease length after its lease ended it is
//! halved, and again after each further lease length. No limit stays no limit: that is the operator's
//! word, and not a share of anything.
//!
//! Limiters are handed all of this, and not only what comes next: a process that was frozen goes on several lease
//! lengths later, and its limiters are asked before the client's task can tell them anything.

use std::time::Duration;

use crate::capacity::{Allowance, Capacity};
use crate::time::Time;

/// A safe capacity, and the lease it was told with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldSafeCapacity {
    /// As it was told.
    pub told: Capacity,
    /// How long leases were then.
    pub length: Duration,
    /// When its lease ends.
    pub since: Time,
}

/// A client in safe mode that has no lease any more, and wants so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InSafeMode {
    /// What it was told.
    pub safe: ToldSafeCapacity,
    /// What it wants: it uses no more.
    pub wants: f64,
}

/// What is left after so many halvings is nothing.
const HALVINGS_MAX: u32 = 64;

impl InSafeMode {
    /// What is allowed, from now on and after the next halving.
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

    /// How much that is.
    pub(crate) fn capacity(self, now: Time) -> Capacity {
        self.after(self.safe.halvings(now))
    }

    fn after(self, halvings: u32) -> Capacity {
        match self.safe.told {
            Capacity::Unlimited => Capacity::Unlimited,
            Capacity::Limited(_) if halvings >= HALVINGS_MAX => Capacity::NONE,
            Capacity::Limited(safe) => {
                let left = safe / f64::from(halvings).exp2();
                Capacity::Limited(left.min(self.wants))
            }
        }
    }
}

impl ToldSafeCapacity {
    /// Never 0: then each halving comes after the one before it.
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
    fn who_looks_late_sees_what_who_looked_each_time_sees() {
        let safe = ToldSafeCapacity {
            told: Capacity::Limited(8.0),
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
