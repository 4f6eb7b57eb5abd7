//! Exact arithmetic of buckets: supply, size and missing amount.
//!
//! A rate of A parts of a unit in P nanoseconds, reduced, gives *a* drops per nanosecond, if a drop is 1/p of a part. A
//! cost of c parts is c·p drops. So every change of a bucket (time, costs) is a whole number of drops, and nothing
//! drifts: not 3/s, not 4,999/day, not in ten years.
//!
//! The state is the *missing* amount in drops, from 0 (full) over the size (empty) to any debt. By its missing amount,
//! a bucket is a meter with its level, a queue with its backlog, and GCRA with its theoretical arrival time (TAT):
//! missing drops = (TAT − now)·a.
//!
//! A change of limit keeps a ratio, and the result need not be whole. Then a partly available drop counts as missing.

use std::time::Duration;

use crate::decision::{Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::moment::span;
use crate::rate::Rate;
use crate::units::Units;
use crate::wide::{gcd, scaled, scaled_up};

/// A size and a supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Size in drops.
    pub(crate) full: i128,
    /// Drops per nanosecond.
    pub(crate) drops: u64,
    /// Drops per part of a unit; 0 only without a limit.
    pub(crate) part: u64,
}

/// Largest size in drops, so that the sums and products below cannot overflow.
const FULL_MAX: u128 = 1 << 120;

/// Largest number of drops per nanosecond, for the same reason: 2⁶² times the whole range of nanoseconds is 2¹²⁶.
const DROPS_MAX: u128 = 1 << 62;

/// Largest missing amount: a debt of 32 times the largest size. A debt beyond it is forgiven.
pub(crate) const MISSING_MAX: i128 = 1 << 125;

impl Flow {
    /// Size 0 without supply.
    pub(crate) const NOTHING: Self = Self {
        full: 0,
        drops: 0,
        part: 1,
    };

    /// No limit: no cost takes a drop.
    pub(crate) const UNLIMITED: Self = Self {
        part: 0,
        ..Self::NOTHING
    };

    pub(crate) fn new(size: Units, rate: Rate) -> Result<Self, SettingsError> {
        let too_fine = || SettingsError::TooFine { size, rate };
        let (amount, period) = (rate.amount().parts(), u128::from(rate.period().get()));
        let common = gcd(amount, period);
        let (drops, part) = (amount / common, period / common);
        let full = size.parts().checked_mul(part);
        let full = full.filter(|full| *full <= FULL_MAX && drops <= DROPS_MAX);
        let full = full.and_then(|it| i128::try_from(it).ok());
        Ok(Self {
            full: full.ok_or_else(too_fine)?,
            drops: u64::try_from(drops).map_err(|_| too_fine())?,
            part: u64::try_from(part).map_err(|_| too_fine())?,
        })
    }

    /// Returns the size.
    #[inline]
    pub(crate) fn size(&self) -> Units {
        self.remaining(0)
    }

    /// Returns the supply in a number of nanoseconds: at most 2⁶² · 2⁶⁴ drops.
    #[inline]
    pub(crate) const fn in_nanos(&self, nanos: u64) -> i128 {
        self.drops as i128 * nanos as i128
    }

    /// Converts a cost to drops, cut at the largest missing amount.
    #[inline]
    pub(crate) fn in_drops(&self, cost: Units) -> i128 {
        let (parts, part) = (cost.parts(), u128::from(self.part));
        // Up to 2 thousand million units, the result is below MISSING_MAX with any part.
        if parts < 1 << 61 {
            (parts * part) as i128
        } else {
            long_product(parts, part)
        }
    }

    /// Returns the missing amount after a number of nanoseconds.
    #[inline]
    pub(crate) fn after(&self, missing: i128, nanos: u64) -> i128 {
        (missing - self.in_nanos(nanos)).max(0)
    }

