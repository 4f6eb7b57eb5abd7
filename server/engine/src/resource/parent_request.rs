//! A resource's own lease, below the root: facts about the parent, and the requests to it. The module
//! [`parent_answer`](super::parent_answer) handles its answers.
//!
//! At most one request is in flight. A request reports the server's lease, and so promises not to apply any answer to
//! an earlier request (`docs/protocol.md`, "A lease"). Therefore an answer counts only if it belongs to the newest
//! request. A parent may send several of them, as its grants change.

pub use crate::resource::parent_lease::Pace;

use std::sync::Arc;

use crate::amount::Amount;
use crate::division::Supply;
use crate::exact_sum::ExactSum;
use crate::id::MastershipId;
use crate::messages::{Has, ServerAsk, ServerLease, UpstreamSnapshot};
use crate::resource::parent_lease::{Changes, LeaseRequest, Needs, ParentLease};
use crate::resource::policy::Policy;
use crate::resource::{Resource, refresh};
use crate::time::Time;

/// Relative change of the total demand that does not wait for the slow round.
const MATTERS: f64 = 1e-3;

/// Facts about the parent besides the supply.
#[derive(Debug)]
pub(super) struct ParentFacts {
    /// State of the own lease.
    pub(super) lease: ParentLease,
    reports: ReportCount,
    /// Whether an invalid answer was reported, and no valid one came since.
    pub(super) is_invalid_reported: bool,
    /// End of the last lease of a predecessor, as far as the parent knows.
    pub(super) inherited_until: Option<Time>,
    /// Mastership of the parent that granted the newest lease.
    granted_by: Option<MastershipId>,
    /// Number of clients served here that the parent has counted.
    pub(super) clients_reported: f64,
}

/// Counts reports of holders that exceed what this server knew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportCount {
    made: u64,
    /// Reports in requests to the parent.
    sent: u64,
    /// Reports in requests that the parent has answered.
    answered: u64,
}

impl ReportCount {
    /// Counts a report of a holder that exceeds what this server knew. Returns the number of such reports.
    pub(super) fn count(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Number of reports that the parent has answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether the parent has answered a request with all reports.
    pub(super) fn are_all_answered(&self) -> bool {
        self.answered == self.made
    }

    fn are_all_sent(&self) -> bool {
        self.sent == self.made
    }

    fn note_sent(&mut self) {
        self.sent = self.made;
    }

    fn note_answered(&mut self) {
        self.answered = self.sent;
    }
}

impl ParentFacts {
    /// Starts without any request.
    pub(super) fn new() -> Self {
        Self {
            lease: ParentLease::NEW,
            reports: ReportCount::default(),
            is_invalid_reported: false,
            inherited_until: None,
            granted_by: None,
            clients_reported: 0.0,
        }
    }

    /// Returns the counted reports.
    pub(super) fn reports(&self) -> &ReportCount {
        &self.reports
    }

    /// Returns the counted reports, to count one more.
    pub(super) fn reports_mut(&mut self) -> &mut ReportCount {
        &mut self.reports
    }

    /// Returns the state of the own lease for status pages.
    pub(super) fn snapshot(&self, policy: &Policy, supply: &Supply, now: Time) -> UpstreamSnapshot {
        UpstreamSnapshot {
            expires_in: supply.expires_at.map(|end| end.since(now)),
            share: supply.terms.as_ref().map_or(0.0, |terms| terms.share.get()),
            knows_algorithm: policy.is_answered(),
            in_flight: self.lease.is_asked(),
            refused: self.lease.refused(now),
            learning_remaining: supply
                .learning_until
                .filter(|until| *until > now)
                .map(|until| until.since(now)),
        }
    }

    /// Applies a lease of the parent, as the answer to that request. Returns whether the same mastership of the parent
    /// granted the previous lease.
    pub(super) fn note_granted(
        &mut self,
        lease: &ServerLease,
        request: &LeaseRequest,
        expires_at: Time,
        now: Time,
    ) -> bool {
        let refresh_in = lease.refresh_in.min(refresh::REFRESH_IN_MAX);
        let refresh_at = now + refresh::within_lease(refresh_in, expires_at.since(now));
        // The possible lease length depends on whether a predecessor asks again.
        let expected_at = lease.terms.predecessor_for.map(|wait| now + wait);
        self.lease
            .become_held(expected_at.map_or(refresh_at, |at| refresh_at.min(at)));
        if lease.decided != Some(false) {
            self.clients_reported = request.clients;
        }
        self.is_invalid_reported = false;
        self.reports.note_answered();
        std::mem::replace(&mut self.granted_by, lease.granted_by) == lease.granted_by
    }
}

impl Resource {
    /// Returns when to ask the parent, or nothing if only a change can make that necessary.
    pub(super) fn next_request(&self, pace: Pace) -> Option<Time> {
        let upstream = self.upstream.as_ref()?;
        let needs = if !self.ledger.is_empty() {
            Needs::Holders
        } else if self.is_learning() {
            Needs::Unreported
        } else if self.has_leftover() {
            Needs::Leftover
        } else {
            Needs::Nothing
        };
        let news = |request: &LeaseRequest| self.changes_since(request, upstream);
        upstream.lease.next_request(needs, news, pace)
    }

