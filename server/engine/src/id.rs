//! Names of resources, clients and child servers.
//!
//! Names are parsed where input enters the engine: never empty, never longer than [`ID_BYTES_MAX`],
//! without control characters (a newline in an id would forge log lines). Cloning is cheap: a name
//! of up to 23 bytes, as most are, is kept in place, and a longer one is shared.

use std::fmt;

use std::num::NonZeroU64;

use doorward_time::marks::BUDGET_KEY;
use doorward_time::named;
use smol_str::{SmolStr, format_smolstr};
use thiserror::Error;

/// The longest id, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 256;

/// Reason why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdError {
    /// The text is empty.
    #[error("is empty; give it a name")]
    Empty,
    /// The text is longer than [`ID_BYTES_MAX`].
    #[error("is {0} bytes long; the longest is {ID_BYTES_MAX}")]
    TooLong(usize),
    /// The text contains a control character.
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
    // Most ids are printable ASCII. The fold checks all bytes side by side, without a branch.
    let is_plain = |plain, byte| plain & (0x20..0x7f).contains(&byte);
    if text.bytes().fold(true, is_plain) {
        return None;
    }
    text.chars().find(|c| c.is_control())
}

/// Identity of a process: 64 random bits, drawn when it starts. 0 means none, so that an optional
/// incarnation takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(NonZeroU64);

impl Incarnation {
    /// A fixed incarnation, for tests.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Returns the incarnation of those bits, or nothing if all are 0.
    pub fn new(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).map(Self)
    }

    /// The bits.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Identity of a mastership of a node, to say which one granted a lease. A candidate that wins, or
/// wins again, knows no leases and gets a new identity. Ids are only compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MastershipId(u64);

impl MastershipId {
    /// Stands for an unknown mastership: no mastership ever has this id.
    pub(crate) const NOBODY: Self = Self(0);

    /// Returns the id that a holder, or another node, sent back.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the id of the nth mastership of a process.
    pub fn of(incarnation: Incarnation, masterships: u64) -> Self {
        // Different for each mastership, and hardly ever equal to one of another process.
        Self(split_mix(incarnation.get(), masterships).max(1))
    }

    /// The bits.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Returns the nth number of a seed, by SplitMix64 (Steele, Lea, Flood, 2014).
pub const fn split_mix(seed: u64, n: u64) -> u64 {
    let mut bits = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Source of a request: its address, as a number. The server bounds each caller's use, however many
/// names the caller asks under. Callers are only compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller(u128);

impl Caller {
    /// Returns the caller of that number.
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

impl ResourceId {
    /// Returns the name of the mark of a budget's window, which no resource has.
    pub(crate) fn of_window(&self, start: i64) -> Self {
        Self(format_smolstr!("{self}{BUDGET_KEY}{start}"))
    }

    /// Parses the name of a mark: of a resource, or of a budget's window.
    ///
    /// # Errors
    ///
    /// If the id in it is invalid.
    pub fn of_mark(text: &str) -> Result<Self, IdError> {
        let window = text.split_once(BUDGET_KEY);
        match window.and_then(|(id, start)| Some((id, start.parse().ok()?))) {
            Some((id, start)) => Ok(Self::new(id)?.of_window(start)),
            None => Self::new(text),
        }
    }

    /// Returns the budget and the start of the window, if it names the mark of one.
    pub(crate) fn window(&self) -> Option<(Self, i64)> {
        let (id, start) = self.as_str().split_once(BUDGET_KEY)?;
        Some((Self(id.into()), start.parse().ok()?))
    }
}

id! {
    /// Names a holder: a client (a process, or a part of one that asks for itself), or the node of
    /// a child server. It is unique among the holders of a resource of the same kind.
    HolderName
}

named! {
    /// Kind of a holder.
    #[derive(PartialOrd, Ord, Hash)]
    HolderKind {
        /// A client asks for itself: one subclient.
        Client = "client",
        /// A child server asks on behalf of the clients below it.
        Server = "server",
    }
}

/// Identity of a holder. A client and a child server of the same name are different holders. So are two processes of
/// one client name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId {
    /// Client or child server.
    pub kind: HolderKind,
    /// Its name among those of its kind.
    pub name: HolderName,
    /// Process of a client. None: a client that does not send an incarnation, a child server, or every process of the
    /// name. Only a [`Conflict`](crate::messages::Conflict) names the process of a child server.
    pub process: Option<Incarnation>,
}

impl HolderId {
    /// That process of a client.
    pub const fn client(name: HolderName, process: Option<Incarnation>) -> Self {
        Self {
            kind: HolderKind::Client,
            name,
            process,
        }
    }

    /// The child server whose node has that name.
    pub const fn server(name: HolderName) -> Self {
        Self {
            kind: HolderKind::Server,
            name,
            process: None,
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
    fn an_invalid_id_is_refused_with_the_reason() {
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
