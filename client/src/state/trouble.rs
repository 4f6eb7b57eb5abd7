//! Why a resource has no fresh lease.

use std::time::Duration;

use crate::time::Time;

/// Why a resource has no fresh lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No template matches it: no server will ever grant it until an operator adds one.
    UnknownResource(String),
    /// The server waits for its own parent: it will have a lease to give soon, or when its parent
    /// is back.
    NotReady(String),
    /// Another live process has the lease under the same client id. Nothing is used then.
    AnotherProcess {
        /// What the server said.
        message: String,
        /// When it was first said; no other answer came since.
        since: Time,
        /// The longest time after which the server said to ask again: the other process may have gone that long before a
        /// refusal.
        may_be_gone_for: Duration,
        /// Both are alive for longer than the two processes of a restart run side by side: see
        /// [`ClientConfig::restart_overlap`](crate::state::ClientConfig::restart_overlap).
        lasts: bool,
    },
    /// The server refused it for another reason.
    Refused(String),
    /// The server answered what makes no sense.
    Malformed(String),
}

impl Trouble {
    /// What is wrong, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::UnknownResource(message)
            | Self::NotReady(message)
            | Self::AnotherProcess { message, .. }
            | Self::Refused(message)
            | Self::Malformed(message) => message,
        }
    }

    /// Whether it is of the same kind, in the same words; it may last by now.
    #[cfg(feature = "transport")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.message() == other.message()
    }

    /// Whether it is over by itself soon, so that waiting for a lease makes sense.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Self::NotReady(_) | Self::AnotherProcess { lasts: false, .. }
        )
    }
}
