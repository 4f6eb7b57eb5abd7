//! Shared rules: their limit is a lease of a server, which many processes have together.
//!
//! Each descriptor has a lease of its own, named by its text. While a process has the lease, the lease decides, and the
//! rule's own limit bounds what one process takes of it. Without a lease, the rule's `on_failure` decides.

use std::fmt::Write as _;
use std::time::Duration;

use doorward_limits::{Decision, Units};
use sha2::{Digest as _, Sha256};

use crate::rules::rule::Rule;
use crate::rules::tree::Entry;

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

    /// Takes `cost` of the lease of a descriptor, available or not, up to a debt. Returns the units that count in this
    /// process: those that the lease took.
    fn charge(&self, rule: &Rule, descriptor: &str, cost: u64, debt_max: u64) -> u64;

    /// Returns the name of the caller, which gets back no more than it took. `None`: the process itself.
    fn caller(&self) -> Option<&str> {
        None
    }

    /// Returns the identity that new keys count for. `None`: they count for none.
    fn identity(&self) -> Option<&str> {
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
    /// Returns the amount of a refusal that is counted, if any: of a shared limit what the lease took. Without a lease, a
    /// caller uses up nothing that others share.
    pub(crate) fn refused_cost(self, rule: &Rule, is_leased: bool, cost: Units) -> Option<Units> {
        let has_callers = self.leases.and_then(Leases::caller).is_some();
        match (rule.scope.is_shared(), is_leased) {
            (true, true) => rule.counted().map(|limit| cost.min(limit.debt_max())),
            (true, false) if has_callers => None,
            _ => Some(cost),
        }
    }
}

/// Longest id of a resource, in bytes, as servers take it.
pub const ID_BYTES_MAX: usize = 256;

/// Returns the text of a descriptor: `key=value` of each entry, with commas between them. Only the key is written of an
/// entry without a value. Commas, equals signs, percent signs and bytes outside ASCII are percent-encoded, so different
/// descriptors have different texts. A hashed value is `pattern=hash`: the pattern is the value of the document, with its
/// star, and nothing for a bare key. If the id of the resource would be too long, one hash of the text takes the place of
/// all values that the document does not have, so the id still matches the glob of the rule.
pub(crate) fn text(rule: &Rule, entries: &[Entry<'_>]) -> String {
    let text = text_with(rule, entries, None);
    if id_bytes(rule, &text) <= ID_BYTES_MAX {
        return text;
    }
    let mut hash = String::new();
    add_hash("", text.as_bytes(), &mut hash);
    text_with(rule, entries, Some(hash))
}

/// Returns the length of the id that a rule's longest values make.
pub(crate) fn id_bytes_max(rule: &Rule) -> usize {
    let entries = rule.levels.iter().map(|(key, value)| Entry {
        key,
        value: Some(value.as_deref().unwrap_or_default().as_bytes()),
    });
    let entries: Vec<Entry<'_>> = entries.collect();
    id_bytes(
        rule,
        &text_with(rule, &entries, Some("0".repeat(HASH_LENGTH))),
    )
}

/// Returns the length of the id of a resource, `shared/DOMAIN/TEXT`.
fn id_bytes(rule: &Rule, text: &str) -> usize {
    let length = |byte: u8| if is_plain(byte) { 1 } else { 3 };
    let bytes = rule.domain.bytes().chain(text.bytes());
    "shared//".len() + bytes.map(length).sum::<usize>()
}

/// Returns whether the byte stands for itself in an id. Others are percent-encoded.
pub const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'=' | b',' | b':' | b'@' | b'+'
        )
}

/// Returns the text with the values, or with a hash in their place.
fn text_with(rule: &Rule, entries: &[Entry<'_>], mut short: Option<String>) -> String {
    let mut text = String::new();
    for (level, entry) in entries.iter().enumerate() {
        if !text.is_empty() {
            text.push(',');
        }
        add_encoded(entry.key.as_bytes(), &mut text);
        let Some(value) = entry.value else {
            continue;
        };
        text.push('=');
        let of_document = rule
            .levels
            .get(level)
            .and_then(|(_, value)| value.as_deref());
        let star = of_document.map_or(Some(("", "")), |value| value.split_once('*'));
        match (rule.hashed_pattern(level), &mut short, star) {
            (Some(pattern), short, _) => {
                add_encoded(pattern.as_bytes(), &mut text);
                text.push('=');
                match short {
                    Some(hash) => text.push_str(&std::mem::take(hash)),
                    None => add_hash(entry.key, value, &mut text),
                }
            }
            (None, Some(hash), Some((start, end))) => {
                add_encoded(start.as_bytes(), &mut text);
                text.push('=');
                text.push_str(&std::mem::take(hash));
                add_encoded(end.replace('*', "").as_bytes(), &mut text);
            }
            (None, ..) => add_encoded(value, &mut text),
        }
    }
    text
}

/// Length of a hash.
const HASH_LENGTH: usize = 32;

/// Adds the first half of SHA-256 of the key, a zero byte and the value. It has no secret, so all processes have the same
/// one. A value that can be guessed can be found.
fn add_hash(key: &str, value: &[u8], text: &mut String) {
    let hash = Sha256::new().chain_update(key).chain_update([0]);
    for byte in hash
        .chain_update(value)
        .finalize()
        .iter()
        .take(HASH_LENGTH / 2)
    {
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
