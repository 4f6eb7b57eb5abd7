//! How long a mastership lasts, and when a successor may begin.
//!
//! The master's key is attached to a lease. The master renews the lease, and then confirms in one transaction that
//! the key is still its own, and writes its *term* under another key, which outlasts the mastership. It acts as the
//! master until one TTL, less a margin, after it *sent* the last renewal that was confirmed like this.
//!
//! As a rule, the key cannot disappear before the master has stopped, because etcd ends a lease no earlier than one
//! TTL after its renewal. There are exceptions: an operator deletes the key, or revokes the lease; a deposed etcd
//! leader revokes a lease that was renewed elsewhere; etcd is wiped. The master learns of these only if it reaches
//! etcd. So the absence of the key is not enough for a successor: unless its predecessor has resigned, it does not
//! begin before one TTL after it *saw* the predecessor's last confirmation. After a crash, that time is over when
//! the key disappears, so it costs nothing.

use std::time::Duration;

use super::store::TermRecord;
use crate::session_bugs::{self, SessionBug};
use crate::time::Time;
use crate::time::tolerance::Tolerance;

/// The margin for a slow clock of the master over one TTL is a tenth of the TTL, and at least this.
const MARGIN_MIN: Duration = Duration::from_millis(100);

/// Until when a mastership lasts that was confirmed after a renewal sent at that time.
pub fn valid_until(renewal_sent: Time, ttl: Duration, error: Tolerance) -> Time {
    renewal_sent + ttl.saturating_sub(margin(ttl, error))
}

/// By how much a mastership ends before its lease can. With worse clocks, it is the difference over one TTL between
/// a slow clock of the master and a fast clock of its successor.
fn margin(ttl: Duration, error: Tolerance) -> Duration {
    if session_bugs::is(SessionBug::MarginLeftOut) {
        return Duration::ZERO;
    }
    let part = error.part();
    let differ = ttl.mul_f64(2.0 * part / (1.0 + part));
    (ttl / 10).max(MARGIN_MIN).max(differ)
}

/// When the master of a term that was seen at that time has stopped acting, at the latest.
pub fn is_over(term: &TermRecord, seen: Time) -> Time {
    if term.resigned {
        seen
    } else {
        seen + term.length
    }
}

/// When a candidate that has just won may begin. `last` is the last term, and when it was seen here, which is not
/// before it was written.
pub fn may_begin(last: Option<(&TermRecord, Time)>, own_server: &str, won: Time) -> Time {
    match last {
        Some((term, seen)) if term.server != own_server => won.max(is_over(term, seen)),
        _ => won,
    }
}

/// Since when no master has decided anything: since the last one resigned, or had to stop acting; at the latest
/// since the next one begins. The own last mastership counts as well, because its leases are forgotten. `others` is
/// until when masters before the last one may have acted.
pub fn vacant_since(last: Option<(&TermRecord, Time)>, others: Option<Time>, begins: Time) -> Time {
    // Without any term, etcd may have been set up anew.
    let over = last.map_or(begins, |(term, seen)| match term {
        _ if session_bugs::is(SessionBug::VacantTooEarly) => seen,
        term => is_over(term, seen),
    });
    others.map_or(over, |others| others.max(over)).min(begins)
}

/// The length to write in a term. A term that has not begun overwrites its predecessor's, so it covers what is left
/// of that one: an early successor must wait as long. In whole milliseconds, rounded up.
pub fn length(begins: Time, ttl: Duration, now: Time) -> Duration {
    whole_millis(ttl.max(begins.since(now)))
}

/// What a candidate adds to the revision of the master's key to get its epoch: nothing, unless etcd has gone back,
/// because it was set up anew or restored from a backup. Then the sum is above the highest known epoch, so that
/// clients accept it. `revision` is a revision of etcd before the key is created.
pub fn epoch_offset(highest_epoch: u64, revision: u64) -> u64 {
    highest_epoch.saturating_sub(revision)
}

