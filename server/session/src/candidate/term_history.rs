//! What a candidate remembers of the masterships of its node, whatever happens to etcd.
//!
//! Terms in etcd go on from one to the next as a rule. They go back if etcd is restored from a backup, are gone
//! if it is wiped, and may be overwritten by hand. What an earlier one said stays true: its master may believe in
//! its mastership for a while yet, leases that it granted are out, and clients have seen its epoch.
//!
//! Nor was every term seen: a candidate that was cut off hears nothing of who was elected meanwhile, and if etcd
//! went back since, it never will. That something is missing shows: the term that was there is not, or others
//! tell of an epoch whose term is not. Then some master that was never seen may believe in its mastership for one
//! TTL.

use std::time::Duration;

use super::older_leases::PredecessorLeases;
use super::store::TermRecord;
use super::term;
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
    /// The highest of which the term was seen, or that was our own.
    highest_term: u64,
    /// A higher one that others tell of, and until when its master may believe in it.
    without_term: Option<(u64, Time)>,
    /// Some master may believe in its mastership until then, whatever the last term says: that one has taken
    /// the place of its term.
    not_before: Option<Time>,
    /// Leases that the last term does not cover may last until then.
    lost_until: Option<Time>,
    /// The last term and all leases were over by etcd's clock before this server started.
    is_settled: bool,
}

impl TermHistory {
    /// The highest epoch that was seen. 0: none.
    pub fn highest_epoch(&self) -> u64 {
        self.highest_epoch
    }

    /// An epoch was seen.
    pub fn note_epoch(&mut self, epoch: u64) {
        if epoch <= EPOCH_MAX {
            self.highest_epoch = self.highest_epoch.max(epoch);
        }
    }

    /// This server has that epoch.
    pub fn note_own_epoch(&mut self, epoch: u64) {
        self.note_epoch(epoch);
        self.highest_term = self.highest_term.max(epoch);
    }

    /// Others tell then that they have seen an epoch. Its term is written before that as a rule; if it is not
    /// there, its master may have decided all the same.
    pub fn note_reported_epoch(&mut self, epoch: u64, ttl: Duration, seen: Time) {
        let known = self.without_term.map_or(0, |(known, _)| known);
        if epoch > self.highest_term.max(known) && epoch <= EPOCH_MAX {
            self.without_term = Some((epoch, seen + ttl));
        }
        self.note_epoch(epoch);
    }

    /// A term was seen then. Without an epoch it cannot be read.
    pub fn note_term(&mut self, term: &TermRecord, seen: Time) {
        self.without_term.take_if(|(epoch, _)| *epoch <= term.epoch);
        if term.epoch <= EPOCH_MAX {
            self.highest_term = self.highest_term.max(term.epoch);
        }
        if let Some((last, last_seen)) = &self.last {
            if last == term && *last_seen == seen {
                return;
            }
            // A successor reads the term of its predecessor, and copies what it says about leases.
            let goes_on = last.epoch <= term.epoch;
            let is_over = term::is_over(last, *last_seen);
            if !goes_on {
                // Others may have been elected between the two.
                let unseen = unseen_is_over(last, seen);
                self.not_before = self.not_before.max(Some(is_over.max(unseen)));
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
        self.is_settled = false;
    }

    /// The last term that was seen and all leases are over by etcd's clock.
    pub fn note_settled(&mut self) {
        self.is_settled = true;
    }

    /// There is no term now. If one was seen before, etcd was wiped, or restored to before that. Then nothing is
    /// known of who was the master last.
    pub fn note_no_term(&mut self, now: Time) {
        let Some((last, seen)) = self.last.take() else {
            return;
        };
        let is_over = term::is_over(&last, seen);
        let unseen = unseen_is_over(&last, now);
        self.not_before = self.not_before.max(Some(is_over.max(unseen)));
        if let Some(leases) = &last.leases {
            let until = is_over + leases.longest.max(leases.older);
            self.lost_until = self.lost_until.max(Some(until));
        }
    }

    /// Returns when a candidate that has just won may begin, and since when the node is vacant then. None: for so long
    /// that no lease is left. A later winner must wait as long, if this one has not begun by then. The candidate has
    /// decided itself until `decided_until` at most.
    pub fn begin(
        &mut self,
        own_server: &str,
        decided_until: Option<Time>,
        won: Time,
    ) -> (Time, Option<Time>) {
        let unseen = self.without_term.take().map(|(_, until)| until);
        self.not_before = self.not_before.max(unseen);
        let last = self.last.as_ref().map(|(term, seen)| (term, *seen));
        // Of a master that was never seen, there is no mark.
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

/// When a master is over, at the latest, that was elected after that one and of which nothing was seen before etcd
/// had gone back, which it has by now: whoever was frozen or cut off meanwhile does not know of it.
fn unseen_is_over(last: &TermRecord, now: Time) -> Time {
    now + last.length
}

#[cfg(test)]
mod tests;
