//! The names of things: resources, clients and child servers.
//!
//! Parsed at the door: never empty, never longer than [`ID_BYTES_MAX`], no control characters (a
//! newline in an id would forge log lines). Cloning is cheap: names of up to 23 bytes, which most
//! are, are kept in place, longer ones are shared.

use std::borrow::Borrow;
use std::fmt;

use std::num::NonZeroU64;

use smol_str::SmolStr;
use thiserror::Error;

/// The longest id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 256;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdError {
    /// Nothing in it.
    #[error("is empty; give it a name")]
    Empty,
    /// Longer than [`ID_BYTES_MAX`].
    #[error("is {0} bytes long; the longest is {ID_BYTES_MAX}")]
    TooLong(usize),
    /// Contains a control character.
    #[error("contains the control character {0:?}; use printable characters")]
    Control(char),
}

fn parse(text: &str) -> Result<SmolStr, IdError> {
    if text.is_empty() {
        Err(IdError::Empty)
    } else if text.len() > ID_BYTES_MAX {
        Err(IdError::TooLong(text.len()))
    } else if let Some(control) = find_control(text) {
        Err(IdError::Control(control))
    } else {
        Ok(SmolStr::new(text))
    }
}

fn find_control(text: &str) -> Option<char> {
    // Most ids are printable ASCII. To see that, all bytes are looked at side by side.
    let is_plain = |plain, byte| plain & (0x20..0x7f).contains(&byte);
    if text.bytes().fold(true, is_plain) {
        return None;
    }
    text.chars().find(|c| c.is_control())
}

/// Which process asks: 64 random bits, drawn when it starts. 0 is none, so that an optional one takes
/// no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(NonZeroU64);

impl Incarnation {
    /// A fixed incarnation, for tests.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Those bits. None: there are none, or all are 0.
    pub fn new(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(Self)
    }

    /// The bits.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Which mastership of a node granted something. It says when what is known of leases began: whoever
/// wins, or wins again, knows nothing, and is another one. Only compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MastershipId(u64);

impl MastershipId {
    /// Of none: what is said to be granted by it was granted by a mastership that nobody knows.
    pub(crate) const NOBODY: Self = Self(0);

    /// As a holder, or another node, gives it back.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// The number of a mastership of a process.
    pub fn of(incarnation: Incarnation, masterships: u64) -> Self {
        // SplitMix64 (Steele, Lea, Flood, 2014): different for each, and hardly ever that of another
        // process.
        let mut bits = incarnation
            .get()
            .wrapping_add(masterships.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((bits ^ (bits >> 31)).max(1))
    }

    /// The bits.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Whom a request is attributed to: the address it came from, as a number. What one caller brings is
/// bounded, however many names it asks under. Only compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller(u128);

impl Caller {
    /// The caller of that number.
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u128 {
        self.0
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Parses a text from outside.
            ///
            /// # Errors
            ///
            /// If it is empty, too long or contains control characters.
            pub fn new(text: &str) -> Result<Self, IdError> {
                parse(text).map(Self)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// Names a shared thing, for instance `db/orders/reads`.
    ResourceId
}

id! {
    /// Names a holder: a client (a process, or whatever asks for itself), or the node of a child
    /// server. Unique among the holders of a resource of the same kind.
    HolderName
}

/// What kind of holder a lease belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderKind {
    /// Asks for itself: one subclient.
    Client,
    /// Asks on behalf of the clients below it.
    Server,
}

impl HolderKind {
    /// `client` or `server`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Who holds a lease. A client and a child server of the same name are different holders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId {
    /// Client or child server.
    pub kind: HolderKind,
    /// Its name among those of its kind.
    pub name: HolderName,
}

impl HolderId {
    /// The client of that name.
    pub const fn client(name: HolderName) -> Self {
        Self {
            kind: HolderKind::Client,
            name,
        }
    }

    /// The child server whose node has that name.
    pub const fn server(name: HolderName) -> Self {
        Self {
            kind: HolderKind::Server,
            name,
        }
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_id_is_refused_and_says_why() {
        assert_eq!(ResourceId::new(""), Err(IdError::Empty));
        assert_eq!(
            ResourceId::new(&"x".repeat(257)),
            Err(IdError::TooLong(257))
        );
        for control in ['\n', '\0', '\x1f', '\x7f', '\u{80}', '\u{9f}'] {
            for before in ["", "a", "größe", "a name of more than sixteen bytes"] {
                let text = format!("{before}{control}b");
                assert_eq!(ResourceId::new(&text), Err(IdError::Control(control)));
            }
        }
        assert!(ResourceId::new(&"x".repeat(256)).is_ok());
        assert!(HolderName::new("größe/κ").is_ok());
        assert!(HolderName::new("\u{a0} ~").is_ok());
    }
}
