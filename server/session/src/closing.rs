//! Why a stream or a call between a child server and its parent was ended or refused: by name, since both
//! sides decide by it.
//!
//! A name that is not known comes from another release. Whoever hears it goes by what it would know without
//! a name; so names are only ever added.

use std::fmt;
use std::time::Duration;

/// Why a parent ends the stream of a child server, or refuses it, or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Closing {
    /// A newer stream of the same node took the place of this one.
    Replaced,
    /// A newer master of the child's node has a stream: this one is of an older mastership.
    OlderMaster,
    /// Another live process of the child's node was there first, and has a stream.
    AnotherProcess,
    /// The child does not take what it is sent.
    Full,
    /// The parent is not the master of its node, or another mastership has begun. Where the master is, the
    /// message before the end says.
    NotMaster,
    /// The child is an ancestor of the parent.
    Cycle,
    /// The parent is about to end.
    Stopping,
    /// The parent has as many child servers as it may have.
    TooMany,
    /// The parent has as many child servers of one address as it may have.
    TooManyOfAddress,
    /// The first message did not come in time.
    Late,
    /// A message on the stream of one node speaks for another one.
    OtherChild,
    /// A message cannot be read, or is wrong as a whole.
    Malformed,
}

impl Closing {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 12] = [
        Self::Replaced,
        Self::OlderMaster,
        Self::AnotherProcess,
        Self::Full,
        Self::NotMaster,
        Self::Cycle,
        Self::Stopping,
        Self::TooMany,
        Self::TooManyOfAddress,
        Self::Late,
        Self::OtherChild,
        Self::Malformed,
    ];

    /// As it travels, and is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replaced => "replaced",
            Self::OlderMaster => "older-master",
            Self::AnotherProcess => "another-process",
            Self::Full => "full",
            Self::NotMaster => "not-master",
            Self::Cycle => "cycle",
            Self::Stopping => "stopping",
            Self::TooMany => "too-many",
            Self::TooManyOfAddress => "too-many-of-address",
            Self::Late => "late",
            Self::OtherChild => "other-child",
            Self::Malformed => "malformed",
        }
    }

    /// The one of that name. None: this release knows no such name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|closing| closing.as_str() == name)
    }

    /// Whether the child's node has a newer stream: there is nothing wrong with streams, nor with calls.
    pub const fn is_replacement(self) -> bool {
        matches!(self, Self::Replaced | Self::OlderMaster)
    }
}

impl fmt::Display for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a child server makes of the end of its connection, of its stream, or of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Closed {
    /// The parent ended or refused it, for this reason.
    Said(Closing),
    /// The parent does not know what it was asked for: it is a server that knows no streams, or cannot say
    /// who is the master.
    Unimplemented,
    /// The parent is too busy, and says when to come back.
    Overloaded(Duration),
    /// No connection could be made.
    Unreachable,
    /// The connection takes no more of what is sent.
    TakesNoMore,
    /// The connection broke, or the parent gives no reason that decides anything.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own_by_which_it_is_known_again() {
        for (position, closing) in Closing::ALL.into_iter().enumerate() {
            assert_eq!(closing as usize, position);
            assert_eq!(Closing::parse(closing.as_str()), Some(closing));
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(closing.as_str().bytes().all(is_name), "{closing}");
        }
        for unknown in ["", "Replaced", "replaced ", "of-another-release"] {
            assert_eq!(Closing::parse(unknown), None, "{unknown}");
        }
    }
}
