//! The name of a caller: its identity, to which shares go first, and its name among the callers of that identity.

use std::hash::{DefaultHasher, Hash, Hasher};

use doorward_door::caller_id::CallerId;
use doorward_tls::identity::Identity;

/// Longest name of a caller, in bytes. A longer one is cut.
pub const NAME_BYTES_MAX: usize = 80;

/// A caller. Without a certificate or a token, its identity is an address, or `unix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    identity: String,
    name: String,
}

impl Asker {
    /// Returns a caller with the name that it gives itself.
    pub fn new(
        given: Option<&str>,
        identity: Option<&Identity>,
        address: Option<&CallerId>,
    ) -> Self {
        Self {
            identity: caller_name(None, identity, address),
            name: caller_name(given, identity, address),
        }
    }

    /// Returns its identity.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns whether it has given itself a name, which is not cut.
    pub fn is_named(&self) -> bool {
        self.name != self.identity && self.name.len() <= NAME_BYTES_MAX
    }

    /// Returns its name, for the ranks of rules.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the name of a caller. Callers with an identity have names of their own, which no other identity can use.
pub(crate) fn caller_name(
    given: Option<&str>,
    identity: Option<&Identity>,
    address: Option<&CallerId>,
) -> String {
    let given = given.filter(|name| !name.is_empty());
    match (identity, given, address) {
        (Some(identity), Some(name), _) => shortened(format!("{identity}#{name}")),
        (Some(identity), None, _) => shortened(identity.to_string()),
        (None, Some(name), _) => name.to_owned(),
        (None, None, Some(address)) => address.to_string(),
        (None, None, None) => "unix".to_owned(),
    }
}

/// Returns a name of at most [`NAME_BYTES_MAX`] bytes. A longer one ends with its hash, so that it stays another one.
fn shortened(name: String) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let hash = format!("~{:016x}", hasher.finish());
    let end = name.floor_char_boundary(NAME_BYTES_MAX - hash.len());
    format!("{}{hash}", name.get(..end).unwrap_or_default())
}

/// Returns the first bytes of a name that is too long.
pub(crate) fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX))
        .unwrap_or(name)
}
