//! What comes in, what fits, and what is missing: the exact arithmetic of buckets.
//!
//! A rate of A parts of a unit in P nanoseconds, reduced, gives *a* drops a nanosecond, if a drop is 1/p of a part.
//! A cost of c parts is c·p drops. So everything that can happen to a bucket (time, costs) is a whole number of
//! drops, and nothing drifts: not 3/s, not 4,999/day, not in ten years.
//!
//! What is kept is what is *missing* in drops, from 0 (full) by the size (empty) up to any debt. A bucket that is
//! known by what is missing is a meter by its level, a queue by its backlog, and GCRA by how far its theoretical
//! arrival time is ahead: missing drops = (TAT − now)·a.
//!
//! A change of limit keeps a ratio, and a ratio need not be whole: then the drop that is partly there counts as
//! missing, which nobody can see, since all else is whole; and [`Rest`] remembers the part for the next change.

use std::time::Duration;

use crate::decision::{Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::moment::span;
use crate::rate::{Period, Rate};
use crate::rest::Rest;
use crate::units::Units;
use crate::wide::gcd;

/// A size, and what flows in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    size: Units,
    /// The size in drops.
    full: i128,
    /// Drops a nanosecond.
    drops: u64,
    /// Drops a part of a unit; at least 1.
    part: u64,
}

/// The most drops that fit, so that sums and products below cannot overflow.
const FULL_MAX: u128 = 1 << 120;

/// The most drops a nanosecond, for the same reason: 2⁶² times all nanoseconds that there are is 2¹²⁶.
const DROPS_MAX: u128 = 1 << 62;

/// What is missing at most. A debt of 32 times the largest size; what is beyond it is forgiven.
pub(crate) const MISSING_MAX: i128 = 1 << 125;

impl Flow {
    /// Nothing fits, and nothing comes in.
    pub(crate) const NOTHING: Self = Self {
        size: Units::ZERO,
        full: 0,
        drops: 0,
        part: 1,
    };

    pub(crate) fn new(size: Units, rate: Rate) -> Result<Self, SettingsError> {
        let Period::Nanos(period) = rate.period() else {
            return Err(SettingsError::CalendarRate { rate });
        };
        let too_fine = || SettingsError::TooFine { size, rate };
        let (amount, period) = (rate.amount().parts(), u128::from(period.get()));
        let common = gcd(amount, period);
        let (drops, part) = (amount / common, period / common);
        let full = size.parts().checked_mul(part);
        let full = full.filter(|full| *full <= FULL_MAX && drops <= DROPS_MAX);
        Ok(Self {
            size,
            full: full
                .and_then(|it| i128::try_from(it).ok())
                .ok_or_else(too_fine)?,
            drops: u64::try_from(drops).map_err(|_| too_fine())?,
            part: u64::try_from(part).map_err(|_| too_fine())?,
        })
    }

    /// So many parts in so many nanoseconds, two numbers that have no common divisor. None if that is too much.
    pub(crate) fn reduced(size: Units, parts: u64, nanos: u64) -> Option<Self> {
        let full = size.parts().checked_mul(u128::from(nanos))?;
        let fits = full <= FULL_MAX && u128::from(parts) <= DROPS_MAX && nanos > 0;
        Some(Self {
            size,
            full: i128::try_from(full).ok().filter(|_| fits)?,
            drops: parts,
            part: nanos,
        })
    }

    /// What fits.
    #[inline]
    pub(crate) const fn size(&self) -> Units {
        self.size
    }

    /// Drops that fit.
    #[inline]
    pub(crate) const fn full(&self) -> i128 {
        self.full
    }

    /// Drops a part of a unit.
    #[inline]
    pub(crate) const fn part(&self) -> u64 {
        self.part
    }

    /// Drops a nanosecond.
    #[inline]
    pub(crate) const fn drops(&self) -> u64 {
        self.drops
    }

    /// What comes in so many nanoseconds: at most 2⁶² · 2⁶⁴ drops.
    #[inline]
    pub(crate) const fn in_nanos(&self, nanos: u64) -> i128 {
        self.drops as i128 * nanos as i128
    }

