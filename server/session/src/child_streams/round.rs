//! Rounds: changes within one are pushed together.

use std::time::Duration;

use crate::time::Time;

/// State of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Round {
    /// No change since the last round.
    #[default]
    Quiet,
    /// A round that ends at this time.
    Gathering { until: Time },
}

impl Round {
    /// Begins a round of that length after a change, unless a round is open.
    pub(super) fn begin(&mut self, length: Duration, now: Time) {
        if !self.is_gathering() {
            let until = now + length;
            *self = Self::Gathering { until };
        }
    }

    /// Ends the round if its time is over. Returns whether it was.
    pub(super) fn end(&mut self, now: Time) -> bool {
        let is_over = self.until().is_some_and(|until| until <= now);
        if is_over {
            *self = Self::Quiet;
        }
        is_over
    }

    pub(super) const fn is_gathering(self) -> bool {
        matches!(self, Self::Gathering { .. })
    }

    pub(super) const fn until(self) -> Option<Time> {
        match self {
            Self::Quiet => None,
            Self::Gathering { until } => Some(until),
        }
    }
}
