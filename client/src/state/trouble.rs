//! Problem of a resource without a fresh lease.

use std::time::Duration;

use crate::time::Time;

/// Reason why a resource has no fresh lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No template matches the resource: no server grants it until an operator adds one.
    UnknownResource(String),
    /// The server waits for its own parent: it will have a lease soon, or when its parent is back.
    NotReady(String),
    /// Another live process has the lease under the same client id. The client uses nothing then.
    AnotherProcess {
        /// The server's message.
        message: String,
        /// Time of the first such refusal, without another answer since.
        since: Time,
        /// Longest wait that the server has sent: the other process may have ended that long before a refusal.
        may_be_gone_for: Duration,
        /// Whether both processes have lived for longer than those of a restart: see
        /// [`ClientConfig::restart_overlap`](crate::state::ClientConfig::restart_overlap).
        lasts: bool,
    },
    /// The server refused the resource for another reason.
    Refused(String),
    /// The server's answer was invalid.
    Malformed(String),
}

impl Trouble {
    /// Returns the problem, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::UnknownResource(message)
            | Self::NotReady(message)
            | Self::AnotherProcess { message, .. }
            | Self::Refused(message)
            | Self::Malformed(message) => message,
        }
    }

    /// Returns whether it is the same kind with the same text, ignoring its duration.
    #[cfg(feature = "transport")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.message() == other.message()
    }

    /// Returns whether it soon ends by itself, so that waiting for a lease makes sense.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Self::NotReady(_) | Self::AnotherProcess { lasts: false, .. }
        )
    }
}
