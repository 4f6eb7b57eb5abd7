//! The mark that leases of a mastership may be valid: a key in etcd, with a lease of its own that outlasts them.
//!
//! A server that has just started cannot know how long ago the last master confirmed its term. etcd's clock knows: if
//! the term has a mark, and the mark is gone, the term and all leases are over. So the server neither waits nor learns.
//!
//! Each confirmation renews the mark and writes the key again together with the term. So a deleted key is back after
//! the next confirmation. A new lease for the mark costs a request of its own: while etcd is too slow for that, a master
//! writes terms without a mark.

use std::time::Duration;

use super::Candidate;
use super::phase::{EtcdLease, HeldMastership};
use super::step::{Awaited, Stage};
use super::store::{LeaseId, Op, TermRecord};
use crate::time::Time;

/// Longest mark. A master with longer leases has none.
const SPAN_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The mark of this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its lease in etcd.
    pub(super) id: LeaseId,
    /// Time for which a renewal counts: less than etcd's TTL, to allow for clock errors.
    pub(super) ttl: Duration,
    /// Whether a confirmed term is written with it.
    pub(super) is_written: bool,
}

impl Candidate {
    /// Returns the factor by which a lease in etcd must be longer than the leases that it outlasts, for clock errors.
    fn mark_margin(&self) -> f64 {
        let part = self.config.clock_tolerance.part();
        1.0 + (2.0 * part / (1.0 - part)).max(0.1)
    }

    /// Returns the latest end of leases, if the mastership is confirmed now and not once more.
    fn outstanding_until(held: &HeldMastership, lease: EtcdLease, term: &TermRecord) -> Time {
        let leases = term.leases.as_ref();
        let leases = leases.map_or(Duration::ZERO, |it| it.longest.max(it.older));
        held.begins.max(lease.renewed + lease.ttl) + leases
    }

    /// Asks for a mark that lasts long enough, if there is none and there is time, and then confirms the mastership.
    pub(super) fn mark_and_confirm(&mut self, mend: bool, then: Stage, now: Time) -> Option<Stage> {
        let (Some(held), Some(lease)) = (self.phase.held().copied(), self.renewed_lease(now))
        else {
            return Some(then);
        };
        let term = self.term(&held, lease, now);
        let until = Self::outstanding_until(&held, lease, &term);
        // Later renewals may be confirmed faster than this one.
        let span = until.since(now) + lease.ttl / 3;
        let lasts = self.mark.is_some_and(|mark| now + mark.ttl >= until);
        let asks_end = now + 2 * self.last_round_trip;
        let renewed_until = self.phase.seat()?.lease.renewed + lease.ttl;
        let has_time = asks_end < held.valid_until.unwrap_or(renewed_until);
        if lasts || span > SPAN_MAX || !has_time {
            return self.confirm(mend, then, now);
        }
        let seconds = span.mul_f64(self.mark_margin()).as_secs() + 1;
        let op = Op::Grant(Duration::from_secs(seconds));
        self.ask(op, Awaited::Marked { mend, then }, now)
    }

    /// Notes the lease of a mark that etcd granted.
    pub(super) fn note_mark(&mut self, id: LeaseId, ttl: Duration) {
        self.mark = Some(Mark {
            id,
            ttl: ttl.div_f64(self.mark_margin()),
            is_written: false,
        });
    }

    /// Returns a term that is confirmed now, and the lease of its mark, which is renewed at the same time. It has a mark
    /// if that lasts long enough.
    pub(super) fn marked_term(
        &mut self,
        held: &HeldMastership,
        lease: EtcdLease,
        now: Time,
    ) -> (TermRecord, Option<LeaseId>) {
        let mut term = self.term(held, lease, now);
        let until = Self::outstanding_until(held, lease, &term);
        self.mark = self.mark.filter(|mark| now + mark.ttl >= until);
        term.is_marked = self.mark.is_some();
        (term, self.mark.map(|mark| mark.id))
    }
}
