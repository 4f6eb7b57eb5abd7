//! The wall clock of budgets, by which the windows of a root turn.

use std::time::Duration;

use crate::templates::window::UnixMillis;
use crate::time::Time;

/// Difference between the wall clock and the engine's time that is believed at once. If the wall clock jumps farther, the
/// engine's time counts, so that no window turns too early.
const JUMP_MAX: Duration = Duration::from_secs(60);

/// The wall clock, as far as it is believed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The wall clock at a time of the engine. None: not known.
    read: Option<(UnixMillis, Time)>,
    /// Whether the newest reading was not believed.
    is_doubted: bool,
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

    /// Reads the wall clock. Returns the time by which it jumped, if that is not believed and was not told yet.
    pub(super) fn read(&mut self, at: UnixMillis, now: Time) -> Option<Duration> {
        let by = Duration::from_millis(self.at(now).abs_diff(at));
        let is_doubted = self.read.is_some() && by > JUMP_MAX;
        if !is_doubted {
            self.read = Some((at, now));
        }
        let was_doubted = std::mem::replace(&mut self.is_doubted, is_doubted);
        (is_doubted && !was_doubted).then_some(by)
    }
}
