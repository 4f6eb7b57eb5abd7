//! What a client falls back to when its lease has ended unrenewed, or before the first one.
//!
//! **A safe capacity wears out.** It was right when it was told, for as many clients as there were then.
//! Nobody knows for how many more it is used since. So from one lease length after its lease ended it is
//! halved, and again after each further lease length. No limit stays no limit: that is the operator's
//! word, and not a share of anything.

use std::time::Duration;

use crate::capacity::{Allowance, Capacity};
use crate::time::Time;

/// What a client uses when its lease has ended unrenewed, or before the first one. While a lease is
/// valid, every mode obeys it; but in safe mode a lease of 0 of a server in learning mode is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing. For what must never be overrun.
    Pessimistic,
    /// What it wants. For what is better overrun than not used.
    Optimistic,
    /// What it wants, up to the safe capacity it was last told; nothing if it was never told one. A
    /// lease length after its lease ended, half of the safe capacity, then a quarter, and so on.
    #[default]
    Safe,
}

/// A safe capacity, and the lease it was told with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SafeCapacity {
    pub(super) told: Capacity,
    /// How long leases were then.
    pub(super) length: Duration,
    /// When it ends.
    pub(super) since: Time,
}

/// What is left after so many halvings is nothing.
const HALVINGS_MAX: u32 = 64;

impl SafeCapacity {
    /// What it allows who wants so much, from now on and after the next halving.
    pub(super) fn allowance(&self, wants: f64, now: Time) -> Allowance {
        let halvings = self.halvings(now);
        let capacity = self.after(halvings, wants);
        let is_over = capacity == Capacity::NONE || capacity == Capacity::Unlimited;
        Allowance {
            until: (!is_over).then(|| self.since + self.length.saturating_mul(halvings + 1)),
            then: self.after(halvings + 1, wants),
            ..Allowance::by_mode(capacity)
        }
    }

    /// How much that is.
    pub(super) fn capacity(&self, wants: f64, now: Time) -> Capacity {
        self.after(self.halvings(now), wants)
    }

    fn halvings(&self, now: Time) -> u32 {
        if now <= self.since {
            return 0;
        }
        let lengths = now.since(self.since).as_nanos() / self.length.as_nanos().max(1);
        u32::try_from(lengths).map_or(HALVINGS_MAX, |lengths| lengths.min(HALVINGS_MAX))
    }

    fn after(&self, halvings: u32, wants: f64) -> Capacity {
        match self.told {
            Capacity::Unlimited => Capacity::Unlimited,
            Capacity::Limited(_) if halvings >= HALVINGS_MAX => Capacity::NONE,
            Capacity::Limited(safe) => {
                let left = safe / f64::from(halvings).exp2();
                Capacity::Limited(left.min(wants))
            }
        }
    }
}
