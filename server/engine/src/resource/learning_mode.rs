//! Whether a resource is in learning mode, and until when.
//!
//! A fresh master confirms reports until the leases of its predecessors have ended. At the root, the
//! templates determine when that is. Below it, the parent does: until its first answer nothing is decided.
//! Once learning is over it stays over, but for one case: the algorithm promised no total, so there was
//! nothing to learn, and now it promises one.

use std::time::Duration;

use crate::time::Time;

/// Whether a resource is in learning mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LearningMode {
    /// Below the root, before the parent's first answer: it learns, for an unknown time.
    Undecided,
    /// It learns until then. It goes on until that is noticed ([`LearningMode::is_due`]).
    Until(Time),
    /// It does not: all that is out is known.
    Over,
}

/// What a change of the algorithm does to learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relearns {
    /// No total was promised before, so nothing was learned.
    Anew,
    /// A change may end learning, never start it or make it longer.
    NoLonger,
    /// How long leases last that a predecessor handed out does not change any more.
    AsBefore,
}

impl LearningMode {
    /// It learns until then, unless that is over.
    pub(super) fn begun(until: Time, now: Time) -> Self {
        if until > now {
            Self::Until(until)
        } else {
            Self::Over
        }
    }

    /// The parent has answered for the first time. By the algorithm in it, learning takes as long as
    /// `by_algorithm`; and as long as leases last that are out. But if it knows when the last of them ends
    /// that our predecessors handed out (`inherited_until`), it is that.
    pub(super) fn decide(
        &mut self,
        by_algorithm: Self,
        out_until: Time,
        inherited_until: Option<Time>,
    ) {
        *self = inherited_until.map_or(by_algorithm.at_least(out_until), Self::Until);
    }

    /// The algorithm changed. With this one, learning that begins now would be `anew`. What is undecided
    /// stays so.
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

    /// The parent learns itself: while this server learns, it does so until then at least.
    pub(super) fn outlast(&mut self, until: Time) {
        *self = self.at_least(until);
    }

    /// The parent knows how the whole is divided: learning ends when that does which our predecessors
    /// handed out.
    pub(super) fn end_with(&mut self, inherited_until: Time) {
        if let Self::Until(until) = self {
            *until = inherited_until;
        }
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        *self = Self::Over;
    }

    /// Whether this server may not know all that is out.
    pub(super) fn is_on(self) -> bool {
        self != Self::Over
    }

    /// The same at that time, also if its end was not handled yet.
    pub(super) fn is_on_at(self, now: Time) -> bool {
        match self {
            Self::Undecided => true,
            Self::Until(until) => until > now,
            Self::Over => false,
        }
    }

    /// When it ends. None: it is over, or undecided.
    pub(super) fn until(self) -> Option<Time> {
        match self {
            Self::Until(until) => Some(until),
            Self::Undecided | Self::Over => None,
        }
    }

    /// Whether it is to be ended.
    pub(super) fn is_due(self, now: Time) -> bool {
        self.until().is_some_and(|until| until <= now)
    }

    /// How long it lasts still. None: it is over, or undecided.
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
    fn learning_begins_unless_all_is_over_that_predecessors_granted() {
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
            // It was learning all the time that it took to be answered.
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
    fn it_goes_on_until_somebody_notices_that_it_is_over() {
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
