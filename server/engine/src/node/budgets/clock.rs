//! The wall clock of budgets, by which the windows of a root turn.

use std::time::Duration;

use crate::budget::window::UnixMillis;
use crate::time::Time;

/// Difference between the wall clock and the engine's time that is believed at once. If the wall clock jumps farther, the
/// engine's time counts, so that no window turns too early.
const JUMP_MAX: Duration = Duration::from_secs(60);

/// The wall clock, as far as it is believed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The wall clock at a time of the engine. None: not known.
    read: Option<(UnixMillis, Time)>,
}

impl Clock {
    /// Returns the wall clock at a time.
    pub(super) fn at(self, now: Time) -> UnixMillis {
        let (at, read) = self.read.unwrap_or_default();
        at.saturating_add(i64::try_from(now.since(read).as_millis()).unwrap_or(i64::MAX))
    }

    /// Whether it was read.
    pub(super) fn is_known(&self) -> bool {
        self.read.is_some()
    }

    /// Reads the wall clock.
    pub(super) fn read(&mut self, at: UnixMillis, now: Time) {
        let jump = Duration::from_millis(self.at(now).abs_diff(at));
        if self.read.is_none() || jump <= JUMP_MAX {
            self.read = Some((at, now));
        }
    }
}
