//! The lease span: a key in etcd that exists while leases of a mastership may be valid, by a lease in etcd that outlasts
//! them.
//!
//! A server that has just started cannot know how long ago the last master confirmed its term. etcd's clock knows: if
//! the term has a span, and the span is gone, the term and all leases are over. So the server neither waits nor learns.
//!
//! Each confirmation renews the span and writes the key again together with the term. So a deleted key is back after
//! the next confirmation. A new lease for the span costs a request of its own: while etcd is too slow for that, a master
//! writes terms without a span.

use std::time::Duration;

use super::Candidate;
use super::phase::{EtcdLease, HeldMastership};
use super::step::{Awaited, Stage};
use super::store::{LeaseId, Op, TermRecord};
use crate::time::Time;

/// Longest span. A master with longer leases has none.
const SPAN_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The lease span of this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseSpan {
    /// Its lease in etcd.
    pub(super) id: LeaseId,
    /// Time for which a renewal counts: less than etcd's TTL, to allow for clock errors.
    pub(super) ttl: Duration,
    /// Whether a confirmed term is written with it.
    pub(super) is_written: bool,
}

impl Candidate {
    /// Returns the factor by which a lease in etcd must be longer than the leases that it outlasts, for clock errors.
    fn span_margin(&self) -> f64 {
        let part = self.config.clock_tolerance.part();
        1.0 + (2.0 * part / (1.0 - part)).max(0.1)
    }

    /// Returns the latest end of leases, if the mastership is confirmed now and not once more.
    fn leases_end(held: &HeldMastership, lease: EtcdLease, term: &TermRecord) -> Time {
        let leases = term.leases.as_ref();
        let leases = leases.map_or(Duration::ZERO, |it| it.longest.max(it.older));
        held.begins.max(lease.renewed + lease.ttl) + leases
    }

    /// Asks for a span that lasts long enough, if there is none and there is time, and then confirms the mastership.
    pub(super) fn span_and_confirm(&mut self, mend: bool, then: Stage, now: Time) -> Option<Stage> {
        let (Some(held), Some(lease)) = (self.phase.held().copied(), self.renewed_lease(now))
        else {
            return Some(then);
        };
        let term = self.term(&held, lease, now);
        let until = Self::leases_end(&held, lease, &term);
        // Later renewals may be confirmed faster than this one.
        let span = until.since(now) + lease.ttl / 3;
        let lasts = self.span.is_some_and(|span| now + span.ttl >= until);
        let asks_end = now + 2 * self.last_round_trip;
        let renewed_until = self.phase.seat()?.lease.renewed + lease.ttl;
        let has_time = asks_end < held.valid_until.unwrap_or(renewed_until);
        if lasts || span > SPAN_MAX || !has_time {
            return self.confirm(mend, then, now);
        }
        let seconds = span.mul_f64(self.span_margin()).as_secs() + 1;
        let op = Op::Grant(Duration::from_secs(seconds));
        self.ask(op, Awaited::Span { mend, then }, now)
    }

    /// Notes the lease of a span that etcd granted.
    pub(super) fn note_span(&mut self, id: LeaseId, ttl: Duration) {
        self.span = Some(LeaseSpan {
            id,
            ttl: ttl.div_f64(self.span_margin()),
            is_written: false,
        });
    }

    /// Returns a term that is confirmed now, and the lease of its span, which is renewed at the same time. It has a span
    /// if that lasts long enough.
    pub(super) fn term_with_span(
        &mut self,
        held: &HeldMastership,
        lease: EtcdLease,
        now: Time,
    ) -> (TermRecord, Option<LeaseId>) {
        let mut term = self.term(held, lease, now);
        let until = Self::leases_end(held, lease, &term);
        self.span = self.span.filter(|span| now + span.ttl >= until);
        term.has_lease_span = self.span.is_some();
        (term, self.span.map(|span| span.id))
    }
}
