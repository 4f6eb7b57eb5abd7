//! A point in time: how long after an origin that the driver chooses.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point in time on a monotonic clock. A deadline that may be absent is an `Option<Time>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(Duration);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The time that long after the origin.
    pub const fn after_origin(span: Duration) -> Self {
        Self(span)
    }

    /// How long after the origin this is.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Saturates at the last representable time.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0.as_secs_f64())
    }
}
