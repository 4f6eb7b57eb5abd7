//! Memory of a candidate about the masterships of its node, whatever happens to etcd.
//!
//! As a rule, each term in etcd follows the one before. Terms go back if etcd is restored from a backup, disappear if
//! it is wiped, and may be overwritten by hand. An earlier term stays true: its master may believe in its mastership
//! for a while, its leases may be valid, and clients have seen its epoch.
//!
//! A candidate may also miss a term: while it is cut off, another server may be elected, and if etcd goes back then,
//! the candidate never sees that term. Two signs show that a term is missing: a term that was seen is gone, or other
//! servers have seen an epoch without a term. Then an unseen master may believe in its mastership for one TTL.

use std::time::Duration;

use super::older_leases::PredecessorLeases;
use super::store::TermRecord;
use super::term;
use crate::time::Time;

/// Highest accepted epoch. Epochs are revisions of etcd, which stay far below. A higher one was written by hand, and
/// would leave no room for later epochs.
const EPOCH_MAX: u64 = 1 << 60;

/// Facts seen about masterships.
#[derive(Clone, Debug, Default)]
pub struct TermHistory {
    /// Last term that was seen, and when.
    last: Option<(TermRecord, Time)>,
    /// Highest epoch that was seen.
    highest_epoch: u64,
    /// Highest epoch whose term was seen, or that was our own.
    highest_term: u64,
    /// Higher epoch that other servers have seen, and the time until which its master may believe in it.
    without_term: Option<(u64, Time)>,
    /// Time until which some master may believe in its mastership, whatever the last term says, because the last term
    /// has replaced its term.
    not_before: Option<Time>,
    /// Latest end of leases that the last term does not cover.
    lost_until: Option<Time>,
    /// Whether the last term and all leases were over by etcd's clock before this server started.
    is_settled: bool,
    /// Highest epoch that was seen when etcd was last found to have gone back.
    went_back_at: Option<u64>,
    /// Number of the last write of marks that this server knows to be in etcd.
    marks_written: u64,
}

impl TermHistory {
    /// Returns the highest epoch that was seen. 0: none.
    pub fn highest_epoch(&self) -> u64 {
        self.highest_epoch
    }

    /// Notes an epoch that was seen.
    pub fn note_epoch(&mut self, epoch: u64) {
        if epoch <= EPOCH_MAX {
            self.highest_epoch = self.highest_epoch.max(epoch);
        }
    }

    /// Notes an epoch of this server.
    pub fn note_own_epoch(&mut self, epoch: u64) {
        self.note_epoch(epoch);
        self.highest_term = self.highest_term.max(epoch);
    }

    /// Notes an epoch that other servers have seen. As a rule its term is written before that. If the term is not
    /// there, its master may have decided all the same.
    pub fn note_reported_epoch(&mut self, epoch: u64, ttl: Duration, seen: Time) {
        let known = self.without_term.map_or(0, |(known, _)| known);
        if epoch > self.highest_term.max(known) && epoch <= EPOCH_MAX {
            self.without_term = Some((epoch, seen + ttl));
        }
        self.note_epoch(epoch);
    }

    /// Notes a term that was seen then. A term without an epoch is unreadable.
    pub fn note_term(&mut self, term: &TermRecord, seen: Time) {
        self.without_term.take_if(|(epoch, _)| *epoch <= term.epoch);
        if term.epoch <= EPOCH_MAX {
            self.highest_term = self.highest_term.max(term.epoch);
        }
        let is_known = |(last, at): &(TermRecord, Time)| last == term && *at == seen;
        if self.last.as_ref().is_some_and(is_known) {
            return;
        }
        if let Some((last, last_seen)) = self.last.take() {
            // A successor reads the term of its predecessor, and copies its statement about leases.
            let goes_on = last.epoch <= term.epoch;
            if !goes_on {
                // Another server may have been elected between the two.
                self.note_unseen_master(&last, last_seen, seen);
            }
            if !(goes_on && term.leases.is_some()) {
                self.note_lost_leases(&last, last_seen);
            }
        }
        self.note_epoch(term.epoch);
        self.last = Some((term.clone(), seen));
        self.is_settled = false;
    }

