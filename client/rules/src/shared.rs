//! Shared rules: their limit is a lease of a server, which many processes have together.
//!
//! Each descriptor has a lease of its own, named by its text. While a process has the lease, the lease decides, and the
//! rule's own limit bounds what one process takes of it. Without a lease, the rule's `on_failure` decides.

use std::fmt::Write as _;
use std::time::Duration;

use doorward_limits::Decision;

use crate::tree::Entry;

/// Leases of shared rules.
pub trait Leases {
    /// Takes `cost` of the lease of a descriptor, without waiting. `None`: there is no lease.
    fn take(&self, descriptor: &str, cost: u64) -> Option<Result<(), Decision>>;

    /// Returns the units that the lease of a descriptor has left. `None`: unknown.
    fn left(&self, _descriptor: &str) -> Option<u64> {
        None
    }

    /// Gives back what a request took that is not served. `took`: the time since then. A lease that began later gets
    /// nothing. Returns the units that were given back.
    fn give_back(&self, descriptor: &str, cost: u64, took: Duration) -> u64;

    /// Takes `cost` of the lease of a descriptor, available or not, up to a debt.
    fn charge(&self, descriptor: &str, cost: u64, debt_max: u64);

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
/// descriptors have different texts.
pub(crate) fn text(entries: &[Entry<'_>]) -> String {
    let mut text = String::new();
    for entry in entries {
        if !text.is_empty() {
            text.push(',');
        }
        add_encoded(entry.key.as_bytes(), &mut text);
        if let Some(value) = entry.value {
            text.push('=');
            add_encoded(value, &mut text);
        }
    }
    text
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
