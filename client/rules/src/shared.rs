//! Shared rules: their limit is a lease of a server, which many processes have together.
//!
//! Each descriptor has a lease of its own, named by its text. While a process has the lease, the lease decides, and the
//! rule's own limit bounds what one process takes of it. Without a lease, the rule's `on_failure` decides.

use doorward_limits::Decision;

use crate::tree::Entry;

/// Leases of shared rules.
pub trait Leases {
    /// Takes `cost` of the lease of a descriptor, without waiting. `None`: there is no lease.
    fn take(&self, descriptor: &str, cost: u64) -> Option<Result<(), Decision>>;

    /// Gives back what a request took that another rule refuses.
    fn give_back(&self, descriptor: &str, cost: u64);
}

/// Returns the text of a descriptor: `key=value` of each entry, with commas between them. Only the key is written of an
/// entry without a value. Bytes that are no UTF-8 are replaced.
pub(crate) fn text(entries: &[Entry<'_>]) -> String {
    let mut text = String::new();
    for entry in entries {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(entry.key);
        if let Some(value) = entry.value {
            text.push('=');
            text.push_str(&String::from_utf8_lossy(value));
        }
    }
    text
}
