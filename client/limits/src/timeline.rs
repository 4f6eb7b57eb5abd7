//! Time of a limit, by a clock that may be set back.
//!
//! A small step back counts as no time. A large one would stop a limit until the clock is there again: for two days, if
//! the clock was wrong by two days. So after a step back of more than a minute, and of more than ten times the time in
//! which the limit fills, an offset lets time go on from the latest time. Levels and debts stay.

use crate::algorithm::Algorithm;
use crate::moment::Moment;

/// Latest time of a limit, and the offset of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// With the offset.
    latest: Moment,
    /// Sum of the steps back, in nanoseconds.
    offset: u64,
}

/// Largest step back that counts as no time, if the limit fills within a tenth of it.
pub(crate) const STEP_MAX: u64 = 60_000_000_000;

/// Returns the largest step back that counts as no time, in nanoseconds.
pub(crate) fn step_max(fills: u64) -> u64 {
    fills.saturating_mul(10).max(STEP_MAX)
}

impl Timeline {
    /// Before any time was given.
    pub(crate) const START: Self = Self {
        latest: Moment::FIRST,
        offset: 0,
    };

    /// Returns the time of the limit at the clock's time, and keeps it as the latest one.
    #[inline]
    pub(crate) fn pass(&mut self, limit: &impl Algorithm, clock: Moment) -> Moment {
        let now = clock.after_nanos(self.offset);
        if now >= self.latest {
            self.latest = now;
            return now;
        }
        let now = self.behind(limit, now);
        self.offset = now.nanos_since(clock);
        now
    }

    /// Returns the time of the limit at the clock's time.
    #[inline]
    pub(crate) fn look(&self, limit: &impl Algorithm, clock: Moment) -> Moment {
        let now = clock.after_nanos(self.offset);
        if now >= self.latest {
            return now;
        }
        self.behind(limit, now)
    }

    /// Returns the time after a step back to `now`.
    #[cold]
    fn behind(&self, limit: &impl Algorithm, now: Moment) -> Moment {
        if self.latest.nanos_since(now) > step_max(limit.fills()) {
            self.latest
        } else {
            now
        }
    }
}
