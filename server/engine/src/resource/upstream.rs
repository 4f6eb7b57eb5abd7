//! A resource's own lease, below the root: what the parent is asked and when, and what its answers
//! do.
//!
//! At most one request is on its way: a request says what the server has, which is a promise not to
//! work to any answer to an earlier one (`docs/protocol.md`, "A lease"). So an answer counts only if
//! it is to the newest request; a parent may send several, one after the other, as its grants
//! change.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm;
use crate::amount::Amount;
use crate::demand::{BandDemand, Demand, ServerDemand};
use crate::demand_curve::{DemandCurve, POINTS_MAX};
use crate::exact_sum::ExactSum;
use crate::id::{HolderName, MastershipId};
use crate::lease_table::{Holding, Slot};
use crate::refresh;
use crate::request::server::{ServerAsk, ServerLease};
use crate::request::{Has, RefusalReason};
use crate::resource::Resource;
use crate::resource::ask::Answer;
use crate::snapshot::UpstreamSnapshot;
use crate::supply::{Supply, Told};
use crate::time::{self, Time};

/// How soon what changed goes up to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// After the last request, what matters: other leases depend on it.
    pub round: Duration,
    /// After the last request, what may change little for anybody.
    pub slow: Duration,
}

/// A change of the total demand by less than this part of it waits for the slow round.
const MATTERS: f64 = 1e-3;

/// How long a resource that the parent refused is not asked for again.
const REFUSED_LENGTH: Duration = Duration::from_secs(5);

/// Whom another process of its node keeps waiting asks again after so long at the latest: so its
/// operators are told for as long as both live.
const ANOTHER_PROCESS_MAX: Duration = Duration::from_secs(60);

/// How long after a parent was not ready it is asked again, at most: whoever has leases left must
/// not lose them because every level between it and the root waits for the next in turn.
const NOT_READY_LENGTH: Duration = Duration::from_millis(250);

/// How long after an answer that made no sense the parent is asked again.
const NONSENSE_LENGTH: Duration = Duration::from_secs(1);

/// What is known of the server's own lease besides the supply it gives.
#[derive(Debug, Default)]
pub struct Upstream {
    /// How to divide is known: the parent has answered.
    pub knows_algorithm: bool,
    /// And the parent said so, instead of leaving it to our own templates.
    pub parent_tells_algorithm: bool,
    asked: Option<Asked>,
    in_flight: bool,
    refresh_at: Time,
    /// The parent has no lease itself yet.
    parent_not_ready: bool,
    refused: Option<(RefusalReason, Time)>,
    /// How often holders said that they have more than was known; as told to the parent; as
    /// answered.
    words: u64,
    words_told: u64,
    words_answered: u64,
    /// What was left over was given back.
    given_back: bool,
    /// The last answer made no sense.
    nonsense: bool,
    /// When the last of what our predecessor handed out ends, as far as the parent knows.
    inherited_until: Option<Time>,
    /// Which mastership of the parent granted the newest lease.
    granted_by: Option<MastershipId>,
}

/// The newest request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sequence: u64,
    sent_at: Time,
    demand_version: u64,
    wants: f64,
    clients: f64,
    /// The larger of what the server has and what its holders may be using.
    holding: Amount,
    learning: bool,
}

/// What an answer of the parent did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It is in force.
    InForce,
    /// It is to an older request, and nothing was changed.
    Stale,
    /// The parent has seen a request of this node with a higher sequence.
    Behind(u64),
}

impl Upstream {
    /// Why holders are refused, if the parent refuses the resource.
    pub fn refused(&self, now: Time) -> Option<RefusalReason> {
        self.refused
            .filter(|(_, until)| *until > now)
            .map(|(reason, _)| reason)
    }

    /// Until when a refusal is remembered.
    pub fn refused_until(&self) -> Option<Time> {
        self.refused.map(|(_, until)| until)
    }

    /// Forgets a refusal that is over, when nobody is left to whom it matters.
    pub fn forget_refusal(&mut self, now: Time) {
        self.refused = self.refused.filter(|(_, until)| *until > now);
    }

    /// Whether there is nothing more to tell the parent once nobody holds anything.
    pub fn is_idle(&self, supply: &Supply) -> bool {
        let nothing_left = supply.capacity.is_zero() && !self.in_flight && self.refused.is_none();
        self.given_back || nothing_left
    }

    /// A holder says that it has more than this server knew of.
    /// Returns how many were said until now.
    pub fn count_word(&mut self) -> u64 {
        self.words += 1;
        self.words
    }

