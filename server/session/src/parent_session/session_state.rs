//! States of a session with the parent, and their names.

use crate::parent_session::Transport;
use crate::parent_session::flood::FloodGuard;
use crate::parent_session::in_flight::InFlight;
use crate::time::Time;

/// The state of a session.
#[derive(Clone, Debug, Default)]
pub(super) enum SessionState {
    #[default]
    Standby,
    Connecting {
        transport: Transport,
        until: Time,
    },
    Discovering {
        transport: Transport,
        until: Time,
    },
    Opening {
        until: Time,
    },
    Streaming {
        since: Time,
        has_answered: bool,
        in_flight: InFlight,
        flood: FloodGuard,
    },
    Polling {
        until: Time,
        has_answered: bool,
        in_flight: InFlight,
    },
    Waiting {
        until: Time,
    },
}

/// All states by name, in the order in which they follow.
pub const STATES: [&str; 7] = [
    "standby",
    "connecting",
    "discovering",
    "opening",
    "streaming",
    "polling",
    "waiting",
];

impl SessionState {
    /// Returns its name: one of [`STATES`].
    pub(super) fn name(&self) -> &'static str {
        let number = match self {
            Self::Standby => 0,
            Self::Connecting { .. } => 1,
            Self::Discovering { .. } => 2,
            Self::Opening { .. } => 3,
            Self::Streaming { .. } => 4,
            Self::Polling { .. } => 5,
            Self::Waiting { .. } => 6,
        };
        STATES.get(number).copied().unwrap_or_default()
    }
}
