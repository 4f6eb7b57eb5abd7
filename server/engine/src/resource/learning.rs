//! Learning mode of a resource, and its end.
//!
//! A new master confirms reports until the leases of its predecessors have ended. At the root, the templates determine
//! that time. Below the root, the parent does, with its first answer. Learning mode starts again in one case only: the
//! old algorithm promised no total, so there was nothing to learn, and the new one promises a total.

use std::time::Duration;

use crate::time::Time;

/// Learning mode of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LearningMode {
    /// Below the root, before the parent's first answer: the server learns, for an unknown time.
    Undecided,
    /// The server learns until the first call of [`LearningMode::end`] after this time.
    Until(Time),
    /// The server does not learn: it knows all leases.
    Over,
}

/// Effect of a changed algorithm on learning mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relearns {
    /// The old algorithm promised no total, so nothing was learned. Learning mode starts.
    Anew,
    /// The change may end learning mode, but never start it or make it longer.
    NoLonger,
    /// The change has no effect, since the lease lengths of predecessors do not change any more.
    AsBefore,
}

impl LearningMode {
    /// Returns learning mode until that time, or none if the time is over.
    pub(super) fn begun(until: Time, now: Time) -> Self {
        if until > now {
            Self::Until(until)
        } else {
            Self::Over
        }
    }

    /// Decides by the parent's first answer. The algorithm in it gives `by_algorithm`, and learning lasts at least as
    /// long as leases that may be in use (`out_until`). If the parent knows when the last lease of our predecessors
    /// ends (`inherited_until`), that time counts alone.
    pub(super) fn decide(
        &mut self,
        by_algorithm: Self,
        out_until: Time,
        inherited_until: Option<Time>,
    ) {
        *self = inherited_until.map_or(by_algorithm.at_least(out_until), Self::Until);
    }

    /// Applies a changed algorithm. With it, learning that begins now would be `anew`. An undecided mode stays
    /// undecided.
    pub(super) fn change_algorithm(&mut self, relearns: Relearns, anew: Self) {
        *self = match (*self, relearns, anew) {
            (Self::Undecided, _, _) => Self::Undecided,
            (before, Relearns::AsBefore, _) => before,
            (_, Relearns::Anew, anew) => anew,
            (Self::Until(before), Relearns::NoLonger, Self::Until(anew)) => {
                Self::Until(before.min(anew))
            }
            (_, Relearns::NoLonger, _) => Self::Over,
        };
    }

    /// Learns until that time at least, because the parent learns itself. Learning that is over stays over.
    pub(super) fn outlast(&mut self, until: Time) {
        *self = self.at_least(until);
    }

    /// Ends learning mode with the last lease of our predecessors, because the parent knows the division of the whole.
    pub(super) fn end_with(&mut self, inherited_until: Time) {
        if let Self::Until(until) = self {
            *until = inherited_until;
        }
    }

    /// Ends learning mode.
    pub(super) fn end(&mut self) {
        *self = Self::Over;
    }

    /// Whether this server may not know all leases: it is in learning mode, or does not know yet for how long.
    pub(super) fn is_on(self) -> bool {
        self != Self::Over
    }

    /// Whether the mode is on at that time, even if its end was not handled yet.
    pub(super) fn is_on_at(self, now: Time) -> bool {
        match self {
            Self::Undecided => true,
            Self::Until(until) => until > now,
            Self::Over => false,
        }
    }

    /// Returns the end. None: it is over, or undecided.
    pub(super) fn until(self) -> Option<Time> {
        match self {
            Self::Until(until) => Some(until),
            Self::Undecided | Self::Over => None,
        }
    }

    /// Whether learning mode should end now.
    pub(super) fn is_due(self, now: Time) -> bool {
        self.until().is_some_and(|until| until <= now)
    }

    /// Returns the remaining time. None: it is over, or undecided.
    pub(super) fn remaining(self, now: Time) -> Option<Duration> {
        let until = self.until().filter(|until| *until > now);
        until.map(|until| until.since(now))
    }

    fn at_least(self, time: Time) -> Self {
        match self {
            Self::Until(until) => Self::Until(until.max(time)),
            Self::Undecided | Self::Over => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LearningMode::{Over, Undecided};
    use super::*;

    const NOW: Time = Time::from_secs(100);

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn until(seconds: u64) -> LearningMode {
        LearningMode::Until(at(seconds))
    }

    #[test]
    fn learning_begins_unless_all_leases_of_predecessors_have_ended() {
        assert_eq!(LearningMode::begun(at(101), NOW), until(101));
        assert_eq!(LearningMode::begun(at(100), NOW), Over);
    }

    #[test]
    fn the_first_answer_of_the_parent_decides() {
        for (by_algorithm, out_until, inherited, after) in [
            (until(160), 100, None, until(160)),
            (until(160), 170, None, until(170)),
            (Over, 170, None, Over),
            (until(160), 170, Some(110), until(110)),
            // The server learned during the whole wait for the answer.
            (Over, 100, Some(90), until(90)),
        ] {
            let mut learning = Undecided;
            learning.decide(by_algorithm, at(out_until), inherited.map(at));
            assert_eq!(
                learning, after,
                "{by_algorithm:?} {out_until} {inherited:?}"
            );
        }
    }

    #[test]
    fn another_algorithm_ends_learning_and_starts_it_only_if_there_was_nothing_to_learn() {
        use Relearns::{Anew, AsBefore, NoLonger};
        for (before, relearns, anew, after) in [
            (Undecided, Anew, until(160), Undecided),
            (Undecided, NoLonger, Over, Undecided),
            (until(130), Anew, until(160), until(160)),
            (Over, Anew, until(160), until(160)),
            (until(130), NoLonger, until(160), until(130)),
            (until(130), NoLonger, until(110), until(110)),
            (until(130), NoLonger, Over, Over),
            (Over, NoLonger, until(160), Over),
            (until(130), AsBefore, until(110), until(130)),
            (Over, AsBefore, until(110), Over),
        ] {
            let mut learning = before;
            learning.change_algorithm(relearns, anew);
            assert_eq!(learning, after, "{before:?} {relearns:?} {anew:?}");
        }
    }

    #[test]
    fn a_parent_that_learns_makes_it_longer_and_one_that_knows_ends_it() {
        for (before, outlasts, ends_with, end) in [
            (Undecided, Undecided, Undecided, Over),
            (until(130), until(150), until(120), Over),
            (until(170), until(170), until(120), Over),
            (Over, Over, Over, Over),
        ] {
            let mut learning = before;
            learning.outlast(at(150));
            assert_eq!(learning, outlasts, "{before:?}");
            let mut learning = before;
            learning.end_with(at(120));
            assert_eq!(learning, ends_with, "{before:?}");
            learning.end();
            assert_eq!(learning, end);
        }
    }

    #[test]
    fn learning_lasts_until_its_end_is_handled() {
        let left = |seconds| Some(Duration::from_secs(seconds));
        for (learning, is_on, is_on_at, is_due, remaining) in [
            (Undecided, true, true, false, None),
            (until(130), true, true, false, left(30)),
            (until(100), true, false, true, None),
            (Over, false, false, false, None),
        ] {
            assert_eq!(learning.is_on(), is_on, "{learning:?}");
            assert_eq!(learning.is_on_at(NOW), is_on_at, "{learning:?}");
            assert_eq!(learning.is_due(NOW), is_due, "{learning:?}");
            assert_eq!(learning.remaining(NOW), remaining, "{learning:?}");
        }
    }
}