    /// How many of these the parent has answered.
    pub fn words_answered(&self) -> u64 {
        self.words_answered
    }

    /// Whether the parent has answered a request that took everything into account that holders
    /// said they have.
    pub fn has_heard_all(&self) -> bool {
        self.words_answered == self.words
    }

    /// What is known of it now.
    pub fn snapshot(&self, supply: &Supply, now: Time) -> UpstreamSnapshot {
        UpstreamSnapshot {
            expires_in: supply.expires_at.map(|end| end.since(now)),
            share: supply.told.as_ref().map_or(0.0, |told| told.share.get()),
            knows_algorithm: self.knows_algorithm,
            in_flight: self.in_flight,
            refused: self.refused(now),
            learning_remaining: supply
                .learning_until
                .filter(|until| *until > now)
                .map(|until| until.since(now)),
        }
    }
}

impl Resource {
    /// When the parent is to be asked. None: not as long as nothing changes.
    pub fn upstream_due(&self, pace: Pace) -> Option<Time> {
        let upstream = self.upstream.as_ref()?;
        if upstream.in_flight || upstream.given_back {
            return None;
        }
        let nobody = self.table.is_empty();
        if let Some((_, until)) = upstream.refused {
            let asked = upstream.asked.map_or(Time::ZERO, |asked| asked.sent_at);
            return Some(until.max(asked + pace.round)).filter(|_| !nobody);
        }
        let Some(asked) = upstream.asked else {
            return Some(Time::ZERO).filter(|_| !nobody);
        };
        if nobody && !self.is_learning() {
            // What is left over is given back.
            return Some(asked.sent_at + pace.round).filter(|_| !self.supply.capacity.is_zero());
        }
        if upstream.parent_not_ready {
            return Some(asked.sent_at + NOT_READY_LENGTH.min(2 * pace.round));
        }
        let wants = self.table.wants().rounded_down();
        let changed = asked.demand_version != self.demand_version;
        let matters = (wants - asked.wants).abs() > MATTERS * asked.wants.max(wants)
            || self.holding() < asked.holding
            || asked.learning != self.is_learning()
            || upstream.words > upstream.words_told;
        let due = if matters {
            upstream.refresh_at.min(asked.sent_at + pace.round)
        } else if changed {
            upstream.refresh_at.min(asked.sent_at + pace.slow)
        } else {
            upstream.refresh_at
        };
        // However soon a parent wants to be asked again.
        Some(due.max(asked.sent_at + pace.round))
    }

