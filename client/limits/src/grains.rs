//! Counts in grains: parts of a part of a unit, so fine that a change of limit leaves no fraction.
//!
//! While a limit stays, a grain is a part. If all counts change by the factor by/of, a grain becomes 1/of of its
//! previous size. Ratios of limits are small numbers, and grains that are no longer needed are removed, so counts stay
//! exact. If they no longer fit, they are rounded up in the finest grains that do.

use crate::wide::{gcd, scaled_up};
use std::num::NonZeroU64;

/// Number of grains per part, at least one.
pub(crate) type Grains = NonZeroU64;

/// Largest count in grains: a debt that no window can hold.
pub(crate) const COUNT_MAX: u128 = 1 << 126;

/// Largest number of grains per part, and per limit.
const GRAINS_MAX: u128 = 1 << 62;
const LIMIT_MAX: u128 = 1 << 124;

/// A change of counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaling {
    by: u128,
    of: u128,
    finer: u32,
    /// Grains per part after the change.
    pub(crate) grains: Grains,
}

impl Scaling {
    /// Creates a change of all counts by the factor `by`/`of`; `largest` is the largest count, and limits have at most
    /// `limit` parts. `of` is not 0.
    pub(crate) fn new(grains: Grains, by: u128, of: u128, largest: u128, limit: u128) -> Self {
        let common = gcd(by, of).max(1);
        let (by, of) = (by / common, of / common);
        let grains_max = (LIMIT_MAX / limit.max(1)).min(GRAINS_MAX);
        let before = u128::from(grains.get());
        let fits = largest.checked_mul(by).is_some_and(|it| it <= COUNT_MAX);
        let after = before
            .checked_mul(of)
            .filter(|it| fits && *it <= grains_max);
        if let Some(grains) = after
            .and_then(|it| u64::try_from(it).ok())
            .and_then(Grains::new)
        {
            return Self {
                by,
                of: 1,
                finer: 0,
                grains,
            };
        }
        let finer = (grains_max / before).checked_ilog2().unwrap_or(0);
        let finer = finer.min(largest.leading_zeros() / 2);
        let grains = grains.get().checked_shl(finer).and_then(Grains::new);
        Self {
            by,
            of,
            finer,
            grains: grains.unwrap_or(Grains::MIN),
        }
    }

    /// Creates a change of counts to whole parts, rounded up, if a limit of `limit` parts does not fit in such fine
    /// grains.
    pub(crate) fn to_parts(grains: Grains, limit: u128) -> Option<Self> {
        let fits = u128::from(grains.get()) <= (LIMIT_MAX / limit.max(1)).max(1);
        (!fits).then_some(Self {
            by: 1,
            of: u128::from(grains.get()),
            finer: 0,
            grains: Grains::MIN,
        })
    }

    /// Returns a count after the change, rounded up.
    pub(crate) fn of(&self, count: u128) -> u128 {
        scaled_up(count << self.finer, self.by, self.of).min(COUNT_MAX)
    }
}

/// Returns the largest number that divides all counts and the grains, and the grains after the division.
pub(crate) fn coarser(grains: Grains, counts: impl IntoIterator<Item = u128>) -> (u128, Grains) {
    let grains = u128::from(grains.get());
    let common = counts
        .into_iter()
        .fold(grains, |common, count| match common {
            1 => 1,
            common => gcd(common, count),
        });
    let coarser = u64::try_from(grains / common).ok().and_then(Grains::new);
    (common, coarser.unwrap_or(Grains::MIN))
}
