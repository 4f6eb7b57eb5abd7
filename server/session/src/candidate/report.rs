//! What a candidate reports: for logs, and for the status of etcd.

use std::time::Duration;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionReport {
    /// etcd answers: a whole step passed without a failure.
    Answers,
    /// No endpoint has answered. Reported each time.
    Away,
    /// It has the master's key, and begins after a wait.
    Elected {
        /// The epoch.
        epoch: u64,
        /// Not zero if the last master may still act: its time must end first.
        wait: Duration,
    },
    /// It has lost its mastership.
    Lost {
        /// The epoch.
        epoch: u64,
        /// The reason.
        why: LossReason,
    },
    /// Another server has seen a higher epoch than this one, which is the master: etcd has gone back.
    TooLow {
        /// Its own epoch.
        epoch: u64,
        /// The highest.
        highest: u64,
    },
    /// Its epoch is not the highest, so it gives the master's key back: etcd has gone back since its keys were read,
    /// or this server has lost that mastership already.
    NotHighest,
    /// The master's key was written by hand, without a lease: it is deleted.
    KeyWithoutLease,
    /// The master's key was written by hand while it was this server's: it is written again.
    Mended,
    /// It has resigned.
    Resigned {
        /// The epoch.
        epoch: u64,
        /// Whether it still had the key.
        was_ours: bool,
    },
    /// An attempt to resign was not answered.
    NotResigned,
    /// The lease could not be revoked: it will expire.
    NotRevoked,
    /// The time for the resignation is over: the mastership ends with the lease.
    ResignationLate,
}

/// Why a mastership was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossReason {
    /// Its key was deleted.
    KeyDeleted,
    /// Its lease is gone.
    LeaseGone,
    /// The key belongs to another server.
    KeyOfAnother,
    /// etcd refused to confirm it: the key is not its own any more.
    NotConfirmed,
    /// Its epoch is not the highest.
    EpochTooLow,
}

impl LossReason {
    /// A sentence for logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyDeleted => "its key in etcd was deleted",
            Self::LeaseGone => "its lease in etcd is gone",
            Self::KeyOfAnother => "its key in etcd is another one",
            Self::NotConfirmed => "its key in etcd is not its own any more",
            Self::EpochTooLow => "its epoch is not the highest",
        }
    }
}
