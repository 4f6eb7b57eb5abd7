//! Times of a mastership: its end, and the earliest beginning of a successor.
//!
//! The master's key is attached to a lease. The master renews the lease, and then confirms in one transaction that
//! the key is still its own, and writes its *term* under another key, which outlasts the mastership. It acts as the
//! master until one TTL, less a margin, after it *sent* the last renewal that was confirmed like this.
//!
//! As a rule, the key cannot disappear before the master has stopped, because etcd ends a lease no earlier than one
//! TTL after its renewal. There are exceptions: an operator deletes the key, or revokes the lease; a deposed etcd
//! leader revokes a lease that was renewed elsewhere; an operator wipes etcd. The master learns of these only if it
//! reaches etcd. So the absence of the key is not enough for a successor. Unless its predecessor has resigned, it
//! begins no earlier than one TTL after it *saw* the predecessor's last confirmation. After a crash, that time is over
//! when the key disappears, so it costs nothing.

use std::time::Duration;

use super::store::TermRecord;
use crate::time::tolerance::Tolerance;
use crate::time::{Time, millis_up};

/// The margin for a slow clock of the master over one TTL is a tenth of the TTL, and at least this.
const MARGIN_MIN: Duration = Duration::from_millis(100);

/// Returns the end of a mastership that was confirmed after a renewal sent at that time.
pub fn valid_until(renewal_sent: Time, ttl: Duration, error: Tolerance) -> Time {
    renewal_sent + ttl.saturating_sub(margin(ttl, error))
}

/// Returns the time between the end of a mastership and the earliest end of its lease. With worse clocks, it is the
/// difference over one TTL between a slow clock of the master and a fast clock of its successor.
fn margin(ttl: Duration, error: Tolerance) -> Duration {
    let part = error.part();
    let differ = ttl.mul_f64(2.0 * part / (1.0 + part));
    (ttl / 10).max(MARGIN_MIN).max(differ)
}

/// Returns the latest time at which the master of a term stops acting, for a term that was seen at that time.
pub fn is_over(term: &TermRecord, seen: Time) -> Time {
    if term.resigned {
        seen
    } else {
        seen + term.length
    }
}

/// Returns the earliest beginning of a candidate that has just won. `last` is the last term, and when it was seen here,
/// which is not before it was written.
pub fn may_begin(last: Option<(&TermRecord, Time)>, own_server: &str, won: Time) -> Time {
    match last {
        Some((term, seen)) if term.server != own_server => won.max(is_over(term, seen)),
        _ => won,
    }
}

/// Returns the time since which no master has decided anything: when the last one resigned or had to stop acting,
/// but not after the beginning of the next one. The own last mastership counts as well, because its leases are
/// forgotten. `others` is the time until which masters before the last one may have acted.
pub fn vacant_since(last: Option<(&TermRecord, Time)>, others: Option<Time>, begins: Time) -> Time {
    // Without any term, etcd may have been set up again.
    let over = last.map_or(begins, |(term, seen)| is_over(term, seen));
    others.map_or(over, |others| others.max(over)).min(begins)
}

/// Returns the length to write in a term. A term that has not begun overwrites its predecessor's, so it covers the rest
/// of that one: an early successor must wait as long. In whole milliseconds, rounded up.
pub fn length(begins: Time, ttl: Duration, now: Time) -> Duration {
    whole_millis(ttl.max(begins.since(now)))
}

/// Returns the number that a candidate adds to the revision of the master's key to get its epoch: zero, unless etcd has
/// gone back, because it was set up again or restored from a backup. Then the sum is above the highest known epoch, so
/// that clients accept it. `revision` is a revision of etcd before the key is created.
pub fn epoch_offset(highest_epoch: u64, revision: u64) -> u64 {
    highest_epoch.saturating_sub(revision)
}

/// Returns a time in whole milliseconds, rounded up.
pub(super) fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(millis_up(span))
}

#[cfg(test)]
mod tests;
