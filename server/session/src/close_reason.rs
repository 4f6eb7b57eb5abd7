//! Reasons of a parent for closing or refusing a stream or a call of a child server. Reasons travel by name, because
//! both sides decide by them.
//!
//! An unknown name comes from another release. The receiver then decides as if there were no name. So names are
//! only ever added.

use std::fmt;
use std::time::Duration;

use crate::named;

named! {
    /// Reason why a parent closes or refuses a stream of a child server, or refuses a call. The names are on the wire, so
    /// none ever changes.
    #[derive(PartialOrd, Ord, Hash)]
    CloseReason {
        /// A newer stream of the same node replaced this one.
        Replaced = "replaced",
        /// A newer master of the child's node has a stream, and this one is of an older mastership.
        OlderMaster = "older-master",
        /// Another live process of the child's node was first, and has a stream.
        AnotherProcess = "another-process",
        /// The child does not read.
        Full = "full",
        /// The parent is not the master of its node, or another mastership has begun. The last message names the
        /// master.
        NotMaster = "not-master",
        /// The child is an ancestor of the parent.
        Cycle = "cycle",
        /// The parent is shutting down.
        Stopping = "stopping",
        /// The parent has the largest allowed number of child servers.
        TooMany = "too-many",
        /// The parent has the largest allowed number of child servers of one address.
        TooManyOfAddress = "too-many-of-address",
        /// The name of the child belongs to another identity.
        AnotherIdentity = "another-identity",
        /// The first message did not come in time.
        Late = "late",
        /// A message on the stream of one node names another node.
        OtherChild = "other-child",
        /// A message cannot be parsed, or is invalid as a whole.
        Malformed = "malformed",
    }
}

impl CloseReason {
    /// Returns the reason of that name, or nothing if this release does not know the name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|closing| closing.as_str() == name)
    }

    /// Whether the child's node has a newer stream. Then streams and calls work.
    pub const fn is_replacement(self) -> bool {
        matches!(self, Self::Replaced | Self::OlderMaster)
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// End of a connection, a stream or a call, as a child server classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionEnd {
    /// The parent closed or refused it, for this reason.
    ByParent(CloseReason),
    /// The parent does not support the call: streams, or Discovery.
    Unimplemented,
    /// The parent is overloaded, and sends a retry delay.
    Overloaded(Duration),
    /// No connection could be made.
    Unreachable,
    /// The send queue of the connection is full.
    TakesNoMore,
    /// The connection broke, or the parent gave no known reason.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own_that_parses() {
        for (position, closing) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(closing as usize, position);
            assert_eq!(CloseReason::parse(closing.as_str()), Some(closing));
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(closing.as_str().bytes().all(is_name), "{closing}");
        }
        for unknown in ["", "Replaced", "replaced ", "of-another-release"] {
            assert_eq!(CloseReason::parse(unknown), None, "{unknown}");
        }
    }
}
