//! Bugs that tests can switch on, to prove that a checker finds them.
//!
//! They exist only with the feature `planted`, which packages of tests enable that are built alone. Without it, `is` is
//! false at compile time, and no shipped program contains any of this: a test looks for `MARK` in them.
//! `simulator/planted` and `tests/planted` of this crate say where each is found.

/// A bug, named for what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A shrink frees at once what the holder had, though it may not have heard.
    OlderLeaseForgotten,
    /// What a holder says it has frees nothing of its older leases.
    AcknowledgementForgotten,
    /// A lease counts as over some seconds before it is.
    ExpiresTooEarly,
    /// When a process was started again, what the one before may be using is forgotten.
    FormerProcessForgotten,
    /// The place of a holder that is gone is never used again.
    SlotNotFreed,
    /// What a child server asks by an older epoch counts.
    OlderEpochCounts,
    /// A request that is older than the newest seen counts.
    OlderRequestCounts,
    /// A lease that is heard counts for as long as it was told, as if all clocks went alike.
    ClockMarginForgotten,
    /// A lease is told and heard as if this clock was a good one.
    ClockToleranceForgotten,
    /// A mastership that was not confirmed goes on.
    TermWithoutEnd,
    /// What an earlier master granted just now counts as over long ago.
    VacantSinceForgotten,
    /// Leases by former templates are taken to last no longer than by those in force.
    LongerLeasesForgotten,
    /// Two masterships of one process have the same id.
    MastershipIdsRepeat,
    /// All priorities count as one.
    PrioritiesForgotten,
    /// What is guaranteed to a priority is not kept for it.
    GuaranteesForgotten,
    /// The level is the capacity by the number of clients: what is not wanted is lost.
    LevelOfEqualShares,
    /// A capacity that is one rounding short counts as a shortage.
    RoundingIsAShortage,
    /// The equal share is computed from what a server has, not from what its parent told.
    EqualShareOfOwn,
    /// What others leave is rounded up.
    LeftIsRoundedUp,
    /// Whatever a single holder says counts.
    HolderBoundsForgotten,
    /// A demand curve is told as its last point.
    CurveTooCoarse,
    /// What changes for child servers they hear only when they ask.
    PushesForgotten,
    /// A node may be its own ancestor.
    CycleUnnoticed,
    /// Who waits, or is waited for, is not told to come back early.
    InvitationsForgotten,
    /// A holder is told to come back when its lease is over.
    RefreshAfterTheLease,
    /// No limit is full.
    LimitsForgotten,
    /// A lease that is over still counts for who brought it.
    LeasesStayCounted,
    /// A fresh master decides at once, though leases of its predecessors may be out.
    LearningEndsTooSoon,
    /// A fresh master confirms what is out for minutes longer than anything can be.
    LearningLastsTooLong,
    /// What holders tell of that others granted is not remembered.
    LearnedForgotten,
    /// The word of a child server that learns is taken for all that its node has out.
    LearnersAcknowledge,
    /// In learning mode nobody counts whether holders say that they have more than there is.
    ReportsNotCounted,
    /// What others may be using is not left to them.
    OthersForgotten,
    /// When the capacity is lowered, everybody keeps all that it has.
    LoweringForgotten,
    /// Nobody minds that leases are out from before the parent lowered the capacity.
    RunsDownForgotten,
    /// A lease below the root lasts longer than the one that it was cut from.
    LeaseOutlivesParents,
    /// What the holders of a child server may be using does not count, only its own lease.
    OutstandingForgotten,
    /// An answer of the parent to an older request counts.
    OlderAnswerApplied,
    /// What nobody below uses any more is not given back to the parent.
    LeftoverKept,
    /// Anybody frees what somebody else holds.
    ReleaseOfAnybody,
    /// A holder is heard as often as it asks.
    FloorForgotten,
    /// Every client in safe mode may use the whole capacity.
    SafeNotDivided,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 42] = [
        Self::OlderLeaseForgotten,
        Self::AcknowledgementForgotten,
        Self::ExpiresTooEarly,
        Self::FormerProcessForgotten,
        Self::SlotNotFreed,
        Self::OlderEpochCounts,
        Self::OlderRequestCounts,
        Self::ClockMarginForgotten,
        Self::ClockToleranceForgotten,
        Self::TermWithoutEnd,
        Self::VacantSinceForgotten,
        Self::LongerLeasesForgotten,
        Self::MastershipIdsRepeat,
        Self::PrioritiesForgotten,
        Self::GuaranteesForgotten,
        Self::LevelOfEqualShares,
        Self::RoundingIsAShortage,
        Self::EqualShareOfOwn,
        Self::LeftIsRoundedUp,
        Self::HolderBoundsForgotten,
        Self::CurveTooCoarse,
        Self::PushesForgotten,
        Self::CycleUnnoticed,
        Self::InvitationsForgotten,
        Self::RefreshAfterTheLease,
        Self::LimitsForgotten,
        Self::LeasesStayCounted,
        Self::LearningEndsTooSoon,
        Self::LearningLastsTooLong,
        Self::LearnedForgotten,
        Self::LearnersAcknowledge,
        Self::ReportsNotCounted,
        Self::OthersForgotten,
        Self::LoweringForgotten,
        Self::RunsDownForgotten,
        Self::LeaseOutlivesParents,
        Self::OutstandingForgotten,
        Self::OlderAnswerApplied,
        Self::LeftoverKept,
        Self::ReleaseOfAnybody,
        Self::FloorForgotten,
        Self::SafeNotDivided,
    ];

    /// Those that worlds by chance find (`simulator/planted`). All others a test of this crate finds
    /// (`tests/planted`), and most of these, too.
    pub const BY_WORLDS: &[Self] = &[
        Self::OlderLeaseForgotten,
        Self::AcknowledgementForgotten,
        Self::ExpiresTooEarly,
        Self::FormerProcessForgotten,
        Self::VacantSinceForgotten,
        Self::CurveTooCoarse,
        Self::LearningEndsTooSoon,
        Self::OthersForgotten,
        Self::LeaseOutlivesParents,
        Self::OutstandingForgotten,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Bug;

    /// Stands in every program that is built with the feature: beside the switch, so that no linker drops it.
    pub const MARK: &str = "doorward-engine was built with the feature planted";

    /// The variable with the name of a bug that is switched on from the start, so that tests can be seen to fail:
    /// `DOORWARD_PLANTED=SlotNotFreed cargo test -p doorward-engine --features planted`.
    pub const VARIABLE: &str = "DOORWARD_PLANTED";

    /// Which of all counts from 1; 0 for none.
    static PLANTED: (AtomicUsize, &str) = (AtomicUsize::new(0), MARK);

    static FROM_START: OnceLock<Option<Bug>> = OnceLock::new();

    fn from_start() -> Option<Bug> {
        let name = std::env::var(VARIABLE).ok()?;
        Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name)
    }

    /// Switches a bug on, for the whole program, and all others off.
    pub fn plant(bug: Option<Bug>) {
        let number = bug.map_or(0, |bug| bug as usize + 1);
        PLANTED.0.store(number, Ordering::Relaxed);
    }

    pub(crate) fn is(bug: Bug) -> bool {
        match PLANTED.0.load(Ordering::Relaxed) {
            0 => *FROM_START.get_or_init(from_start) == Some(bug),
            planted => planted == bug as usize + 1,
        }
    }
}

#[cfg(feature = "planted")]
pub(crate) use switch::is;
#[cfg(feature = "planted")]
pub use switch::{MARK, VARIABLE, plant};

/// Whether a bug is switched on: never.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
