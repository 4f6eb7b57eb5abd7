//! How long a mastership holds, and when a successor may begin.
//!
//! The master's key goes with a lease. The master renews the lease, and then confirms in one transaction that
//! the key still is its own, writing its *term* under another key, which stays when the mastership is over. It
//! believes in its mastership until one TTL has passed since it *sent* the last renewal that was confirmed so,
//! less a margin.
//!
//! etcd lets a lease end no earlier than one TTL after it was renewed, so the key cannot go before the master
//! has stopped, as a rule. There are exceptions: an operator deletes the key, or revokes the lease; an etcd
//! leader that was deposed revokes one that was renewed elsewhere; etcd is wiped. The master learns of these
//! only if it reaches etcd. So a successor does not trust the absence of the key alone: unless its predecessor
//! has resigned, it does not begin before one TTL has passed since it *saw* the predecessor's last
//! confirmation. After a crash that time is over anyway when the key goes, so it costs nothing then.

use std::time::Duration;

use super::clock_error::ClockError;
use super::store::Term;
use crate::planted::{self, Bug};
use crate::time::Time;

/// What the master's clock may be slow by, over one TTL: a tenth of it, and not less than this.
const MARGIN_MIN: Duration = Duration::from_millis(100);

/// Until when a mastership holds that was confirmed after a renewal sent at that time.
pub fn valid_until(renewal_sent: Time, ttl: Duration, error: ClockError) -> Time {
    renewal_sent + ttl.saturating_sub(margin(ttl, error))
}

/// By how much a mastership ends before its lease can. If clocks may be wrong by more than a little, that is
/// what a slow one of the master's and a fast one of its successor's can differ by over one TTL.
fn margin(ttl: Duration, error: ClockError) -> Duration {
    if planted::is(Bug::MarginLeftOut) {
        return Duration::ZERO;
    }
    let part = error.part();
    let differ = ttl.mul_f64(2.0 * part / (1.0 + part));
    (ttl / 10).max(MARGIN_MIN).max(differ)
}

/// When the master of a term that was seen then has stopped to believe in it, at the latest.
pub fn is_over(term: &Term, seen: Time) -> Time {
    if term.resigned {
        seen
    } else {
        seen + term.length
    }
}

/// When a candidate that has just won may begin. `last` is the last term of anybody, and when it was seen here,
/// which is no earlier than it was written.
pub fn may_begin(last: Option<(&Term, Time)>, own_server: &str, won: Time) -> Time {
    match last {
        Some((term, seen)) if term.server != own_server => won.max(is_over(term, seen)),
        _ => won,
    }
}

/// Since when no master has decided anything, at the latest when the next one begins: since the last one
/// resigned, or could no longer believe in its mastership. Be it our own: what we have forgotten since, we may
/// have granted until then. `others` is until when masters before the last one may have believed in theirs.
pub fn vacant_since(last: Option<(&Term, Time)>, others: Option<Time>, begins: Time) -> Time {
    // If nothing is known of anybody, etcd may have been set up anew.
    let over = last.map_or(begins, |(term, seen)| match term {
        _ if planted::is(Bug::VacantTooEarly) => seen,
        term => is_over(term, seen),
    });
    others.map_or(over, |others| others.max(over)).min(begins)
}

/// What a term says of its length. One that has not begun covers what is left of its predecessor's, whose place
/// it has taken: who succeeds it early must wait as long. In whole milliseconds, as it is written, never less.
pub fn length(begins: Time, ttl: Duration, now: Time) -> Duration {
    whole_millis(ttl.max(begins.since(now)))
}

/// What a candidate adds to the revision at which it creates the master's key, to have its epoch: nothing,
/// unless etcd has gone back, because it was set up anew or restored from a backup. Then its epoch is above the
/// highest one that is known all the same, so that clients believe it. `revision` is one at which etcd was
/// before the key is created.
pub fn epoch_offset(highest_epoch: u64, revision: u64) -> u64 {
    highest_epoch.saturating_sub(revision)
}

/// A span in whole milliseconds, never less than it is.
pub(super) fn whole_millis(span: Duration) -> Duration {
    let millis = span.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn term(server: &str, resigned: bool) -> Term {
        Term {
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
            let until = valid_until(at(7), Duration::from_millis(ttl), ClockError::LEAST);
            assert_eq!(until, at(7) + Duration::from_millis(holds), "TTL {ttl} ms");
        }
    }

    #[test]
    fn a_mastership_ends_before_its_successor_begins_whichever_clock_is_wrong() {
        for part in [0.001, 0.01, 0.05, 0.1, 0.25] {
            let until = valid_until(at(7), TTL, ClockError::of_part(part));
            let holds = until.since(at(7)).as_secs_f64();
            // The master's clock is as slow as it may be, the successor's as fast.
            let (ends, begins) = (holds / (1.0 - part), TTL.as_secs_f64() / (1.0 + part));
            assert!(ends <= begins + 1e-6, "{part}: {ends} {begins}");
            // And there is time to renew it: that is done every third of the TTL.
            assert!(holds > TTL.as_secs_f64() * 0.55, "{part}: {holds}");
        }
    }

    #[test]
    fn a_successor_begins_when_its_predecessor_has_ended_for_certain() {
        let theirs = term("theirs", false);
        for (what, last, won, begins) in [
            ("there was nobody before", None, 1, 1),
            ("it crashed, and its lease ran out", Some(&theirs), 11, 11),
            ("its key was deleted by hand", Some(&theirs), 3, 10),
            ("it resigned", Some(&term("theirs", true)), 3, 3),
            ("it was this process", Some(&term("ours", false)), 3, 3),
        ] {
            let last = last.map(|term| (term, at(0)));
            assert_eq!(may_begin(last, "ours", at(won)), at(begins), "{what}");
        }
        // What the predecessor believes is over before.
        assert!(
            valid_until(at(0), TTL, ClockError::LEAST)
                < may_begin(Some((&theirs, at(0))), "ours", at(0))
        );
    }

    #[test]
    fn a_node_is_vacant_since_nobody_can_have_decided() {
        let (theirs, ours) = (term("theirs", false), term("ours", false));
        let resigned = term("theirs", true);
        for (what, last, others, begins, vacant) in [
            ("nothing is known", None, None, 60, 60),
            ("it was cut off from etcd", Some(&theirs), None, 60, 10),
            ("it was this process", Some(&ours), None, 60, 10),
            ("it resigned", Some(&resigned), None, 60, 0),
            ("it began early", Some(&theirs), None, 3, 3),
            ("one before it has time", Some(&resigned), Some(7), 60, 7),
            ("ones before it had", Some(&theirs), Some(7), 60, 10),
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
