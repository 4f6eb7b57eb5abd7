//! What a candidate remembers of the masterships of its node, whatever happens to etcd.
//!
//! As a rule each term in etcd follows the last one. But terms go back if etcd is restored from a backup, and may
//! be overwritten by hand. An earlier term stays true: its master may still act for a while, leases that it granted
//! are valid, and clients have seen its epoch.

use std::time::Duration;

use super::older_leases::PredecessorLeases;
use super::store::TermRecord;
use super::term;
use crate::session_bugs::{self, SessionBug};
use crate::time::Time;

/// The highest epoch that is accepted. Epochs are revisions of etcd, which stay far below. A higher one was written
/// by hand, and would leave no room for later epochs.
const EPOCH_MAX: u64 = 1 << 60;

/// What was seen of masterships so far.
#[derive(Clone, Debug, Default)]
pub struct TermHistory {
    /// The last term that was seen, and when.
    last: Option<(TermRecord, Time)>,
    /// The highest epoch that was seen.
    highest_epoch: u64,
    /// Another master may act until then, although its term is overwritten.
    not_before: Option<Time>,
    /// Leases that the last term does not cover may last until then.
    lost_until: Option<Time>,
}

impl TermHistory {
    /// The highest epoch that was seen. 0: none.
    pub fn highest_epoch(&self) -> u64 {
        if session_bugs::is(SessionBug::EpochGoesBack) {
            return 0;
        }
        self.highest_epoch
    }

    /// An epoch was seen.
    pub fn note_epoch(&mut self, epoch: u64) {
        if epoch <= EPOCH_MAX {
            self.highest_epoch = self.highest_epoch.max(epoch);
        }
    }

    /// A term was seen then. Epoch 0: it is unreadable.
    pub fn note_term(&mut self, term: &TermRecord, seen: Time) {
        if let Some((last, last_seen)) = &self.last {
            if last == term && *last_seen == seen {
                return;
            }
            // A successor reads the term of its predecessor, and copies what it says about leases.
            let goes_on = last.epoch <= term.epoch;
            let is_over = term::is_over(last, *last_seen);
            if !goes_on {
                self.not_before = self.not_before.max(Some(is_over));
            }
            if let Some(leases) = &last.leases
                && !(goes_on && term.leases.is_some())
            {
                let until = is_over + leases.longest.max(leases.older);
                self.lost_until = self.lost_until.max(Some(until));
            }
        }
        self.note_epoch(term.epoch);
        self.last = Some((term.clone(), seen));
    }

    /// When a candidate that has just won may begin, and since when the node is vacant then. A later winner must
    /// wait as long, if this one has not begun by then.
    pub fn begin(&mut self, own_server: &str, won: Time) -> (Time, Time) {
        let last = self.last.as_ref().map(|(term, seen)| (term, *seen));
        let begins = term::may_begin(last, own_server, won);
        let begins = self.not_before.map_or(begins, |before| before.max(begins));
        let begins = match begins {
            _ if session_bugs::is(SessionBug::BeginsAtOnce) => won,
            begins => begins,
        };
        let vacant_since = term::vacant_since(last, self.not_before, begins);
        self.not_before = Some(begins);
        (begins, vacant_since)
    }

    /// What the last term states about leases.
    pub fn predecessor_leases(&self) -> PredecessorLeases<'_> {
        let Some((term, _)) = &self.last else {
            return PredecessorLeases::NoTerm;
        };
        term.leases
            .as_ref()
            .map_or(PredecessorLeases::NotStated, PredecessorLeases::Lengths)
    }

    /// How long after a node became vacant leases may last that the last term does not cover.
    pub fn lost_after(&self, vacant_since: Time) -> Duration {
        self.lost_until
            .map_or(Duration::ZERO, |until| until.since(vacant_since))
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::LeaseLengths;
    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> Time {
        Time::after_origin(secs(seconds))
    }

    /// A term of 10 s, with the longest lease in seconds if it states one.
    fn term(epoch: u64, resigned: bool, longest: Option<u64>) -> TermRecord {
        TermRecord {
            epoch,
            address: "there:1".into(),
            server: "theirs".into(),
            length: secs(10),
            resigned,
            leases: longest.map(|seconds| LeaseLengths {
                templates: "d".into(),
                longest: secs(seconds),
                older: Duration::ZERO,
            }),
        }
    }

    #[test]
    fn the_highest_epoch_stays() {
        let mut past = TermHistory::default();
        for (epoch, highest) in [(46, 46), (18, 46), (47, 47), (u64::MAX, 47), (0, 47)] {
            past.note_epoch(epoch);
            assert_eq!(past.highest_epoch(), highest, "after {epoch}");
        }
    }

    #[test]
    fn a_successor_waits_for_a_master_whose_term_is_overwritten() {
        for (what, restored, won, begins, vacant) in [
            ("it resigned in the backup", Some((18, true)), 3, 10, 10),
            (
                "it was confirmed in the backup",
                Some((18, false)),
                3,
                12,
                12,
            ),
            ("it cannot be read", Some((0, false)), 3, 12, 12),
            ("its time is over", Some((18, true)), 20, 20, 10),
            ("it is as it was", None, 3, 10, 10),
        ] {
            let mut past = TermHistory::default();
            past.note_term(&term(46, false, None), at(0));
            if let Some((epoch, resigned)) = restored {
                past.note_term(&term(epoch, resigned, None), at(2));
            }
            let found = past.begin("ours", at(won));
            assert_eq!(found, (at(begins), at(vacant)), "{what}");
            assert_eq!(past.highest_epoch(), 46, "{what}");
        }
    }

    #[test]
    fn leases_of_a_term_are_kept_if_the_next_term_does_not_cover_them() {
        for (what, next, lost) in [
            ("its successor copies them", term(47, false, Some(5)), 0),
            (
                "its successor is of an older version",
                term(47, false, None),
                50,
            ),
            ("it was restored from a backup", term(18, true, Some(5)), 50),
        ] {
            let mut past = TermHistory::default();
            assert_eq!(past.predecessor_leases(), PredecessorLeases::NoTerm);
            past.note_term(&term(46, false, Some(40)), at(0));
            assert!(matches!(
                past.predecessor_leases(),
                PredecessorLeases::Lengths(_)
            ));
            past.note_term(&next, at(2));
            assert_eq!(past.lost_after(at(0)), secs(lost), "{what}");
            let states_nothing = next.leases.is_none();
            assert_eq!(
                past.predecessor_leases() == PredecessorLeases::NotStated,
                states_nothing,
                "{what}"
            );
        }
    }
}