    /// Whether the parent needs one more request of a resource without holders: to get back the rest, or because it
    /// still counts this server as one that learns.
    pub(super) fn has_leftover(&self) -> bool {
        let request = self.upstream.as_ref().and_then(|it| it.lease.request());
        let said_it_learns = request.is_some_and(|request| request.learning);
        !self.supply.capacity.is_zero() || said_it_learns && self.supply.expires_at.is_some()
    }

    /// Returns the size of the changes since that request.
    fn changes_since(&self, request: &LeaseRequest, upstream: &ParentFacts) -> Changes {
        let wants = self.ledger.table().wants().rounded_down();
        let matters = (wants - request.wants).abs() > MATTERS * request.wants.max(wants)
            || self.holding() < request.holding
            || request.learning != self.is_learning()
            || !upstream.reports.are_all_sent();
        if matters {
            Changes::Matters
        } else if request.demand_version != self.ledger.demand_version() {
            Changes::Little
        } else {
            Changes::None
        }
    }

    /// Whether the parent does not know the present demand, or has not answered it. Never at the root.
    pub(super) fn parent_is_behind(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| {
            let request = upstream.lease.request();
            let sent = request.map(|request| request.demand_version);
            upstream.lease.is_asked() || sent != Some(self.ledger.demand_version())
        })
    }

    /// The request to the parent, with that sequence, for what holders ask for together.
    pub(crate) fn ask_upstream(&mut self, sequence: u64, now: Time) -> Option<ServerAsk> {
        let learning = self.is_learning();
        let gives_back = self.ledger.is_empty() && !learning;
        if gives_back {
            // The rest is no longer granted, whatever the answer is.
            self.set_supply(Supply::NONE);
        }
        let holding = self.holding();
        let has = self.supply.expires_at.filter(|end| *end > now);
        let unreported = self.unreported();
        let demand = self.aggregate();
        let clients = demand.clients();
        let ask = ServerAsk {
            resource: self.id.clone(),
            demand: Arc::new(demand),
            has: has.map(|end| Has {
                capacity: self.supply.capacity,
                expires_in: Some(end.since(now)),
                granted_by: self.upstream.as_ref().and_then(|it| it.granted_by),
            }),
            outstanding: Some(self.outstanding(&unreported, now)),
            unreported: unreported.rounded_up(),
            reported: match &self.ledger.learned {
                Some(learned) if learning => learned.reported(),
                _ => Vec::new(),
            },
            learning,
        };
        let request = LeaseRequest {
            sequence,
            sent_at: now,
            demand_version: self.ledger.demand_version(),
            wants: self.ledger.table().wants().rounded_down(),
            clients,
            holding,
            learning,
        };
        let upstream = self.upstream.as_mut()?;
        if gives_back {
            upstream.lease.give_back();
        } else {
            upstream.lease.ask(request);
        }
        upstream.reports.note_sent();
        Some(ask)
    }

    /// Returns the most that may be granted or in use by this server's own lease.
    fn holding(&self) -> Amount {
        self.supply
            .capacity
            .max(self.ledger.table().reserved().rounded_up())
    }

    /// Returns the amount that holders may be using, and for how long. Without the duration, a parent without a lease
    /// would have to count it for the longest lease length, and would report it to its own parent long after its end.
    fn outstanding(&self, unreported: &ExactSum, now: Time) -> Has {
        let in_use_until = self.ledger.table().in_use_until(now);
        // Learning mode ends when they end.
        let unreported_until = self.learning.until().filter(|_| !unreported.is_zero());
        match in_use_until.max(unreported_until) {
            Some(until) => {
                let mut sum = *self.ledger.table().reserved();
                sum.add_sum(unreported);
                Has {
                    expires_in: Some(until.since(now)),
                    ..Has::untimed(sum.rounded_up())
                }
            }
            None => Has::untimed(Amount::ZERO),
        }
    }
}
