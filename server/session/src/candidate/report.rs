//! Reports of a candidate, for logs and for the status of etcd.

use std::time::Duration;

use crate::named;

/// An event for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionReport {
    /// etcd answers: a whole step passed without a failure.
    Answers,
    /// No endpoint has answered. Each failure is reported.
    Away,
    /// It has the master's key, and begins after a wait.
    Elected {
        /// The epoch.
        epoch: u64,
        /// Time until the last master has certainly stopped. Zero if it has.
        wait: Duration,
    },
    /// It has lost its mastership.
    Lost {
        /// The epoch.
        epoch: u64,
        /// The reason.
        why: LossReason,
    },
    /// Another server has seen a higher epoch than that of this master: etcd has gone back.
    TooLow {
        /// Own epoch.
        epoch: u64,
        /// Highest epoch.
        highest: u64,
    },
    /// Its epoch is not the highest, so it gives the master's key back: etcd has gone back since the keys were read, or
    /// this server has lost that mastership already.
    NotHighest,
    /// An operator wrote the master's key by hand, without a lease. The candidate deletes it.
    KeyWithoutLease,
    /// An operator overwrote this server's master key by hand. The candidate writes it again.
    Mended,
    /// It has resigned.
    Resigned {
        /// The epoch.
        epoch: u64,
        /// Whether it still had the key.
        was_ours: bool,
    },
    /// An attempt to resign had no answer.
    NotResigned,
    /// etcd could not revoke the lease. It will expire.
    NotRevoked,
    /// The time for the resignation is over: the mastership ends with the lease.
    ResignationLate,
}

named! {
    /// Reason for the loss of a mastership.
    #[derive(PartialOrd, Ord, Hash)]
    LossReason {
        /// Its key was deleted.
        KeyDeleted = "its key in etcd was deleted",
        /// Its lease is gone.
        LeaseGone = "its lease in etcd is gone",
        /// The key belongs to another server.
        KeyOfAnother = "its key in etcd is another one",
        /// etcd refused a confirmation: the key is not its own any more.
        NotConfirmed = "its key in etcd is not its own any more",
        /// Its epoch is not the highest.
        EpochTooLow = "its epoch is not the highest",
        /// An operator wants another server to be the master.
        SteppedDown = "an operator asked it to step down",
        /// etcd refuses its marks. Its next mastership keeps none.
        MarksRefused = "etcd lets it write no marks",
        /// Another program changed its marks.
        MarksChanged = "its marks in etcd were changed by another program",
    }
}
