//! Bugs that can be switched on, to see that somebody notices: a checker that finds none of them is worth
//! nothing.
//!
//! Only the feature `planted` makes them possible, which one package of tests switches on and which is built
//! alone. Without it, `is` is false when the program is compiled, and no program that ships has a word of
//! this: a test looks for [`MARK`] in them.

/// A bug, named for what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A session with the parent takes what comes on an older connection.
    OldConnectionHeeded,
    /// What was asked of the parent is not kept in mind: nobody notices that it was swallowed.
    InFlightForgotten,
    /// An answer to an older request counts as one to a newer.
    OlderAnswerCounts,
    /// Who is not the master of its node goes on asking.
    StandbyAsks,
    /// A step of a session that takes too long is waited for without end.
    DeadlineForgotten,
    /// When a connection to the parent ends, the node is not told.
    LossNotTold,
    /// Who was the master of its node before asks no parent when it is again.
    SecondMastershipSilent,
    /// A wait for the next attempt at the parent does not end.
    WaitWithoutEnd,
    /// A parent that knows no streams is asked for one again and again.
    StreamsInsistedOn,
    /// After a failure the same address is tried again, whoever else there is.
    NextAddressForgotten,
    /// A redirect is heard, and not followed.
    RedirectForgotten,
    /// Backoff does not start over after a success.
    BackoffGoesOn,
    /// A master of an older epoch is listened to, whatever leases last.
    OlderEpochHeeded,
    /// A newer epoch is never forgotten, though no lease lasts any more.
    EpochNeverForgotten,
    /// Redirects are followed without end.
    RedirectsWithoutEnd,
    /// A stream that a newer one replaces stays open, and is told what changes.
    ReplacedStaysOpen,
    /// A stream of an older epoch replaces one of a newer.
    OlderEpochReplaces,
    /// Who does not read is kept.
    FullReaderKept,
    /// After the first push round there is no other.
    RoundNeverBeginsAgain,
    /// A call waits for the parent without end.
    CallWaitsWithoutEnd,
    /// A mastership holds to the end of its lease, without a margin.
    MarginLeftOut,
    /// A candidate does not renew its lease in etcd.
    RenewalForgotten,
    /// A candidate does not notice that its lease in etcd is gone.
    LeaseGoneUnnoticed,
    /// A renewal counts from when it was answered, not from when it was sent.
    RenewalFromAnswer,
    /// A confirmation does not look whether the key is still its own.
    ConfirmWithoutComparing,
    /// A resignation does not look whether the key is still its own.
    ResignWithoutComparing,
    /// A successor begins at once, though its predecessor may believe in its mastership.
    BeginsAtOnce,
    /// A successor takes the node for vacant since before its predecessor was over.
    VacantTooEarly,
    /// A key of the master that is gone is not noticed.
    LostKeyUnnoticed,
    /// An epoch goes back with etcd.
    EpochGoesBack,
    /// Templates count that etcd has not been told of, when something else is confirmed.
    UntoldTemplatesApplied,
    /// Nothing is told of how long leases last by former templates.
    OlderLeasesForgotten,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 32] = [
        Self::OldConnectionHeeded,
        Self::InFlightForgotten,
        Self::OlderAnswerCounts,
        Self::StandbyAsks,
        Self::DeadlineForgotten,
        Self::LossNotTold,
        Self::SecondMastershipSilent,
        Self::WaitWithoutEnd,
        Self::StreamsInsistedOn,
        Self::NextAddressForgotten,
        Self::RedirectForgotten,
        Self::BackoffGoesOn,
        Self::OlderEpochHeeded,
        Self::EpochNeverForgotten,
        Self::RedirectsWithoutEnd,
        Self::ReplacedStaysOpen,
        Self::OlderEpochReplaces,
        Self::FullReaderKept,
        Self::RoundNeverBeginsAgain,
        Self::CallWaitsWithoutEnd,
        Self::MarginLeftOut,
        Self::RenewalForgotten,
        Self::LeaseGoneUnnoticed,
        Self::RenewalFromAnswer,
        Self::ConfirmWithoutComparing,
        Self::ResignWithoutComparing,
        Self::BeginsAtOnce,
        Self::VacantTooEarly,
        Self::LostKeyUnnoticed,
        Self::EpochGoesBack,
        Self::UntoldTemplatesApplied,
        Self::OlderLeasesForgotten,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::{Mutex, OnceLock, PoisonError};

    use super::Bug;

    /// Stands in every program that is built with the feature: beside the switch, so that no linker drops it.
    pub const MARK: &str = "doorward-session was built with the feature planted";

    /// The variable with the name of a bug that is switched on from the start, so that tests beside the machines can
    /// be seen to fail: `DOORWARD_PLANTED=StandbyAsks cargo test -p doorward-session --features planted`.
    const VARIABLE: &str = "DOORWARD_PLANTED";

    static PLANTED: Mutex<(Option<Bug>, &str)> = Mutex::new((None, MARK));

    static FROM_START: OnceLock<Option<Bug>> = OnceLock::new();

    fn from_start() -> Option<Bug> {
        let name = std::env::var(VARIABLE).ok()?;
        Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name)
    }

    /// Switches a bug on, for the whole program, and all others off.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.lock().unwrap_or_else(PoisonError::into_inner).0 = bug;
    }

    pub(crate) fn is(bug: Bug) -> bool {
        let planted = PLANTED.lock().unwrap_or_else(PoisonError::into_inner).0;
        planted.or_else(|| *FROM_START.get_or_init(from_start)) == Some(bug)
    }
}

#[cfg(feature = "planted")]
pub(crate) use switch::is;
#[cfg(feature = "planted")]
pub use switch::{MARK, plant};

/// Whether a bug is switched on: never.
#[cfg(not(feature = "planted"))]
pub(crate) const fn is(_: Bug) -> bool {
    false
}
