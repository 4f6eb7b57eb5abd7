//! Shared rules: their limit is a lease of a server, which many processes have together.
//!
//! Each descriptor has a lease of its own, named by its text. While a process has the lease, the lease decides, and the
//! rule's own limit bounds what one process takes of it. Without a lease, the rule's `on_failure` decides.

use std::fmt::Write as _;
use std::time::Duration;

use doorward_limits::Decision;
use sha2::{Digest as _, Sha256};

use crate::rule::Rule;
use crate::tree::Entry;

/// Leases of shared rules.
pub trait Leases {
    /// Takes `cost` of the lease of a descriptor, without waiting. `None`: there is no lease. If the rule has
    /// `on_failure: safe`, the safe capacity of the last lease decides after it.
    fn take(&self, rule: &Rule, descriptor: &str, cost: u64) -> Option<Result<(), Decision>>;

    /// Returns the units that the lease of a descriptor has left. `None`: unknown.
    fn left(&self, _rule: &Rule, _descriptor: &str) -> Option<u64> {
        None
    }

    /// Gives back what a request took that is not served. `took`: the time since then. A lease that began later gets
    /// nothing. Returns the units that were given back.
    fn give_back(&self, rule: &Rule, descriptor: &str, cost: u64, took: Duration) -> u64;

    /// Takes `cost` of the lease of a descriptor, available or not, up to a debt.
    fn charge(&self, rule: &Rule, descriptor: &str, cost: u64, debt_max: u64);

    /// Returns the name of the caller, which gets back no more than it took. `None`: the process itself.
    fn caller(&self) -> Option<&str> {
        None
    }
}

/// Means of a decision: leases, and time.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) leases: Option<&'a dyn Leases>,
    /// Whether the request can wait for its turn.
    pub(crate) may_wait: bool,
}

impl Terms<'_> {
    /// Terms without leases.
    pub(crate) const LOCAL: Self = Self {
        leases: None,
        may_wait: true,
    };
}

/// Returns the text of a descriptor: `key=value` of each entry, with commas between them. Only the key is written of an
/// entry without a value. Commas, equals signs, percent signs and bytes outside ASCII are percent-encoded, so different
/// descriptors have different texts. A hashed value is `pattern=hash`: the pattern is the value of the document, with its
/// star, and nothing for a bare key.
pub(crate) fn text(rule: &Rule, entries: &[Entry<'_>]) -> String {
    let mut text = String::new();
    for (level, entry) in entries.iter().enumerate() {
        if !text.is_empty() {
            text.push(',');
        }
        add_encoded(entry.key.as_bytes(), &mut text);
        if let Some(value) = entry.value {
            text.push('=');
            match rule.hashed_pattern(level) {
                Some(pattern) => {
                    add_encoded(pattern.as_bytes(), &mut text);
                    text.push('=');
                    add_hash(entry.key, value, &mut text);
                }
                None => add_encoded(value, &mut text),
            }
        }
    }
    text
}

/// Adds the first half of SHA-256 of the key, a zero byte and the value. It has no secret, so all processes have the same
/// one. A value that can be guessed can be found.
fn add_hash(key: &str, value: &[u8], text: &mut String) {
    let hash = Sha256::new().chain_update(key).chain_update([0]);
    for byte in hash.chain_update(value).finalize().iter().take(16) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

/// Adds a key or a value as it is in the text of a descriptor.
pub fn add_encoded(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        if byte.is_ascii() && !b",=%".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}