    /// Notes that the last term and all leases are over by etcd's clock.
    pub fn note_settled(&mut self) {
        self.is_settled = true;
    }

    /// Notes that there is no term now. If one was seen before, etcd was wiped, or restored to an earlier time. Then
    /// the last master is unknown.
    pub fn note_no_term(&mut self, now: Time) {
        if let Some((last, seen)) = self.last.take() {
            self.note_unseen_master(&last, seen, now);
            self.note_lost_leases(&last, seen);
        }
    }

    /// Notes that etcd has gone back by now from a term that was seen. Another server may have been elected after that
    /// term, and may be frozen or cut off, so that it does not know that etcd went back.
    fn note_unseen_master(&mut self, last: &TermRecord, seen: Time, now: Time) {
        let until = term::is_over(last, seen).max(now + last.length);
        self.not_before = self.not_before.max(Some(until));
    }

    /// Notes leases of a term that was seen, which later terms do not state.
    fn note_lost_leases(&mut self, last: &TermRecord, seen: Time) {
        if let Some(leases) = &last.leases {
            let until = term::is_over(last, seen) + leases.longest.max(leases.older);
            self.lost_until = self.lost_until.max(Some(until));
        }
    }

    /// Returns the earliest beginning of a candidate that has just won, and the time since which the node is vacant
    /// then. None: for so long that no lease is left. A later winner must wait as long, if this one has not begun by
    /// then. The candidate itself has decided until `decided_until` at most.
    pub fn begin(
        &mut self,
        own_server: &str,
        decided_until: Option<Time>,
        won: Time,
    ) -> (Time, Option<Time>) {
        let unseen = self.without_term.take().map(|(_, until)| until);
        self.not_before = self.not_before.max(unseen);
        let last = self.last.as_ref().map(|(term, seen)| (term, *seen));
        // A master that was never seen has no lease span.
        if self.is_settled && self.not_before.or(decided_until).is_none() {
            self.not_before = Some(won);
            let has_leases = last.is_some_and(|(term, _)| term.leases.is_some());
            return (won, Some(won).filter(|_| !has_leases));
        }
        let begins = term::may_begin(last, own_server, won);
        let begins = self.not_before.map_or(begins, |before| before.max(begins));
        let others = self.not_before.max(decided_until);
        let vacant_since = term::vacant_since(last, others, begins);
        self.not_before = Some(begins);
        (begins, Some(vacant_since))
    }

    /// Notes that etcd has gone back to an older state. Its master may have written more.
    pub fn note_went_back(&mut self) {
        self.went_back_at = Some(self.highest_epoch);
    }

    /// Notes the number of a write of marks by this server, which etcd has confirmed.
    pub fn note_marks_written(&mut self, write: u64) {
        self.marks_written = write;
    }

    /// Notes the number of the last write of marks that etcd has. If this server has written more, etcd has gone back.
    pub fn note_marks_found(&mut self, write: u64) {
        if write < self.marks_written {
            self.note_went_back();
        }
        self.marks_written = write;
    }

    /// Returns the last term that was seen.
    pub fn last(&self) -> Option<&TermRecord> {
        self.last.as_ref().map(|(term, _)| term)
    }

    /// Returns the epoch of the last master, if etcd has all that it wrote, as far as is known.
    pub fn last_epoch(&self) -> Option<u64> {
        let (last, _) = self.last.as_ref()?;
        let is_last = last.epoch > 0 && last.epoch == self.highest_epoch;
        let is_later = self.went_back_at.is_none_or(|epoch| epoch < last.epoch);
        Some(last.epoch).filter(|_| is_last && is_later)
    }

    /// Returns the statement of the last term about leases.
    pub fn predecessor_leases(&self) -> PredecessorLeases<'_> {
        let Some((term, _)) = &self.last else {
            return PredecessorLeases::NoTerm;
        };
        let leases = term.leases.as_ref();
        leases.map_or(PredecessorLeases::NotStated, PredecessorLeases::Lengths)
    }

    /// Returns how long after a node became vacant leases may last that the last term does not cover.
    pub fn lost_after(&self, vacant_since: Time) -> Duration {
        self.lost_until
            .map_or(Duration::ZERO, |until| until.since(vacant_since))
    }
}

#[cfg(test)]
mod tests;
