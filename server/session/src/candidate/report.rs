//! What a candidate has to tell: for logs, and for who looks at how etcd is doing.

use std::time::Duration;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// etcd answers: everything that was asked at once.
    Answers,
    /// None of the endpoints has answered, again.
    Away,
    /// It has the master's key, and begins after so long.
    Elected {
        /// The epoch.
        epoch: u64,
        /// Not zero: the master before may still believe in its mastership, and is given time.
        wait: Duration,
    },
    /// It has a mastership no more that it had.
    Lost {
        /// The epoch.
        epoch: u64,
        /// Why.
        why: Loss,
    },
    /// Another server has seen a higher epoch than this one, which is the master: etcd has gone back.
    TooLow {
        /// Its own epoch.
        epoch: u64,
        /// The highest.
        highest: u64,
    },
    /// It has the master's key by an epoch that is not the highest, and gives it back: etcd has gone back since
    /// its keys were read, or it has lost that mastership already.
    NotHighest,
    /// The master's key was written by hand, and goes with nobody's lease: it is deleted.
    NobodysKey,
    /// The master's key was written by hand while it was this server's: it is written again.
    Mended,
    /// It has resigned.
    Resigned {
        /// The epoch.
        epoch: u64,
        /// Whether the key was its own until then.
        was_ours: bool,
    },
    /// An attempt to resign was not answered.
    NotResigned,
    /// The lease could not be given back: it runs out by itself.
    NotRevoked,
    /// The time for a resignation is over: the mastership ends when the lease does.
    ResignationLate,
}

/// Why a mastership was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Its key was seen to be gone.
    KeyDeleted,
    /// Its lease is gone.
    LeaseGone,
    /// Its key is somebody else's.
    KeyOfAnother,
    /// etcd did not confirm it: its key is not its own any more.
    NotConfirmed,
    /// Its epoch is not the highest.
    EpochTooLow,
}

impl Loss {
    /// For people.
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
