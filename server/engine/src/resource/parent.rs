//! A resource's own lease, below the root: facts about the parent, the requests to it, and the effects of its answers.
//!
//! At most one request is in flight. A request reports the server's lease, and so promises not to apply any answer to
//! an earlier request (`docs/protocol.md`, "A lease"). Therefore an answer counts only if it belongs to the newest
//! request. A parent may send several of them, as its grants change.

pub use crate::resource::parent_lease::ParentPace;

use std::sync::Arc;

use crate::amount::Amount;
use crate::claims::demand::points_per_band;
use crate::claims::{BandDemand, DemandCurve, FEW, POINTS_MAX, ServerDemand};
use crate::continuity::Statement;
use crate::division::Supply;
use crate::id::MastershipId;
use crate::messages::{Has, RefusalReason, ServerAsk, ServerLease, UpstreamSnapshot};
use crate::resource::holders::Holders;
use crate::resource::parent_lease::{AnswerTo, Changes, LeaseRequest, Needs, ParentLease};
use crate::resource::policy::Policy;
use crate::resource::{Resource, pace};
use crate::templates::REFRESH_IN_MAX;
use crate::time::{Time, tolerance};

/// Relative change of the total demand that does not wait for the slow round.
const MATTERS: f64 = 1e-3;

/// Facts about the parent besides the supply.
#[derive(Debug)]
pub(super) struct Parent {
    /// State of the own lease.
    pub(super) lease: ParentLease,
    /// Whether an invalid answer was reported, and no valid one came since.
    is_invalid_reported: bool,
    /// Mastership of the parent that granted the newest lease.
    granted_by: Option<MastershipId>,
    /// Number of clients served here that the parent has counted.
    pub(super) clients_reported: f64,
}

impl Parent {
    /// Starts without any request.
    pub(super) fn new() -> Self {
        Self {
            lease: ParentLease::NEW,
            is_invalid_reported: false,
            granted_by: None,
            clients_reported: 0.0,
        }
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
        let refresh_in = lease.refresh_in.min(REFRESH_IN_MAX);
        let refresh_at = now + pace::within_lease(refresh_in, expires_at.since(now));
        // The possible lease length depends on whether a predecessor asks again.
        let expected_at = lease.terms.predecessor_for.map(|wait| now + wait);
        let refresh_at = expected_at.map_or(refresh_at, |at| refresh_at.min(at));
        self.lease.become_held(lease.capacity, refresh_at);
        if lease.decided != Some(false) {
            self.clients_reported = request.clients;
        }
        self.is_invalid_reported = false;
        std::mem::replace(&mut self.granted_by, lease.granted_by) == lease.granted_by
    }

    /// Whether the parent needs one more request of a resource without holders: to get back the rest, or because it
    /// still counts this server as one that learns.
    pub(super) fn has_leftover(&self, supply: &Supply) -> bool {
        let request = self.lease.request();
        let said_it_learns = request.is_some_and(|request| request.learning);
        !supply.capacity.is_zero() || said_it_learns && supply.expires_at.is_some()
    }

    /// Whether the parent does not know the present demand, or has not answered it.
    pub(super) fn is_behind(&self, demand_version: u64) -> bool {
        let sent = self.lease.request().map(|request| request.demand_version);
        self.lease.is_asked() || sent != Some(demand_version)
    }
}

impl Resource {
    /// Returns when to ask the parent, or nothing if only a change can make that necessary.
    pub(crate) fn next_request(&self, pace: ParentPace) -> Option<Time> {
        let upstream = self.parent.as_ref()?;
        let needs = if !self.holders.table.is_empty() {
            Needs::Holders
        } else if self.recovery.is_some() {
            Needs::Unreported
        } else if upstream.has_leftover(&self.supply) {
            Needs::Leftover
        } else {
            Needs::Nothing
        };
        let news = |request: &LeaseRequest| self.changes_since(request);
        upstream.lease.next_request(needs, news, pace)
    }

