//! Bugs that tests can switch on, to prove that a checker finds them.
//!
//! They exist only with the feature `planted`, which packages of tests enable that are built alone. Without it, `is` is
//! false at compile time, and no shipped program contains any of this: a test looks for `MARK` in them.
//! `simulator/planted` and `tests/planted` of this crate say where each is found.

/// A bug, named for what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A shrink frees at once what the holder had, though the answer may be lost.
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
    /// A received lease counts for as long as it was sent, as if all clocks ran alike.
    ClockMarginForgotten,
    /// Leases are sent and received as if this clock were a good one.
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
    /// The equal share is computed from what a server has, not from what its parent sent.
    EqualShareOfOwn,
    /// What others leave is rounded up.
    LeftIsRoundedUp,
    /// Whatever a single holder says counts.
    HolderBoundsForgotten,
    /// A demand curve is sent as its last point only.
    CurveTooCoarse,
    /// Changes are never pushed to child servers.
    PushesForgotten,
    /// A node may be its own ancestor.
    CycleUnnoticed,
    /// A holder that waits, or is waited for, is not invited to come early.
    InvitationsForgotten,
    /// The refresh interval is as long as the lease.
    RefreshAfterTheLease,
    /// No limit is full.
    LimitsForgotten,
    /// A lease that has ended still counts for its caller.
    LeasesStayCounted,
    /// A fresh master decides at once, though leases of its predecessors may be out.
    LearningEndsTooSoon,
    /// A fresh master confirms what is out for minutes longer than anything can be.
    LearningLastsTooLong,
    /// Reports of leases from other masterships are not remembered.
    LearnedForgotten,
    /// The report of a child server that learns counts as complete.
    LearnersAcknowledge,
    /// In learning mode reports of more than there is are not noticed.
    ReportsNotCounted,
    /// What others may be using is not left to them.
    OthersForgotten,
    /// When the capacity is lowered, everybody keeps all that it has.
    LoweringForgotten,
    /// Leases from before the parent lowered the capacity are ignored.
    RunsDownForgotten,
    /// A lease below the root lasts longer than the one that it was cut from.
    LeaseOutlivesParents,
    /// What the holders of a child server may be using does not count, only its own lease.
    OutstandingForgotten,
    /// An answer of the parent to an older request counts.
    OlderAnswerApplied,
    /// Unused capacity is not given back to the parent.
    LeftoverKept,
    /// Any program can release another one's lease.
    ReleaseOfAnybody,
    /// Every request of a holder is decided, however often it asks.
    FloorForgotten,
    /// Every client in safe mode may use the whole capacity.
    SafeNotDivided,
    /// A request is decided by the template that was in force before.
    FormerTemplateDecides,
    /// A resource that nobody asks for never hears of other templates.
    TemplateKept,
    /// A claim that changes while all are put in other bands counts there as it was.
    ClaimsApart,
    /// Of the claims of a child server, only those count that are put in at once.
    ClaimsLeftBehind,
    /// A request that was decided before is decided in the same way, though something has changed since.
    OldDecisionRepeated,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 47] = [
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
        Self::FormerTemplateDecides,
        Self::TemplateKept,
        Self::ClaimsApart,
        Self::ClaimsLeftBehind,
        Self::OldDecisionRepeated,
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
