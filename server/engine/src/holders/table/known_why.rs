//! Why a holder got what it got, as far as that is remembered: without the numbers of the division.
//!
//! Status pages show the present numbers, which change with every claim. Where these no longer explain the grant, the
//! reason is [`Reason::DividedBefore`].

use crate::division::{Bound, Reason, Why};

/// The part of a [`Why`] that the table keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownWhy {
    /// The rule that decided the share.
    pub decided_by: DecidedBy,
    /// The bound that made the grant differ from the share.
    pub bound: Bound,
}

/// The rule that decided a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// The algorithm.
    Division,
    /// See [`Reason::Learning`].
    Learning,
    /// See [`Reason::WaitsForParent`].
    WaitsForParent,
    /// See [`Reason::ChildLearns`].
    ChildLearns,
    /// See [`Reason::Replaced`].
    Replaced,
}

impl KnownWhy {
    /// Keeps the rule and the bound of a [`Why`].
    pub(crate) fn of(why: Why) -> Self {
        let decided_by = match why.reason {
            Reason::Learning => DecidedBy::Learning,
            Reason::WaitsForParent => DecidedBy::WaitsForParent,
            Reason::ChildLearns => DecidedBy::ChildLearns,
            Reason::Replaced => DecidedBy::Replaced,
            _ => DecidedBy::Division,
        };
        Self {
            decided_by,
            bound: why.bound,
        }
    }

    /// Why, as it is shown. `division`: why the holder would have that share by the division of the moment. Absent: it
    /// would have another one.
    pub(crate) fn shown(self, division: Option<Reason>) -> Why {
        let reason = match self.decided_by {
            DecidedBy::Division => division.unwrap_or(Reason::DividedBefore),
            DecidedBy::Learning => Reason::Learning,
            DecidedBy::WaitsForParent => Reason::WaitsForParent,
            DecidedBy::ChildLearns => Reason::ChildLearns,
            DecidedBy::Replaced => Reason::Replaced,
        };
        Why {
            reason,
            bound: self.bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_is_shown_with_the_numbers_of_the_moment_or_without() {
        let then = Reason::FairLevel { level: 50.0 };
        let now = Reason::FairLevel { level: 70.0 };
        for (reason, division, shown) in [
            (then, Some(now), now),
            (then, None, Reason::DividedBefore),
            (Reason::EnoughForAll, Some(now), now),
            (Reason::EnoughForAll, None, Reason::DividedBefore),
            (Reason::Learning, Some(now), Reason::Learning),
            (Reason::Learning, None, Reason::Learning),
            (Reason::ChildLearns, Some(now), Reason::ChildLearns),
            (Reason::WaitsForParent, Some(now), Reason::WaitsForParent),
            (Reason::Replaced, Some(now), Reason::Replaced),
        ] {
            let bound = Bound::LearningLeft;
            let known = KnownWhy::of(Why { reason, bound });
            let expected = Why {
                reason: shown,
                bound,
            };
            assert_eq!(known.shown(division), expected, "{reason:?}");
        }
    }
}