    /// Returns the size of the changes since that request.
    fn changes_since(&self, request: &LeaseRequest) -> Changes {
        let wants = self.holders.wants_above();
        let matters = (wants - request.wants).abs() > MATTERS * request.wants.max(wants)
            || self.holding() < request.holding
            || request.learning != self.recovery.is_some()
            || self.recovery.as_ref().is_some_and(|it| it.has_news());
        if matters {
            Changes::Matters
        } else if request.demand_version != self.holders.demand_version() {
            Changes::Little
        } else {
            Changes::None
        }
    }

    /// Returns the reason for refusing holders, if the parent refuses the resource.
    pub(super) fn refused(&self, now: Time) -> Option<RefusalReason> {
        self.parent.as_ref()?.lease.refused(now)
    }

    /// The request to the parent, with that sequence, for what holders ask for together.
    pub(crate) fn ask_upstream(
        &mut self,
        sequence: u64,
        few_points: usize,
        now: Time,
    ) -> Option<ServerAsk> {
        let said = self
            .recovery
            .as_mut()
            .map(|it| it.speak())
            .unwrap_or_default();
        let gives_back = self.holders.table.is_empty() && !said.learning;
        if gives_back {
            // The rest is no longer granted, whatever the answer is.
            self.set_supply(Supply::NONE);
        }
        let unreported = match said.learning {
            true => said.unreported,
            false => *self.holders.table.without_demand(),
        };
        let holding = self.holding();
        let has = self.supply.expires_at.filter(|end| *end > now);
        let demand = self.holders.aggregate(few_points);
        let clients = demand.clients();
        let ask = ServerAsk {
            resource: self.id.clone(),
            demand: Arc::new(demand),
            has: has.map(|end| Has {
                capacity: self.supply.capacity,
                expires_in: Some(end.since(now)),
                granted_by: self.parent.as_ref().and_then(|it| it.granted_by),
            }),
            outstanding: Some(self.holders.outstanding(&said, now)),
            unreported: unreported.rounded_up(),
            reported: said.reported,
            learning: said.learning,
            budget: None,
        };
        let request = LeaseRequest {
            sequence,
            sent_at: now,
            demand_version: self.holders.demand_version(),
            wants: self.holders.wants_above(),
            clients,
            holding,
            learning: said.learning,
        };
        let upstream = self.parent.as_mut()?;
        if gives_back {
            upstream.lease.give_back();
        } else {
            upstream.lease.ask(request);
        }
        Some(ask)
    }

    /// Returns the most that may be granted or in use by this server's own lease.
    fn holding(&self) -> Amount {
        self.supply
            .capacity
            .max(self.holders.table.reserved().rounded_up())
    }
}

impl Holders {
    /// Returns the amount that holders may be using, and for how long. Without the duration, a parent without a lease
    /// would have to count it for the longest lease length, and would report it to its own parent long after its end.
    fn outstanding(&self, said: &Statement, now: Time) -> Has {
        let in_use_until = self.table.in_use_until(now);
        let Some(until) = in_use_until.max(said.unreported_until) else {
            return Has::untimed(Amount::ZERO);
        };
        let mut sum = *self.table.reserved();
        sum.add_sum(&said.unreported);
        Has {
            expires_in: Some(until.since(now)),
            ..Has::untimed(sum.rounded_up())
        }
    }

    /// Everything that holders want, with those that only a child in learning mode counts.
    fn wants_above(&self) -> f64 {
        let table = &self.table;
        table.wants().rounded_down() + table.without_demand().rounded_down()
    }

    /// The demand of all holders together. `few_points`: points of the curve of few holders. O(points · log n).
    pub(super) fn aggregate(&self, few_points: usize) -> ServerDemand {
        let bands = &self.claims;
        let most = match self.table.len() {
            0..FEW => few_points,
            _ => POINTS_MAX,
        };
        let points_max = points_per_band(bands.len()).min(most);
        let demands = bands.iter().map(|(priority, index)| {
            let wants = if bands.len() == 1 {
                // To the bit, so that a capacity that is enough for all is seen to be.
                self.table.wants().rounded_up()
            } else {
                Amount::from_computed(index.total_wants())
            };
            BandDemand {
                priority,
                clients: index.total_subclients(),
                wants,
                curve: DemandCurve::of(index, points_max),
            }
        });
        ServerDemand::new(demands.collect())
    }
}

