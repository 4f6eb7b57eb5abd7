//! Bugs that tests can switch on, to prove that a checker finds them.
//!
//! They exist only with the feature `planted`, which one package of tests enables and which is built alone.
//! Without it, `is` is false at compile time, and no shipped program contains any of this: a test looks for
//! [`MARK`] in them.

/// A bug, named after what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionBug {
    /// A session with the parent accepts replies on an older connection.
    OldConnectionAccepted,
    /// Requests to the parent are not tracked: a swallowed one goes unnoticed.
    InFlightForgotten,
    /// An answer to an older request counts as one to a newer request.
    OlderAnswerCounts,
    /// A server that is no longer the master keeps asking.
    StandbyAsks,
    /// A step of a session has no timeout.
    DeadlineForgotten,
    /// The node does not learn that a connection to the parent ended.
    LossNotReported,
    /// A server that becomes the master a second time does not ask its parent.
    SecondMastershipSilent,
    /// The wait before the next attempt at the parent does not end.
    WaitWithoutEnd,
    /// A parent that does not support streams is asked for one again and again.
    StreamsInsistedOn,
    /// After a failure the same address is tried again, and never another.
    NextAddressForgotten,
    /// A redirect is not followed.
    RedirectForgotten,
    /// A success does not reset the backoff.
    BackoffGoesOn,
    /// A master of an older epoch is accepted while a lease is valid.
    OlderEpochAccepted,
    /// A newer epoch is never forgotten, though no lease is valid any more.
    EpochNeverForgotten,
    /// Redirects are followed without end.
    RedirectsWithoutEnd,
    /// A stream that a newer one replaces stays open, and gets pushes.
    ReplacedStaysOpen,
    /// A stream of an older epoch replaces one of a newer epoch.
    OlderEpochReplaces,
    /// A child that does not read stays connected.
    FullReaderKept,
    /// There is no second push round.
    RoundNeverBeginsAgain,
    /// A call waits for the parent without end.
    CallWaitsWithoutEnd,
    /// A mastership lasts to the end of its lease in etcd, without a margin.
    MarginLeftOut,
    /// A candidate does not renew its lease in etcd.
    RenewalForgotten,
    /// A candidate does not notice that its lease in etcd is gone.
    LeaseGoneUnnoticed,
    /// The time of a renewal counts from its answer, not from when it was sent.
    RenewalFromAnswer,
    /// A confirmation does not check that the key is still its own.
    ConfirmWithoutComparing,
    /// A resignation does not check that the key is still its own.
    ResignWithoutComparing,
    /// A successor begins at once, though its predecessor may still act as the master.
    BeginsAtOnce,
    /// A successor assumes that the node was vacant before its predecessor had ended.
    VacantTooEarly,
    /// A master does not notice that its key is gone.
    LostKeyUnnoticed,
    /// Epochs go back when etcd does.
    EpochGoesBack,
    /// Templates come into force before etcd has confirmed their lease lengths.
    UnconfirmedTemplatesApplied,
    /// The term does not record how long leases from former templates last.
    OlderLeasesForgotten,
}

impl SessionBug {
    /// All of them.
    pub const ALL: [Self; 32] = [
        Self::OldConnectionAccepted,
        Self::InFlightForgotten,
        Self::OlderAnswerCounts,
        Self::StandbyAsks,
        Self::DeadlineForgotten,
        Self::LossNotReported,
        Self::SecondMastershipSilent,
        Self::WaitWithoutEnd,
        Self::StreamsInsistedOn,
        Self::NextAddressForgotten,
        Self::RedirectForgotten,
        Self::BackoffGoesOn,
        Self::OlderEpochAccepted,
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
        Self::UnconfirmedTemplatesApplied,
        Self::OlderLeasesForgotten,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::sync::{Mutex, OnceLock, PoisonError};

    use super::SessionBug;

    /// Is contained in every program that is built with the feature. It is kept beside the switch, so that no linker
    /// drops it.
    pub const MARK: &str = "doorward-session was built with the feature planted";

    /// The environment variable that switches one bug on from the start, to see unit tests fail:
    /// `DOORWARD_PLANTED=StandbyAsks cargo test -p doorward-session --features planted`.
    const VARIABLE: &str = "DOORWARD_PLANTED";

    static PLANTED: Mutex<(Option<SessionBug>, &str)> = Mutex::new((None, MARK));

    static FROM_START: OnceLock<Option<SessionBug>> = OnceLock::new();

    fn from_start() -> Option<SessionBug> {
        let name = std::env::var(VARIABLE).ok()?;
        SessionBug::ALL
            .into_iter()
            .find(|bug| format!("{bug:?}") == name)
    }

    /// Switches a bug on, for the whole program, and all others off.
    pub fn plant(bug: Option<SessionBug>) {
        PLANTED.lock().unwrap_or_else(PoisonError::into_inner).0 = bug;
    }

    pub(crate) fn is(bug: SessionBug) -> bool {
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
pub(crate) const fn is(_: SessionBug) -> bool {
    false
}
