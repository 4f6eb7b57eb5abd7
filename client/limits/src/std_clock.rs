//! A fast clock.

#![expect(
    clippy::disallowed_methods,
    reason = "the one file of this crate that reads clocks"
)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::moment::Moment;

/// The processor's counter where it has a steady one, or else the system's monotonic clock; from the beginning of 1970 in
/// UTC as the wall clock had it when this was made. So windows begin with the hour, and setting the wall clock moves none
/// of them.
///
/// The first one that a program makes measures how fast the counter is, which may take some milliseconds.
#[derive(Clone, Debug)]
pub struct StdClock {
    clock: quanta::Clock,
    anchor: u64,
    at_anchor: Moment,
}

impl StdClock {
    /// A clock that shows what the wall clock shows now.
    pub fn new() -> Self {
        let clock = quanta::Clock::new();
        let anchor = clock.raw();
        // A wall clock before 1970 is wrong in any case.
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            clock,
            anchor,
            at_anchor: Moment::ORIGIN.after(since_1970),
        }
    }
}

impl Default for StdClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for StdClock {
    #[inline]
    fn now(&self) -> Moment {
        let since = self.clock.delta_as_nanos(self.anchor, self.clock.raw());
        self.at_anchor.after_nanos(since)
    }
}