// The first answer decides the algorithm, and how long to learn. Every answer may change the capacity and the
// algorithm.

impl Resource {
    /// Handles the parent's answer. An answer to an older request changes nothing. Returns the sequence that the parent
    /// has seen from this node, if that is higher than the present one.
    ///
    /// # Errors
    ///
    /// The problem, if the answer is invalid. Then nothing changes.
    pub(crate) fn handle_upstream_lease(
        &mut self,
        lease: ServerLease,
        now: Time,
    ) -> Result<Option<u64>, String> {
        let Some(upstream) = &mut self.parent else {
            return Ok(None);
        };
        let request = match upstream.lease.answer_to(lease.sequence) {
            AnswerTo::Newest(request) => request,
            AnswerTo::Older => return Ok(None),
            AnswerTo::Newer(sequence) => {
                upstream.lease.become_behind(now);
                return Ok(Some(sequence));
            }
        };
        // The parent counts from its answer, which was later, and by its own clock.
        let expires_at = request.sent_at + tolerance::at_least(lease.expires_in);
        if expires_at <= now {
            return Err(format!(
                "the lease is over already: it lasts {:?}, and {:?} ago it was asked for",
                lease.expires_in,
                now.since(request.sent_at)
            ));
        }
        let is_same_granter = upstream.note_granted(&lease, &request, expires_at, now);
        let is_first = !self.policy.is_answered();
        let was_overcommitted = self.overcommitted().is_some();
        let algorithm = self
            .policy
            .apply_parent(lease.algorithm.as_ref(), &lease.terms);
        if let Some(algorithm) = algorithm {
            self.set_algorithm(algorithm, now);
        }
        let goes_on = self.tell_recovery(now, |recovery, s| recovery.hear_parent(s, &lease));
        if goes_on == Some(false) {
            self.end_recovery();
        }
        if is_first {
            let remaining = self.learning_remaining(now);
            let longest = self.situation(now).longest_of_predecessors(remaining);
            self.holders.table.end_all_by(now + longest, now);
        }
        let terms = lease.terms;
        let supply =
            self.supply
                .followed_by(lease.capacity, expires_at, terms, is_same_granter, now);
        self.change_supply(supply, was_overcommitted);
        let believed = self.tell_recovery(now, |recovery, s| recovery.count_answered(s));
        for (slot, part, ends_by) in believed.unwrap_or_default() {
            self.holders.table.change_leases(slot, |leases| {
                leases.acknowledge(part);
                leases.end_by(ends_by.unwrap_or(Time::MAX));
            });
        }
        Ok(None)
    }

    /// Notes an invalid answer: the server asks the parent again later. Returns whether to report it.
    pub(crate) fn handle_invalid_upstream_answer(&mut self, now: Time) -> bool {
        let Some(upstream) = &mut self.parent else {
            return false;
        };
        upstream.lease.note_invalid_answer(now);
        !std::mem::replace(&mut upstream.is_invalid_reported, true)
    }

    /// Handles a refusal of the resource. Granted leases last until they expire. Returns whether to report it. If
    /// another live process of the node has the lease, this server grants nothing more from it.
    pub(crate) fn handle_upstream_refusal(&mut self, reason: RefusalReason, now: Time) -> bool {
        let Some(upstream) = &mut self.parent else {
            return false;
        };
        if reason == RefusalReason::NotReady {
            upstream.lease.become_not_ready();
            return false;
        }
        let is_news = upstream.lease.become_refused(reason, now);
        if matches!(reason, RefusalReason::AnotherProcess(_)) {
            self.set_supply(Supply::NONE);
            if let Some(recovery) = &mut self.recovery {
                recovery.was_refused = true;
            }
        }
        is_news
    }

    /// Notes that the connection broke, or that another server answers now. The newest request, its answer, or a push
    /// may be lost, so the server asks the parent again.
    pub(crate) fn handle_upstream_lost(&mut self, now: Time) {
        if let Some(upstream) = &mut self.parent {
            upstream.lease.note_lost(now);
        }
    }
}