    /// So much in drops; what is far beyond any debt is cut.
    #[inline]
    pub(crate) fn in_drops(&self, cost: Units) -> i128 {
        let part = u128::from(self.part);
        let drops = match u64::try_from(cost.parts()) {
            // Up to 18 thousand million units, with room for any part.
            Ok(parts) => u128::from(parts) * part,
            Err(_) => cost.parts().saturating_mul(part),
        };
        // It is at most MISSING_MAX, which fits.
        drops.min(MISSING_MAX as u128) as i128
    }

    /// What is missing after so many nanoseconds.
    #[inline]
    pub(crate) fn after(&self, missing: i128, nanos: u64) -> i128 {
        (missing - self.in_nanos(nanos)).max(0)
    }

    /// What is missing once the cost is taken, or why it is not.
    #[inline]
    pub(crate) fn take(&self, missing: i128, cost: Units) -> Result<i128, Short> {
        if cost.parts() > self.size.parts() {
            return Err(Short::Always);
        }
        // The cost fits, so it is at most FULL_MAX drops.
        let missing = missing + (cost.parts() * u128::from(self.part)) as i128;
        if missing <= self.full {
            Ok(missing)
        } else {
            Err(Short::By(missing - self.full))
        }
    }

    /// What is missing once so much is charged.
    #[inline]
    pub(crate) fn charge(&self, missing: i128, cost: Units) -> i128 {
        (missing + self.in_drops(cost)).min(MISSING_MAX)
    }

    /// What is missing once so much is given back.
    #[inline]
    pub(crate) fn refund(&self, missing: i128, cost: Units) -> i128 {
        (missing - self.in_drops(cost)).max(0)
    }

    /// The most that can be taken while so much is missing.
    #[inline]
    pub(crate) fn remaining(&self, missing: i128) -> Units {
        let there = (self.full - missing).max(0) as u128;
        Units::from_parts(divided(there, self.part))
    }

    /// The nanoseconds until so many drops have come in, rounded up; none if they never do.
    #[inline]
    pub(crate) fn nanos_for(&self, drops: i128) -> Option<u128> {
        let drops = drops.max(0) as u128;
        match (drops, self.drops) {
            (0, _) => Some(0),
            (_, 0) => None,
            (drops, each) => Some(divided(drops + u128::from(each - 1), each)),
        }
    }

    /// How the bucket stands, by a clock that is so far behind the last change.
    #[inline]
    pub(crate) fn standing(&self, missing: i128, behind: u64) -> Standing {
        let reset = match self.nanos_for(missing) {
            Some(0) => Duration::ZERO,
            Some(nanos) => span(nanos.saturating_add(u128::from(behind))),
            None => Duration::MAX,
        };
        Standing {
            remaining: self.remaining(missing),
            reset,
        }
    }

    /// What to tell who comes too early.
    #[inline]
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

    /// What is missing by another rule, the ratio of what is there being kept, or the debt.
    pub(crate) fn change(&self, next: &Self, missing: i128, rest: &mut Rest) -> i128 {
        let there = self.full - missing;
        if there < 0 {
            // What the rest has is owed less.
            let owed = rest.scale_debt(there.unsigned_abs(), next.part, self.part);
            let owed = i128::try_from(owed).unwrap_or(MISSING_MAX);
            return next.full.saturating_add(owed).min(MISSING_MAX);
        }
        let there = rest.scale(
            there.unsigned_abs(),
            next.full.unsigned_abs(),
            self.full.unsigned_abs(),
        );
        next.full - i128::try_from(there).unwrap_or(next.full).min(next.full)
    }
}

/// What is short of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// So many drops.
    By(i128),
    /// It is more than ever fits.
    Always,
}

/// Divides by a number of 64 bits, mostly by a short division.
#[inline]
fn divided(number: u128, by: u64) -> u128 {
    match u64::try_from(number) {
        Ok(number) => u128::from(number / by.max(1)),
        Err(_) => number / u128::from(by.max(1)),
    }
}