/// A span in whole milliseconds, rounded up.
pub(super) fn whole_millis(span: Duration) -> Duration {
    let millis = span.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn term(server: &str, resigned: bool) -> TermRecord {
        TermRecord {
            epoch: 7,
            address: "there:1".into(),
            server: server.into(),
            length: TTL,
            resigned,
            leases: None,
        }
    }

    fn at(seconds: u64) -> Time {
        Time::after_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_mastership_ends_before_its_lease_can() {
        for (ttl, holds) in [(10_000, 9_000), (2_000, 1_800), (500, 400), (50, 0)] {
            let until = valid_until(at(7), Duration::from_millis(ttl), Tolerance::LEAST);
            assert_eq!(until, at(7) + Duration::from_millis(holds), "TTL {ttl} ms");
        }
    }

    #[test]
    fn a_mastership_ends_before_its_successor_begins_whichever_clock_is_wrong() {
        for part in [0.001, 0.01, 0.05, 0.1, 0.25] {
            let until = valid_until(at(7), TTL, Tolerance::clamped(part));
            let holds = until.since(at(7)).as_secs_f64();
            // The master's clock is as slow as allowed, the successor's as fast.
            let (ends, begins) = (holds / (1.0 - part), TTL.as_secs_f64() / (1.0 + part));
            assert!(ends <= begins + 1e-6, "{part}: {ends} {begins}");
            // There is time to renew it, which happens every third of the TTL.
            assert!(holds > TTL.as_secs_f64() * 0.55, "{part}: {holds}");
        }
    }

    #[test]
    fn a_successor_begins_when_its_predecessor_has_certainly_ended() {
        let theirs = term("theirs", false);
        for (what, last, won, begins) in [
            ("there was no master before", None, 1, 1),
            ("it crashed, and its lease ran out", Some(&theirs), 11, 11),
            ("its key was deleted by hand", Some(&theirs), 3, 10),
            ("it resigned", Some(&term("theirs", true)), 3, 3),
            ("it was this process", Some(&term("ours", false)), 3, 3),
        ] {
            let last = last.map(|term| (term, at(0)));
            assert_eq!(may_begin(last, "ours", at(won)), at(begins), "{what}");
        }
        // The predecessor stops before.
        assert!(
            valid_until(at(0), TTL, Tolerance::LEAST)
                < may_begin(Some((&theirs, at(0))), "ours", at(0))
        );
    }

    #[test]
    fn a_node_is_vacant_since_the_last_moment_of_a_decision() {
        let (theirs, ours) = (term("theirs", false), term("ours", false));
        let resigned = term("theirs", true);
        for (what, last, others, begins, vacant) in [
            ("nothing is known", None, None, 60, 60),
            ("it was cut off from etcd", Some(&theirs), None, 60, 10),
            ("it was this process", Some(&ours), None, 60, 10),
            ("it resigned", Some(&resigned), None, 60, 0),
            ("it began early", Some(&theirs), None, 3, 3),
            ("one before it may act", Some(&resigned), Some(7), 60, 7),
            ("ones before it might", Some(&theirs), Some(7), 60, 10),
        ] {
            let last = last.map(|term| (term, at(0)));
            let found = vacant_since(last, others.map(at), at(begins));
            assert_eq!(found, at(vacant), "{what}");
        }
    }

    #[test]
    fn epochs_go_on_although_revisions_go_back() {
        for (highest, revision, offset) in [(0, 3, 0), (7, 7, 0), (7, 20, 0), (7, 1, 6)] {
            let found = epoch_offset(highest, revision);
            assert_eq!(found, offset, "{highest} {revision}");
            assert!(highest < revision + 1 + found);
        }
    }

    #[test]
    fn a_term_that_has_not_begun_covers_what_is_left_of_the_one_before() {
        assert_eq!(length(at(0), TTL, at(10)), TTL);
        assert_eq!(length(at(5), TTL, at(0)), TTL);
        assert_eq!(length(at(30), TTL, at(0)), TTL * 3);
        let longer = at(30) + Duration::from_nanos(1);
        let written = length(longer, TTL, at(0));
        assert_eq!(written, TTL * 3 + Duration::from_millis(1), "never less");
    }
}
