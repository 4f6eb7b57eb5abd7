//! A decision, before it becomes a lease.

use crate::amount::Amount;
use crate::division::{Bound, Reason, Why};

/// The amount that a holder gets, and the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    /// Its share once all holders have shrunk or grown to theirs.
    pub(crate) share: Amount,
    pub(crate) gets: Amount,
    /// The most it could have got.
    pub(crate) room: Amount,
    /// It gets less than its share because of leases of others.
    pub(crate) waits: bool,
    /// In learning mode, the amount to confirm, if the holder gets only a part of it because the reports exceed the
    /// capacity.
    pub(crate) cut_from: Option<Amount>,
    pub(crate) why: KnownWhy,
}

/// The part of a [`Why`] that is kept.
///
/// Status pages show the present numbers, which change with every claim. Where these no longer explain the grant, the
/// reason is [`Reason::DividedBefore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownWhy {
    /// The rule that decided the share.
    pub(crate) decided_by: DecidedBy,
    /// The bound that made the grant differ from the share.
    pub(crate) bound: Bound,
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
        let now = || Reason::FairLevel { level: 70.0 };
        for (decided_by, division, shown) in [
            (DecidedBy::Division, Some(now()), now()),
            (DecidedBy::Division, None, Reason::DividedBefore),
            (DecidedBy::Learning, Some(now()), Reason::Learning),
            (DecidedBy::Learning, None, Reason::Learning),
            (DecidedBy::ChildLearns, Some(now()), Reason::ChildLearns),
            (
                DecidedBy::WaitsForParent,
                Some(now()),
                Reason::WaitsForParent,
            ),
            (DecidedBy::Replaced, Some(now()), Reason::Replaced),
        ] {
            let bound = Bound::LearningLeft;
            let known = KnownWhy { decided_by, bound };
            let reason = shown;
            assert_eq!(known.shown(division), Why { reason, bound });
        }
    }
}
