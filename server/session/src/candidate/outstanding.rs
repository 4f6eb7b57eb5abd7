//! The mark that leases of a mastership may be out: a key in etcd, with a lease of its own that outlasts them.
//!
//! A server that has just started cannot know how long ago the last master confirmed its term. etcd's clock knows: if
//! the term says that there is a mark, and the mark is gone, the term and all leases are over. So the server neither
//! waits nor learns.
//!
//! The mark is renewed after the master's own lease, and before the confirmation. Each confirmation writes the key
//! again together with the term, so whatever deleted the key, it is there after the next one.

use std::time::Duration;

use super::Candidate;
use super::phase::{EtcdLease, HeldMastership};
use super::step::{Awaited, Stage};
use super::store::Op;
use super::transactions::TermDetails;
use crate::time::Time;

/// The longest mark. A master whose leases last longer has none.
const SPAN_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The mark of this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Its lease in etcd. The TTL is shorter than etcd's: it allows for clocks that are wrong.
    pub(super) lease: EtcdLease,
    /// Whether a confirmed term is written with it.
    pub(super) is_written: bool,
}

impl Mark {
    fn lasts_until(&self) -> Time {
        self.lease.renewed + self.lease.ttl
    }
}

impl Candidate {
    /// By how much a lease in etcd must be longer than what it outlasts, by clocks that are wrong.
    fn mark_margin(&self) -> f64 {
        let part = self.config.clock_tolerance.part();
        1.0 + (2.0 * part / (1.0 - part)).max(0.1)
    }

    /// Returns the time until which leases may be out, if the mastership is confirmed now and not once more.
    fn outstanding_until(
        &self,
        held: &HeldMastership,
        lease: EtcdLease,
        details: &TermDetails,
    ) -> Time {
        let leases = details.leases.as_ref();
        let leases = leases.map_or(Duration::ZERO, |it| it.longest.max(it.older));
        held.begins.max(lease.renewed + lease.ttl) + leases
    }

    /// Asks for a mark that lasts long enough, if there is none, and then confirms the mastership.
    pub(super) fn mark_and_confirm(
        &mut self,
        lease: EtcdLease,
        mend: bool,
        then: Stage,
        now: Time,
    ) -> Option<Stage> {
        let Some(held) = self.phase.held().copied() else {
            return Some(then);
        };
        let details = self.term_details(&held, lease, now);
        let until = self.outstanding_until(&held, lease, &details);
        // Later renewals may be confirmed faster than this one.
        let span = until.since(now) + lease.ttl / 3;
        let op = match self.mark {
            Some(mark) if mark.lasts_until() >= until => None,
            Some(mark) if now + mark.lease.ttl >= until => Some(Op::Renew(mark.lease.id)),
            _ if span > SPAN_MAX => None,
            _ => {
                let seconds = span.mul_f64(self.mark_margin()).as_secs() + 1;
                Some(Op::Grant(Duration::from_secs(seconds)))
            }
        };
        match op {
            Some(op) => self.ask(op, Awaited::Marked { lease, mend, then }, now),
            None => self.confirm(lease, mend, then, now),
        }
    }

    /// etcd granted the lease of a mark.
    pub(super) fn note_mark(&mut self, lease: EtcdLease) {
        let ttl = lease.ttl.div_f64(self.mark_margin());
        self.mark = Some(Mark {
            lease: EtcdLease { ttl, ..lease },
            is_written: false,
        });
    }

    /// The details of a term that is confirmed now. It has a mark if that lasts long enough.
    pub(super) fn marked_details(
        &mut self,
        held: &HeldMastership,
        lease: EtcdLease,
        now: Time,
    ) -> TermDetails {
        let details = self.term_details(held, lease, now);
        let until = self.outstanding_until(held, lease, &details);
        self.mark = self.mark.filter(|mark| mark.lasts_until() >= until);
        let mark = self.mark.map(|mark| mark.lease.id);
        TermDetails { mark, ..details }
    }
}