    /// Whether the parent has yet to hear, or to answer, what holders ask for now. Never at the root.
    pub(super) fn parent_is_to_hear(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| {
            let asked = upstream.asked.map(|asked| asked.demand_version);
            upstream.in_flight || asked != Some(self.demand_version)
        })
    }

    /// What to ask the parent, in the request of that sequence.
    pub fn ask_upstream(&mut self, sequence: u64, now: Time) -> Option<ServerAsk> {
        let learning = self.is_learning();
        if self.table.is_empty() && !learning {
            // Nothing will be handed out by what is left over, whatever is answered.
            self.set_supply(Supply::NONE);
            self.upstream.as_mut()?.given_back = true;
        }
        let holding = self.holding();
        let has = self.supply.expires_at.filter(|end| *end > now);
        let unheard = self.unheard();
        let ask = ServerAsk {
            resource: self.id.clone(),
            demand: Arc::new(self.aggregate()),
            has: has.map(|end| Has {
                capacity: self.supply.capacity,
                expires_in: Some(end.since(now)),
                granted_by: self.upstream.as_ref().and_then(|it| it.granted_by),
            }),
            outstanding: Some(self.outstanding(&unheard, now)),
            unheard: unheard.rounded_up(),
            told_of: if learning {
                self.learned.told_of()
            } else {
                Vec::new()
            },
            learning,
        };
        let asked = Asked {
            sequence,
            sent_at: now,
            demand_version: self.demand_version,
            wants: self.table.wants().rounded_down(),
            clients: self.clients(),
            holding,
            learning,
        };
        let upstream = self.upstream.as_mut()?;
        upstream.asked = Some(asked);
        upstream.in_flight = true;
        upstream.words_told = upstream.words;
        Some(ask)
    }

    /// The parent's answer.
    ///
    /// # Errors
    ///
    /// What is wrong with it, if it makes no sense; nothing is changed then.
    pub fn handle_upstream_lease(
        &mut self,
        lease: &ServerLease,
        now: Time,
    ) -> Result<Applied, String> {
        let Some(upstream) = &mut self.upstream else {
            return Ok(Applied::Stale);
        };
        let Some(asked) = upstream.asked else {
            // An answer to what was given back, and is wanted again.
            return Ok(Applied::Stale);
        };
        match lease.sequence {
            Some(sequence) if sequence < asked.sequence => return Ok(Applied::Stale),
            Some(sequence) if sequence > asked.sequence => {
                upstream.in_flight = false;
                upstream.refresh_at = now;
                return Ok(Applied::Behind(sequence));
            }
            _ => {}
        }
        // The granter counts from when it answered, which was later, and by a clock of its own.
        let expires_at = asked.sent_at + time::at_least(lease.expires_in);
        if expires_at <= now {
            return Err(format!(
                "the lease is over already: it lasts {:?}, and {:?} ago it was asked for",
                lease.expires_in,
                now.since(asked.sent_at)
            ));
        }
        if lease.decided != Some(false) {
            self.clients_heard = asked.clients;
        }
        let granted_by = std::mem::replace(&mut upstream.granted_by, lease.granted_by);
        upstream.in_flight = false;
        upstream.parent_not_ready = false;
        upstream.nonsense = false;
        upstream.refused = None;
        upstream.words_answered = upstream.words_told;
        let refresh_in = lease.refresh_in.min(refresh::REFRESH_IN_MAX);
        upstream.refresh_at = now + refresh::within_lease(refresh_in, expires_at.since(now));
        let first = !std::mem::replace(&mut upstream.knows_algorithm, true);
        upstream.parent_tells_algorithm = lease.algorithm.is_some();
        self.note_bounds_told(&lease.told, lease.algorithm.is_some());
        let own = || self.template.as_ref().map(|template| &template.algorithm);
        let algorithm = lease.algorithm.as_ref().or_else(own).cloned();
        let was_overcommitted = self.overcommitted().is_some();
        if let Some(algorithm) = algorithm.filter(|given| first || *given != self.algorithm) {
            self.set_algorithm(algorithm, now);
        }
        if first {
            // Until now, how long to learn was not known, nor how long leases are.
            self.learn(now);
            // Leases of our predecessor may be longer than they are now.
            let out = now + lease.told.reserved_for.unwrap_or_default();
            self.learning_until = self.learning_until.map(|until| until.max(out));
        }
        self.learn_of_parent(lease, first, now);
        if first {
            self.table
                .end_all_by(now + self.longest_of_predecessors(now));
        }
        if let (Some(wait), Some(upstream)) = (lease.told.predecessor_for, &mut self.upstream) {
            // Whether it was heard decides for how long leases can be.
            upstream.refresh_at = upstream.refresh_at.min(now + wait);
        }
        if self.is_learning() {
            self.learned.note_told(&lease.told, lease.granted_by, now);
        }
        // What it may have no more of, it may have for as long as it was promised before: but not by what
        // another mastership of the parent promised, of which this one may believe less.
        let promised = self
            .supply
            .expires_at
            .filter(|_| granted_by == lease.granted_by);
        let promised = promised.unwrap_or(expires_at);
        let expires_at = if lease.capacity <= self.supply.capacity {
            expires_at.max(promised)
        } else {
            expires_at
        };
        let mut told = lease.told.clone();
        if let (true, Some(before)) = (told.learning, &self.supply.told) {
            told.bands.clone_from(&before.bands);
            told.per_client = before.per_client;
        }
        let supply = Supply::of_parent(lease.capacity, expires_at, told, now);
        self.change_supply(supply, was_overcommitted);
        self.count_answered_words(now);
        Ok(Applied::InForce)
    }

    /// What our predecessor handed out was cut from what the parent had granted it. When that is
    /// over, and be it now, there is nothing left to learn of; and when the parent knows how the
    /// whole is divided, which it does not while it learns itself.
    fn learn_of_parent(&mut self, lease: &ServerLease, first: bool, now: Time) {
        let Some(upstream) = &mut self.upstream else {
            return;
        };
        if first {
            // What is told later counts what we were granted ourselves.
            upstream.inherited_until = lease
                .told
                .inherited_for
                .filter(|_| self.algorithm.learns())
                .map(|lasts| now + time::at_most(lasts));
            if upstream.inherited_until.is_some() {
                self.learning_until = upstream.inherited_until;
            }
        }
        if lease.told.learning {
            // It confirms what it is told, rounded up. That is not to be handed out before the parent knows
            // how the whole is divided, be it that it cannot be asked meanwhile.
            let next = 2 * lease.refresh_in.min(refresh::REFRESH_IN_MAX);
            let learns = lease
                .told
                .learning_for
                .map_or(Duration::ZERO, time::at_most);
            let until = now + next.max(learns);
            self.learning_until = self.learning_until.map(|it| it.max(until));
        } else if self.learning_until.is_some() && upstream.inherited_until.is_some() {
            self.learning_until = upstream.inherited_until;
        }
        let learned = self.learning_until.is_some_and(|until| until <= now);
        if learned {
            self.end_learning();
        }
    }

    /// The parent's answer makes no sense: it is asked again later. Returns whether this is news.
    pub fn handle_upstream_nonsense(&mut self, now: Time) -> bool {
        let Some(upstream) = &mut self.upstream else {
            return false;
        };
        upstream.in_flight = false;
        upstream.refused = None;
        upstream.refresh_at = now + NONSENSE_LENGTH;
        !std::mem::replace(&mut upstream.nonsense, true)
    }

    /// The parent refuses the resource. What is out goes on until it expires. Returns whether this
    /// is news. If another live process of the node has the lease, ours is not our own: nothing more is
    /// handed out by it.
    pub fn handle_upstream_refusal(&mut self, reason: RefusalReason, now: Time) -> bool {
        let Some(upstream) = &mut self.upstream else {
            return false;
        };
        upstream.in_flight = false;
        if reason == RefusalReason::NotReady {
            upstream.parent_not_ready = true;
            upstream.refused = None;
            return false;
        }
        let is_news = upstream.refused.is_none();
        let (told, wait) = match reason {
            RefusalReason::UnknownResource => (reason, REFUSED_LENGTH),
            RefusalReason::AnotherProcess(wait) => {
                let wait = wait.clamp(REFUSED_LENGTH, ANOTHER_PROCESS_MAX);
                (RefusalReason::RefusedByParent, wait)
            }
            _ => (RefusalReason::RefusedByParent, REFUSED_LENGTH),
        };
        upstream.refused = Some((told, now + wait));
        if matches!(reason, RefusalReason::AnotherProcess(_)) {
            self.set_supply(Supply::NONE);
        }
        is_news
    }

    /// The connection broke, or another server answers now: the newest request, the answer to it, or
    /// what was told unasked may be lost. The parent is to be asked again.
    pub fn handle_upstream_lost(&mut self, now: Time) {
        if let Some(upstream) = &mut self.upstream {
            upstream.in_flight = false;
            upstream.refresh_at = upstream.refresh_at.min(now);
        }
    }

    /// Everything that a child server is told unasked. It counts its lease from when it sent its
    /// newest request, and so do we, from when that came.
    pub fn pushed_lease(
        &self,
        name: &HolderName,
        answer: &Answer,
        now: Time,
    ) -> Option<ServerLease> {
        let holding = self.table.get(*self.children.get(name)?)?;
        let asked_at = holding.report.as_ref()?.asked_at;
        self.server_lease(name, answer, asked_at, None, now)
    }

    /// How long what a child server was granted lasts: by its predecessors, if it says by which mastership
    /// it speaks. What we may not know of, in learning mode, lasts no longer than that.
    pub fn granted_for(&self, name: &HolderName, now: Time) -> Duration {
        // What we do not know of is over when we have learned.
        let learns_for = self.learning_remaining(now).unwrap_or_default();
        let holding = self
            .children
            .get(name)
            .and_then(|slot| self.table.get(*slot));
        // One that says by which mastership it speaks: of those before.
        let masterships = holding.and_then(|it| Some(it.past.as_ref()?.masterships()));
        let until = match masterships.filter(|it| it.current().is_some()) {
            Some(known) => known.inherited(now).and_then(|it| it.in_use_until()),
            None => holding.and_then(Holding::in_use_until),
        };
        let lasts = until.map_or(Duration::ZERO, |until| until.since(now));
        lasts.max(learns_for)
    }

    /// Everything that a child server is told with its newest lease, which is counted from
    /// `asked_at`. Before it asked, what it was granted lasted for `inherited_for`.
    pub fn server_lease(
        &self,
        name: &HolderName,
        answer: &Answer,
        asked_at: Time,
        inherited_for: Option<Duration>,
        now: Time,
    ) -> Option<ServerLease> {
        let holding = self.table.get(*self.children.get(name)?)?;
        let Demand::Server(demand) = &holding.demand else {
            return None;
        };
        let rule = algorithm::solve(&self.algorithm, &self.bands, &self.supply, &holding.demand);
        let masterships = holding.past.as_ref().map(|past| past.masterships());
        let masterships = masterships.filter(|it| it.current().is_some());
        let inherited = masterships.map(|it| {
            let before = it.inherited(now);
            before.map_or(Amount::ZERO, |before| before.reserved())
        });
        let accounted = masterships
            .and_then(|it| it.accounted())
            .unwrap_or_default();
        // In learning mode nothing is shared out, so how is not known either; nor if our parent is.
        let parent_learns = self.supply.told.as_ref().is_some_and(|told| told.learning);
        let is_known = self.learning_remaining(now).is_none() && !parent_learns;
        let bands = if self.algorithm.kind.has_bands() && is_known {
            let split: Vec<_> = rule.split(demand).collect();
            let total: f64 = split.iter().map(|(_, amount)| amount).sum();
            let part = answer.lease.capacity.get() / total.max(f64::MIN_POSITIVE);
            split
                .into_iter()
                .filter(|_| total > 0.0)
                .map(|(band, amount)| (band, Amount::from_computed(amount * part)))
                .collect()
        } else {
            Vec::new()
        };
        Some(ServerLease {
            resource: self.id.clone(),
            capacity: answer.lease.capacity,
            expires_in: answer.lease.expires_at.since(asked_at),
            refresh_in: answer.refresh_in,
            algorithm: Some(self.algorithm.clone()),
            told: Told {
                share: holding.share,
                bands,
                per_client: rule.per_client().filter(|_| is_known),
                learning: !is_known,
                learning_for: self.learning_for(now).filter(|_| !is_known),
                reserved: Some(holding.own()),
                reserved_for: Some(holding.reserved_until().since(asked_at)),
                inherited_for,
                inherited,
                accounted,
                predecessor_for: holding
                    .past
                    .as_ref()
                    .and_then(|past| past.heard_by(now))
                    .map(|by| by.since(now)),
                safe_capacity: Some(answer.safe_capacity),
                safe_is_static: self.safe_is_static(),
                holder_bounds: self.holder_bounds,
            },
            granted_by: Some(self.beginning.mastership),
            sequence: Some(holding.sequence).filter(|sequence| *sequence > 0),
            decided: Some(answer.decided),
        })
    }

    /// The child servers that hold something.
    pub fn children(&self) -> impl Iterator<Item = (&HolderName, Slot)> {
        self.children.iter().map(|(name, slot)| (name, *slot))
    }

    /// The most that may be handed out or in use by this server's own lease.
    fn holding(&self) -> Amount {
        self.supply.capacity.max(self.table.reserved().rounded_up())
    }

    /// What holders may be using, and for how long. Without the latter, a parent that has no lease
    /// itself would have to count it for as long as leases can last, and would go on telling its
    /// own parent of it when it is long over.
    fn outstanding(&self, unheard: &ExactSum, now: Time) -> Has {
        let heard_until = self.table.in_use_until(now);
        // Learning is over when that is.
        let unheard_until = self.learning_until.filter(|_| !unheard.is_zero());
        match heard_until.max(unheard_until) {
            Some(until) => {
                let mut sum = *self.table.reserved();
                sum.add_sum(unheard);
                Has {
                    expires_in: Some(until.since(now)),
                    ..Has::untimed(sum.rounded_up())
                }
            }
            None => Has::untimed(Amount::ZERO),
        }
    }

    /// Whether this server may not know all that is out: it is in learning mode, or does not know
    /// yet for how long it has to be.
    pub(super) fn is_learning(&self) -> bool {
        let unknown = self
            .upstream
            .as_ref()
            .is_some_and(|upstream| !upstream.knows_algorithm);
        unknown || self.learning_until.is_some()
    }

    /// The demand of all holders together, band by band.
    fn aggregate(&self) -> ServerDemand {
        let only = self.bands.len() == 1;
        let bands = self.bands.iter().map(|(priority, index)| BandDemand {
            priority,
            clients: index.total_subclients(),
            wants: if only {
                // To the bit, so that a capacity that is enough for all is seen to be.
                self.table.wants().rounded_up()
            } else {
                Amount::from_computed(index.total_wants())
            },
            curve: DemandCurve::of(index, POINTS_MAX),
        });
        ServerDemand::new(bands.collect())
    }
}
