//! A fast clock: the processor's counter, from 1970 on.

#![expect(
    clippy::disallowed_methods,
    reason = "the one file of this crate that reads clocks"
)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::moment::Moment;

/// The processor's steady counter, or, where there is none, the system's monotonic clock. It counts from 1970 in UTC,
/// by the wall clock at the time of its creation. So windows begin with the hour, and setting the wall clock moves none
/// of them.
///
/// The first clock of a program measures the counter's speed, which may take some milliseconds.
#[derive(Clone, Debug)]
pub struct StdClock {
    clock: quanta::Clock,
    anchor: u64,
    at_anchor: Moment,
}

impl StdClock {
    /// Creates a clock that shows the wall clock's present time.
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
