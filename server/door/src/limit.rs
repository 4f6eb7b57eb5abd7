//! A limit: its texts, its bound, its use, and its refusals.
//!
//! The code that enforces a limit reports its use and its refusals here. Every refusal is counted. Each limit logs once
//! a minute at most: a flood must not flood the log.
//!
//! Bytes in use are counted here, and not by `doorward_limits::InFlight`, because an answer that is already made counts
//! even beyond the limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tracing::warn;

/// Texts of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitTexts {
    /// Name in metrics and tables.
    pub name: &'static str,
    /// Flag that sets the bound.
    pub flag: &'static str,
    /// A few words for people.
    pub what: &'static str,
}

/// A limit.
#[derive(Debug)]
pub struct Limit {
    texts: LimitTexts,
    /// `u64::MAX`: no bound is set.
    max: AtomicU64,
    /// `u64::MAX`: the use is not counted.
    used: AtomicU64,
    refused: AtomicU64,
    /// Minute of the last log line, from 1 on. 0: there was none.
    logged_in: AtomicU64,
}

impl Default for Limit {
    fn default() -> Self {
        Self::new(LimitTexts::default())
    }
}

impl Limit {
    /// Makes a limit without a bound, whose use is not counted.
    pub fn new(texts: impl Into<LimitTexts>) -> Self {
        Self {
            texts: texts.into(),
            max: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(u64::MAX),
            refused: AtomicU64::default(),
            logged_in: AtomicU64::default(),
        }
    }

    /// Returns its texts.
    pub fn texts(&self) -> LimitTexts {
        self.texts
    }

    /// Sets the bound.
    pub fn set_max(&self, max: u64) {
        self.max.store(max, Ordering::Relaxed);
    }

    /// Returns the bound. `u64::MAX`: none is set.
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Returns the bound of a limit whose bound is a duration.
    pub fn span(&self) -> Duration {
        Duration::from_millis(self.max())
    }

    /// Returns the bound as a number of things.
    pub fn count(&self) -> usize {
        usize::try_from(self.max()).unwrap_or(usize::MAX)
    }

    /// Returns the bound where few are enough.
    pub fn small(&self) -> u32 {
        u32::try_from(self.max()).unwrap_or(u32::MAX)
    }

    /// Sets the present use.
    pub fn set_used(&self, used: u64) {
        self.used.store(used, Ordering::Relaxed);
    }

    /// Returns the present use. `u64::MAX`: it is not counted.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of refusals since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Begins to count the use here, unless it is counted already.
    pub fn take_up(&self) {
        let order = Ordering::Relaxed;
        let _counted_already = self.used.compare_exchange(u64::MAX, 0, order, order);
    }

    /// Takes `more`. Returns whether there was enough; if not, takes nothing.
    pub fn take(&self, more: u64) -> bool {
        self.take_of(&self.used, more)
    }

    /// Takes `more` for one caller, of which `used` is the use.
    pub fn take_of(&self, used: &AtomicU64, more: u64) -> bool {
        let max = self.max();
        // Relaxed: only the sum matters, and no other memory depends on it.
        used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|used| *used <= max)
        })
        .is_ok()
    }

    /// Takes `more`, even beyond the bound: the caller is about to free as much.
    pub fn overtake(&self, more: u64) {
        overtake(&self.used, more);
    }

    /// Gives back a part of the taken use.
    pub fn give_back(&self, less: u64) {
        give_back(&self.used, less);
    }

    /// Counts a refusal at `now` after the start, and logs the first one of each minute. Returns the number of earlier
    /// refusals.
    pub fn refuse(&self, now: Duration) -> u64 {
        self.refuse_times(1, now)
    }

    /// Counts `times` refusals in the same way.
    pub fn refuse_times(&self, times: u64, now: Duration) -> u64 {
        let before = self.refused.fetch_add(times, Ordering::Relaxed);
        let minute = now.as_secs() / 60 + 1;
        // If several threads refuse at once, one of them logs it.
        if times > 0 && self.logged_in.swap(minute, Ordering::Relaxed) != minute {
            warn!(
                limit = self.texts.name,
                flag = self.texts.flag,
                max = self.max(),
                refused = before + times,
                "a limit is reached: what comes beyond is refused, and what is there stays"
            );
        }
        before
    }
}

/// Takes `more` for one caller, even beyond the bound.
pub fn overtake(used: &AtomicU64, more: u64) {
    used.fetch_add(more, Ordering::Relaxed);
}

/// Gives back a part of the use of one caller.
pub fn give_back(used: &AtomicU64, less: u64) {
    let before = used.fetch_sub(less, Ordering::Relaxed);
    debug_assert!(before >= less, "more was given back than was taken");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_and_what_is_given_back_is_there_again() {
        let limit = Limit::new(LimitTexts::default());
        limit.set_max(10);
        limit.take_up();
        assert!(limit.take(6));
        assert!(!limit.take(5));
        assert!(limit.take(4));
        limit.give_back(6);
        assert_eq!(limit.used(), 4);
        assert!(!limit.take(u64::MAX - 100));
        assert!(!limit.take(u64::MAX));
        limit.overtake(7);
        assert_eq!(limit.used(), 11);
    }

    #[test]
    fn a_limit_counts_what_it_refuses() {
        let limit = Limit::new(LimitTexts::default());
        for before in 0..3 {
            assert_eq!(limit.refuse(Duration::ZERO), before);
        }
        assert_eq!(limit.refuse_times(0, Duration::ZERO), 3);
        assert_eq!(limit.refuse_times(4, Duration::ZERO), 3);
        assert_eq!(limit.refused(), 7);
    }
}
