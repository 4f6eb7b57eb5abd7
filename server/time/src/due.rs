//! A deadline that may be absent, in the space of a single point in time.
//!
//! `Option<Time>` takes two words, and [`Due`] takes one. That matters for deadlines that are kept with each of many
//! things and read on every request. Elsewhere, `Option<Time>` is better.

use crate::Time;

/// A deadline, or none. The last representable time, 584 years after the origin, stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(Time);

impl Due {
    /// No deadline.
    pub const NEVER: Self = Self(Time::MAX);

    /// Returns the deadline, if there is one.
    #[inline]
    pub fn time(self) -> Option<Time> {
        (self != Self::NEVER).then_some(self.0)
    }

    /// Returns whether the deadline has come at `now`.
    #[inline]
    pub fn is_by(self, now: Time) -> bool {
        self.0 <= now && self != Self::NEVER
    }

    /// Returns the earlier of this deadline and `time`.
    #[inline]
    #[must_use]
    pub fn or_at(self, time: Time) -> Self {
        Self(self.0.min(time))
    }
}

impl Default for Due {
    fn default() -> Self {
        Self::NEVER
    }
}

impl From<Time> for Due {
    fn from(time: Time) -> Self {
        Self(time)
    }
}

impl From<Option<Time>> for Due {
    fn from(time: Option<Time>) -> Self {
        time.map_or(Self::NEVER, Self)
    }
}

const _: () = assert!(size_of::<Due>() == size_of::<Time>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_time_or_none_and_the_end_of_time_is_none() {
        let (early, late) = (Time::from_secs(1), Time::from_secs(2));
        assert_eq!(Due::from(early).time(), Some(early));
        assert_eq!(Due::from(Some(early)).time(), Some(early));
        for never in [
            Due::NEVER,
            Due::default(),
            Due::from(None),
            Due::from(Time::MAX),
        ] {
            assert_eq!(never.time(), None);
            assert!(!never.is_by(Time::MAX));
            assert_eq!(never.or_at(late).time(), Some(late));
        }
        assert_eq!(Due::from(late).or_at(early).time(), Some(early));
        assert_eq!(Due::from(early).or_at(late).time(), Some(early));
        assert!(Due::from(early).is_by(early));
        assert!(!Due::from(late).is_by(early));
    }
}
