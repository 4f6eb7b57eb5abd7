//! How a candidate stands: the one shape between etcd's view and the engine's term.

use std::time::Duration;

use smol_str::SmolStr;

use crate::time::Time;

/// Who is the master of the node, as far as a server knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Standing {
    /// This server, for ever and without an epoch: its node has no election. No candidate stands so.
    Alone,
    /// This server, for a time.
    Master(Mandate),
    /// Another one.
    Elsewhere {
        /// Where it is.
        address: SmolStr,
        /// Its epoch.
        epoch: u64,
        /// Where its pages are. None: it does not say.
        pages: Option<SmolStr>,
    },
    /// None, or none is known.
    #[default]
    Unknown,
}

/// A mastership that was won, as the engine is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mandate {
    /// Grows with every change of mastership.
    pub epoch: u64,
    /// No master before has decided anything since then.
    pub vacant_since: Time,
    /// The longest lease that may have been out then, by templates other than those in force.
    pub longer_leases: Duration,
    /// Until when it holds, unless it is told again.
    pub valid_until: Time,
}

impl Standing {
    /// Whether this server is the master.
    pub const fn is_master(&self) -> bool {
        matches!(self, Self::Alone | Self::Master(_))
    }

    /// The mastership of this server, if it has one that was won.
    pub const fn mandate(&self) -> Option<&Mandate> {
        match self {
            Self::Master(mandate) => Some(mandate),
            Self::Alone | Self::Elsewhere { .. } | Self::Unknown => None,
        }
    }
}
