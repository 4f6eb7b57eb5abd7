//! Effects of a parent's answer on a resource, below the root.
//!
//! The first answer decides the algorithm, and how long to learn. Every answer may change the capacity and the
//! algorithm. While a parent learns, its child servers learn too.

use std::time::Duration;

use crate::division::{ParentTerms, Supply};
use crate::messages::{RefusalReason, ServerLease};
use crate::resource::parent_lease::AnswerTo;
use crate::resource::{Resource, refresh};
use crate::time::{self, Time};

/// The effect of an answer of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It is in force.
    InForce,
    /// It is to an older request, and nothing was changed.
    Stale,
    /// The parent has seen a request of this node with a higher sequence.
    Behind(u64),
}

impl Resource {
    /// Handles the parent's answer.
    ///
    /// # Errors
    ///
    /// The problem, if the answer is invalid. Then nothing changes.
    pub(crate) fn handle_upstream_lease(
        &mut self,
        lease: &ServerLease,
        now: Time,
    ) -> Result<Applied, String> {
        let Some(upstream) = &mut self.upstream else {
            return Ok(Applied::Stale);
        };
        let request = match upstream.lease.answer_to(lease.sequence) {
            AnswerTo::Newest(request) => request,
            AnswerTo::Older => return Ok(Applied::Stale),
            AnswerTo::Newer(sequence) => {
                upstream.lease.become_behind(now);
                return Ok(Applied::Behind(sequence));
            }
        };
        // The parent counts from its answer, which was later, and by its own clock.
        let expires_at = request.sent_at + time::at_least(lease.expires_in);
        if expires_at <= now {
            return Err(format!(
                "the lease is over already: it lasts {:?}, and {:?} ago it was asked for",
                lease.expires_in,
                now.since(request.sent_at)
            ));
        }
        let is_same_granter = upstream.note_granted(lease, &request, expires_at, now);
        let is_first = !self.policy.is_answered();
        let was_overcommitted = self.overcommitted().is_some();
        let algorithm = self
            .policy
            .apply_parent(lease.algorithm.as_ref(), &lease.terms);
        if let Some(algorithm) = algorithm {
            self.set_algorithm(algorithm, now);
        }
        if is_first {
            self.decide_learning(&lease.terms, now);
        }
        self.learn_of_parent(lease, now);
        if is_first {
            let longest = self.longest_of_predecessors(now);
            self.ledger.end_all_by(now + longest, now);
        }
        if self.is_learning() {
            let learned = self.ledger.learned.get_or_insert_default();
            learned.note_parent_books(&lease.terms, lease.granted_by, now);
        }
        let terms = lease.terms.clone();
        let supply =
            self.supply
                .followed_by(lease.capacity, expires_at, terms, is_same_granter, now);
        self.change_supply(supply, was_overcommitted);
        self.count_answered_reports(now);
        Ok(Applied::InForce)
    }

    /// Decides how long to learn, by the parent's first answer. Before it, the lease length was unknown.
    fn decide_learning(&mut self, terms: &ParentTerms, now: Time) {
        let Some(upstream) = &mut self.upstream else {
            return;
        };
        // Leases of the predecessor were part of the parent's grants to it. When those have ended, there is nothing
        // left to learn. Later answers include the grants to this server itself.
        let inherited_for = terms
            .inherited_for
            .filter(|_| self.policy.algorithm().learns());
        let inherited_until = inherited_for.map(|lasts| now + time::at_most(lasts));
        upstream.inherited_until = inherited_until;
        // Leases of the predecessor may be longer than the present lease length.
        let out_until = now + terms.reserved_for.unwrap_or_default();
        let by_algorithm = self.learning_from(now);
        self.learning
            .decide(by_algorithm, out_until, inherited_until);
    }

    /// Ends learning mode, or makes it longer. It ends when two things hold: all leases of the predecessor have ended,
    /// and the parent knows the division of the whole. A parent that learns itself does not know it.
    fn learn_of_parent(&mut self, lease: &ServerLease, now: Time) {
        let upstream = self.upstream.as_ref();
        let inherited_until = upstream.and_then(|upstream| upstream.inherited_until);
        if lease.terms.learning {
            // The parent only confirms reports, rounded up. The rest is not granted before the parent knows the
            // division of the whole, even if the parent is unreachable meanwhile.
            let next = 2 * lease.refresh_in.min(refresh::REFRESH_IN_MAX);
            let learns = lease
                .terms
                .learning_for
                .map_or(Duration::ZERO, time::at_most);
            self.learning.outlast(now + next.max(learns));
        } else if let Some(inherited_until) = inherited_until {
            self.learning.end_with(inherited_until);
        }
        if self.learning.is_due(now) {
            self.end_learning();
        }
    }

    /// Notes an invalid answer: the server asks the parent again later. Returns whether to report it.
    pub(crate) fn handle_invalid_upstream_answer(&mut self, now: Time) -> bool {
        let Some(upstream) = &mut self.upstream else {
            return false;
        };
        upstream.lease.note_invalid_answer(now);
        !std::mem::replace(&mut upstream.is_invalid_reported, true)
    }

    /// Handles a refusal of the resource. Granted leases last until they expire. Returns whether to report it. If
    /// another live process of the node has the lease, this server grants nothing more from it.
    pub(crate) fn handle_upstream_refusal(&mut self, reason: RefusalReason, now: Time) -> bool {
        let Some(upstream) = &mut self.upstream else {
            return false;
        };
        if reason == RefusalReason::NotReady {
            upstream.lease.become_not_ready();
            return false;
        }
        let is_news = upstream.lease.become_refused(reason, now);
        if matches!(reason, RefusalReason::AnotherProcess(_)) {
            self.set_supply(Supply::NONE);
        }
        is_news
    }

    /// Notes that the connection broke, or that another server answers now. The newest request, its answer, or a push
    /// may be lost, so the server asks the parent again.
    pub(crate) fn handle_upstream_lost(&mut self, now: Time) {
        if let Some(upstream) = &mut self.upstream {
            upstream.lease.note_lost(now);
        }
    }
}
