//! Why a holder got what it got, as it is remembered: without numbers.
//!
//! The numbers of a [`Why`] are those of a whole division, which is another one with every claim. They would be the
//! largest part of what is kept of a holder, and what is shown has those of the moment.

use crate::algorithm::{Bound, Reason, Why};

/// By what a grant was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Why the share was what it was.
    pub reason: DecidedBy,
    /// What kept the grant from being the share.
    pub bound: Bound,
}

/// A [`Reason`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// See [`Reason::EnoughForAll`].
    EnoughForAll,
    /// See [`Reason::NoAlgorithm`].
    NoAlgorithm,
    /// See [`Reason::PerClient`].
    PerClient,
    /// See [`Reason::Proportional`].
    Proportional,
    /// See [`Reason::FairLevel`].
    FairLevel,
    /// See [`Reason::BandLevel`].
    BandLevel,
    /// See [`Reason::BandSatisfied`].
    BandSatisfied,
    /// See [`Reason::ByBand`].
    ByBand,
    /// See [`Reason::DividedBefore`].
    DividedBefore,
    /// See [`Reason::TemplateGone`].
    TemplateGone,
    /// See [`Reason::Learning`].
    Learning,
    /// See [`Reason::WaitsForParent`].
    WaitsForParent,
    /// See [`Reason::ChildLearns`].
    ChildLearns,
}

impl DecidedBy {
    fn of(reason: Reason) -> Self {
        match reason {
            Reason::EnoughForAll => DecidedBy::EnoughForAll,
            Reason::NoAlgorithm => DecidedBy::NoAlgorithm,
            Reason::PerClient { .. } => DecidedBy::PerClient,
            Reason::Proportional { .. } => DecidedBy::Proportional,
            Reason::FairLevel { .. } => DecidedBy::FairLevel,
            Reason::BandLevel { .. } => DecidedBy::BandLevel,
            Reason::BandSatisfied => DecidedBy::BandSatisfied,
            Reason::ByBand => DecidedBy::ByBand,
            Reason::DividedBefore => DecidedBy::DividedBefore,
            Reason::TemplateGone => DecidedBy::TemplateGone,
            Reason::Learning => DecidedBy::Learning,
            Reason::WaitsForParent => DecidedBy::WaitsForParent,
            Reason::ChildLearns => DecidedBy::ChildLearns,
        }
    }
}

impl Decided {
    /// What is remembered of that.
    pub(crate) fn of(why: Why) -> Self {
        Self {
            reason: DecidedBy::of(why.reason),
            bound: why.bound,
        }
    }

    /// Why, where the division of the moment gives the holder its share for that reason. If what is remembered had
    /// numbers, they are those of the moment, or nobody knows them any more.
    pub(crate) fn why(self, division: Reason) -> Why {
        let reason = match self.reason {
            DecidedBy::EnoughForAll => Reason::EnoughForAll,
            DecidedBy::NoAlgorithm => Reason::NoAlgorithm,
            DecidedBy::BandSatisfied => Reason::BandSatisfied,
            DecidedBy::ByBand => Reason::ByBand,
            DecidedBy::DividedBefore => Reason::DividedBefore,
            DecidedBy::TemplateGone => Reason::TemplateGone,
            DecidedBy::Learning => Reason::Learning,
            DecidedBy::WaitsForParent => Reason::WaitsForParent,
            DecidedBy::ChildLearns => Reason::ChildLearns,
            DecidedBy::PerClient
            | DecidedBy::Proportional
            | DecidedBy::FairLevel
            | DecidedBy::BandLevel => {
                let is_alike = DecidedBy::of(division) == self.reason;
                if is_alike {
                    division
                } else {
                    Reason::DividedBefore
                }
            }
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

    const WITHOUT_NUMBERS: [Reason; 9] = [
        Reason::EnoughForAll,
        Reason::NoAlgorithm,
        Reason::BandSatisfied,
        Reason::ByBand,
        Reason::DividedBefore,
        Reason::TemplateGone,
        Reason::Learning,
        Reason::WaitsForParent,
        Reason::ChildLearns,
    ];

    fn with_numbers(n: f64) -> [Reason; 4] {
        [
            Reason::PerClient { capacity: n },
            Reason::Proportional {
                equal_share: n,
                top_up: 1.0 / n,
            },
            Reason::FairLevel { level: n },
            Reason::BandLevel {
                band_capacity: 2.0 * n,
                level: n,
            },
        ]
    }

    fn shown(then: Reason, now: Reason) -> Reason {
        let bound = Bound::LearningLeft;
        let decided = Decided::of(Why {
            reason: then,
            bound,
        });
        let why = decided.why(now);
        assert_eq!(why.bound, bound);
        why.reason
    }

    #[test]
    fn a_reason_without_numbers_is_remembered() {
        for then in WITHOUT_NUMBERS {
            for now in WITHOUT_NUMBERS.into_iter().chain(with_numbers(7.0)) {
                assert_eq!(shown(then, now), then);
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_moment_or_nobody_knows_them() {
        for (then, now) in with_numbers(3.0).into_iter().zip(with_numbers(7.0)) {
            assert_eq!(shown(then, now), now);
            for other in WITHOUT_NUMBERS {
                assert_eq!(shown(then, other), Reason::DividedBefore);
            }
        }
        let [per_client, proportional, ..] = with_numbers(7.0);
        assert_eq!(shown(per_client, proportional), Reason::DividedBefore);
    }
}
