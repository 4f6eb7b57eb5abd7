//! The operating system's clock.

#![expect(
    clippy::disallowed_methods,
    reason = "the one file of this crate that reads clocks"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::moment::Moment;

/// The system's monotonic clock, counted from the beginning of 1970 in UTC as the wall clock had it when this was made:
/// so windows begin with the hour, and setting the wall clock moves none of them.
#[derive(Clone, Copy, Debug)]
pub struct StdClock {
    anchor: Instant,
    at_anchor: Moment,
}

impl StdClock {
    /// A clock that shows what the wall clock shows now.
    pub fn new() -> Self {
        let anchor = Instant::now();
        // A wall clock before 1970 is wrong in any case.
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
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
        self.at_anchor.after(self.anchor.elapsed())
    }
}