    /// Returns the missing amount after the cost is taken, or the shortage if it is not. A missing amount below 0
    /// counts as 0. This is compared last, so that a refusal is short.
    #[inline(always)]
    pub(crate) fn take(&self, missing: i128, cost: Units) -> Result<i128, Short> {
        let drops = self.in_drops(cost);
        let missing = missing + drops;
        if missing > self.full {
            return Err(if drops > self.full {
                Short::Always
            } else {
                Short::By(missing - self.full)
            });
        }
        if missing >= drops {
            Ok(missing)
        } else if drops <= self.full {
            Ok(drops)
        } else {
            Err(Short::Always)
        }
    }

    /// Returns the missing amount after a charge.
    #[inline]
    pub(crate) fn charge(&self, missing: i128, cost: Units) -> i128 {
        (missing + self.in_drops(cost)).min(MISSING_MAX)
    }

    /// Returns the missing amount after a refund.
    #[inline]
    pub(crate) fn refund(&self, missing: i128, cost: Units) -> i128 {
        (missing - self.in_drops(cost)).max(0)
    }

    /// Returns the largest amount that can be taken.
    #[inline]
    pub(crate) fn remaining(&self, missing: i128) -> Units {
        if self.part == 0 {
            return Units::MAX;
        }
        let there = (self.full - missing).max(0) as u128;
        Units::from_parts(divided(there, self.part))
    }

    /// Returns the nanoseconds in which a number of drops comes in, rounded up; `None` if they never do.
    #[inline]
    pub(crate) fn nanos_for(&self, drops: i128) -> Option<u128> {
        let drops = drops.max(0) as u128;
        match (drops, self.drops) {
            (0, _) => Some(0),
            (_, 0) => None,
            (drops, each) => Some(divided(drops + u128::from(each - 1), each)),
        }
    }

    /// Returns the nanoseconds in which an empty bucket fills.
    pub(crate) fn fills(&self) -> u64 {
        let nanos = self.nanos_for(self.full).unwrap_or(u128::MAX);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// Returns the standing of the bucket, by a clock that is `behind` the last change.
    #[inline(always)]
    pub(crate) fn standing(&self, missing: i128, behind: u64) -> Standing {
        let reset = match self.nanos_for(missing) {
            Some(0) => Duration::ZERO,
            Some(nanos) => span(nanos.saturating_add(u128::from(behind))),
            None => Duration::MAX,
        };
        let debt = match (missing - self.full).max(0) as u128 {
            0 => 0,
            owed => owed.div_ceil(u128::from(self.part.max(1))),
        };
        Standing {
            remaining: self.remaining(missing),
            reset,
            debt: Units::from_parts(debt),
        }
    }

    /// Returns the refusal for a shortage.
    #[inline(always)]
    pub(crate) fn refusal(&self, short: Short, behind: u64) -> Decision {
        let drops = match short {
            Short::Always => return Decision::Never(Reason::CostAboveLimit),
            Short::By(drops) => drops,
        };
        match self.nanos_for(drops) {
            Some(nanos) => Decision::After(span(nanos.saturating_add(u128::from(behind)))),
            None => Decision::Never(Reason::RateIsZero),
        }
    }

    /// Returns the missing amount under another rule. The available part keeps its ratio, rounded down to a drop; a
    /// debt keeps its amount, rounded up.
    pub(crate) fn change(&self, next: &Self, missing: i128) -> i128 {
        let there = (self.full - missing).unsigned_abs();
        if missing > self.full {
            let owed = scaled_up(there, next.part.into(), self.part.into());
            let owed = i128::try_from(owed).unwrap_or(MISSING_MAX);
            return next.full.saturating_add(owed).min(MISSING_MAX);
        }
        let there = scaled(there, next.full.unsigned_abs(), self.full.unsigned_abs());
        // It is at most the size.
        next.full - there as i128
    }
}

#[cold]
fn long_product(parts: u128, part: u128) -> i128 {
    parts.saturating_mul(part).min(MISSING_MAX as u128) as i128
}

/// Shortage for a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// Missing drops.
    By(i128),
    /// The cost is above the size.
    Always,
}

/// Divides by a number of 64 bits, usually by a short division.
#[inline]
fn divided(number: u128, by: u64) -> u128 {
    match u64::try_from(number) {
        Ok(number) => u128::from(number / by.max(1)),
        Err(_) => number / u128::from(by.max(1)),
    }
}
