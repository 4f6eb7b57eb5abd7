//! Budgets of a node: their place among its requests, timeouts, pushes and marks.
//!
//! A budget stays while something of it is reserved or marked, or a holder is known.

mod clock;
mod entering;
mod marks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::{CallerSlot, Charge, TemplateSlot, weight};
use crate::amount::Amount;
use crate::budget::{ACCOUNTS_MAX, AccountId, Answer, Budget, Word};
use crate::claims::{Claim, Demand};
use crate::division::ParentTerms;
use crate::id::{Caller, HolderId, HolderKind, ResourceId};
use crate::messages::{
    Ask, BudgetState, BudgetWord, ClientLease, GetCapacity, GetServerCapacity, Has, NodeEvent,
    RefusalReason, ReleaseCapacity, Released, ServerAsk, ServerLease, Via,
};
use crate::node::Node;
use crate::node::budgets::clock::Clock;
use crate::node::children::Pushed;
use crate::node::upstream::{shorter_lease, shorter_server_lease};
use crate::resource::retry::PARENT_REFUSED;
use crate::templates::AlgorithmKind;
use crate::templates::window::UnixMillis;
use crate::time::Time;

/// Bytes of an account of a budget.
const ACCOUNT_BYTES: usize = 400;

/// The budgets of a node.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    by_id: BTreeMap<ResourceId, Place>,
    timeouts: BTreeSet<(Time, ResourceId)>,
    /// Budgets of which holders with a stream may get more.
    rounds: BTreeSet<ResourceId>,
    /// Number of those of which the log said that it is unknown what was given.
    unknown_told: u32,
    /// Σ of holders, and of child servers, over all budgets.
    holders: (usize, usize),
    /// The wall clock as this mastership began, or soon after that. Earlier ones gave nothing of a window after it.
    since: Option<UnixMillis>,
    clock: Clock,
}

#[derive(Debug)]
struct Place {
    budget: Budget,
    timeout: Option<Time>,
    asks_parent_at: Option<Time>,
    /// Its holders and child servers in the sums of all.
    counted: (usize, usize),
}

impl Budgets {
    /// Mastership changed. Returns what was known.
    pub(super) fn forget(&mut self) -> Self {
        let clock = self.clock;
        let anew = Self::default();
        std::mem::replace(self, Self { clock, ..anew })
    }

    /// A mastership begins.
    pub(super) fn begin(&mut self, now: Time) {
        self.since = self.clock.is_known().then(|| self.clock.at(now));
    }

    pub(super) fn contains(&self, id: &ResourceId) -> bool {
        self.by_id.contains_key(id)
    }

    /// Returns the wall clock at a time.
    pub(super) fn clock_at(&self, now: Time) -> UnixMillis {
        self.clock.at(now)
    }

    /// Number of holders of budgets, each once for each budget, and of child servers among them.
    pub(super) fn holders(&self) -> (usize, usize) {
        self.holders
    }

    /// Number of budgets.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The budget of that id.
    pub(super) fn get(&self, id: &ResourceId) -> Option<&Budget> {
        self.by_id.get(id).map(|place| &place.budget)
    }

    /// The budgets after that id, in order. Absent: all of them.
    pub(super) fn after(&self, id: Option<&ResourceId>) -> impl Iterator<Item = &Budget> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        let places = self.by_id.range::<ResourceId, _>((from, Bound::Unbounded));
        places.map(|(_, place)| &place.budget)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timeouts.first().map(|(at, _)| *at)
    }

    pub(super) fn has_rounds(&self) -> bool {
        !self.rounds.is_empty()
    }
}

impl Node {
    /// Reads the wall clock, in milliseconds since 1970. A root's windows turn by it.
    pub fn handle_wall_clock(&mut self, at: UnixMillis, now: Time) {
        if let Some(by) = self.budgets.clock.read(at, now) {
            self.push_event(NodeEvent::WallClockDoubted { by });
        }
        let at = self.budgets.clock.at(now);
        self.budgets.since.get_or_insert(at);
    }

    /// Whether requests for it must be about a budget.
    pub(super) fn is_budget(&self, id: &ResourceId) -> bool {
        let is_one = |kind: AlgorithmKind| kind == AlgorithmKind::Budget;
        let template = || self.active_templates.find(id).1;
        self.budgets.contains(id) || template().is_some_and(|it| is_one(it.algorithm.kind))
    }

    /// A client says a word about its account.
    pub(super) fn handle_client_word(
        &mut self,
        request: &GetCapacity,
        ask: &Ask,
        word: BudgetWord,
        now: Time,
    ) -> Result<ClientLease, RefusalReason> {
        let holder = HolderId::client(request.client.clone(), request.incarnation);
        let claim = Claim {
            wants: Amount::from_computed(ask.wants.get() - word.taken as f64),
            subclients: ask.weight,
        };
        let said = Said {
            need: Demand::Client { priority: 0, claim },
            has: ask.has,
            sequence: request.sequence,
            streams: self.children.clients.contains(&holder),
        };
        let id = &ask.resource;
        let answer = self.handle_word(id, &holder, request.caller, word, said, now)?;
        Ok(self.budget_lease(id, &answer, now))
    }

    /// A child server says a word about its account.
    pub(super) fn handle_server_word(
        &mut self,
        request: &GetServerCapacity,
        ask: &ServerAsk,
        word: BudgetWord,
        via: Via,
        now: Time,
    ) -> Result<ServerLease, RefusalReason> {
        let said = Said {
            need: Demand::Server(ask.demand.clone()),
            has: ask.has,
            sequence: request.sequence,
            streams: via == Via::Stream,
        };
        let (id, holder) = (&ask.resource, HolderId::server(request.server.clone()));
        let answer = self.handle_word(id, &holder, request.caller, word, said, now)?;
        Ok(self.budget_server_lease(id, &answer, now))
    }

    /// A client says its last word about its account.
    pub(super) fn close_account(
        &mut self,
        request: &ReleaseCapacity,
        id: &ResourceId,
        word: BudgetWord,
        now: Time,
    ) -> Released {
        if !self.budgets.contains(id) {
            return Released::NotThere;
        }
        let holder = HolderId::client(request.client.clone(), request.incarnation);
        let claim = Claim::of_client(Amount::ZERO);
        let said = Said {
            need: Demand::Client { priority: 0, claim },
            has: Some(Has {
                granted_by: Some(self.mastership_id),
                ..Has::untimed(Amount::from_computed(word.taken as f64))
            }),
            sequence: request.sequence,
            streams: false,
        };
        match self.handle_word(id, &holder, request.caller, word, said, now) {
            Ok(_) => Released::Freed,
            Err(_) => Released::OutOfOrder,
        }
    }

    fn handle_word(
        &mut self,
        id: &ResourceId,
        holder: &HolderId,
        caller: Option<Caller>,
        word: BudgetWord,
        said: Said,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        let sequence = said.sequence.ok_or(RefusalReason::IsBudget)?;
        if !self.config.has_parent && !self.budgets.clock.is_known() {
            return Err(RefusalReason::NotReady);
        }
        let account = AccountId {
            book: word.holder_book,
            holder: holder.clone(),
        };
        self.enter_budget(id, &account, caller, now)?;
        let at = self.budgets.clock.at(now);
        let template = self.active_templates.find(id).1.map(Arc::clone);
        let place = self.budgets.by_id.get_mut(id);
        let budget = &mut place.ok_or(RefusalReason::UnknownResource)?.budget;
        budget.set_template(template.as_ref());
        let word = Word {
            sequence,
            book: word.granter_book,
            mastership: said.has.and_then(|has| has.granted_by),
            window: word.window,
            has: said.has.map_or(0, |has| has.capacity.get() as u64),
            taken: word.taken,
            need: said.need,
            least: word.least,
            streams: said.streams,
            closes: word.closes,
        };
        let answer = budget.ask(&account, word, at, now);
        self.settle_budget(id, now);
        self.counters.decisions += 1;
        answer
    }

    /// Updates timers, the request to the parent, the round, the mark and the account of memory after a change.
    fn settle_budget(&mut self, id: &ResourceId, now: Time) {
        let at = self.budgets.clock.at(now);
        let Some(Place {
            budget,
            timeout,
            asks_parent_at,
            counted,
        }) = self.budgets.by_id.get_mut(id)
        else {
            return;
        };
        let next = budget.next_timeout(at, now);
        let before = std::mem::replace(timeout, next);
        if before != next {
            before.map(|at| self.budgets.timeouts.remove(&(at, id.clone())));
            next.map(|at| self.budgets.timeouts.insert((at, id.clone())));
        }
        let (before, after) = (*counted, budget.holders());
        let (holders, servers) = self.budgets.holders;
        self.budgets.holders = (holders - before.0 + after.0, servers - before.1 + after.1);
        *counted = after;
        let next = budget.next_request(self.upstream.pace());
        let before = std::mem::replace(asks_parent_at, next);
        self.upstream.reschedule(id, before, next);
        if budget.has_round() {
            self.budgets.rounds.insert(id.clone());
        }
        if let Some(marks) = &mut self.marks {
            for start in budget.marks_due() {
                marks.note_due(&id.of_window(start));
            }
        }
        let bytes = budget.accounts().min(ACCOUNTS_MAX) * ACCOUNT_BYTES;
        let weighed = std::mem::replace(&mut budget.weighed, bytes);
        if bytes != weighed {
            let charge = Charge {
                caller: budget.caller,
                before: weighed,
                after: bytes,
            };
            self.admission
                .note_changes(vec![charge], weighed, bytes, TemplateSlot::NONE);
        }
        self.forget_budget(id);
    }

    /// Brings the first budget that is due up to date. Returns whether one was.
    pub(super) fn handle_budget_timeout(&mut self, now: Time) -> bool {
        let due = self.budgets.timeouts.first().filter(|(at, _)| *at <= now);
        let Some((_, id)) = due.cloned() else {
            return false;
        };
        let at = self.budgets.clock.at(now);
        if let Some(place) = self.budgets.by_id.get_mut(&id) {
            place.budget.look(at, now);
        }
        self.settle_budget(&id, now);
        true
    }

    /// Makes the ask to the parent for a budget.
    pub(super) fn ask_upstream_for_budget(
        &mut self,
        id: &ResourceId,
        sequence: u64,
        now: Time,
    ) -> Option<ServerAsk> {
        let points = self.config.few_points;
        let place = self.budgets.by_id.get_mut(id)?;
        let ask = place.budget.ask_upstream(sequence, points, now);
        self.settle_budget(id, now);
        ask
    }

    /// Brings the parent's answer for a budget into force.
    pub(super) fn handle_upstream_budget(&mut self, lease: &ServerLease, now: Time) {
        let lease = shorter_server_lease(self.config.clock_tolerance, lease.clone());
        let place = self.budgets.by_id.get_mut(&lease.resource);
        if let Some(Place { budget, .. }) = place {
            match (&lease.budget, budget.upward()) {
                (Some(state), _) => budget.handle_upstream_lease(&lease, state, now),
                (None, Some(parent)) => parent.ask_again_at(now + PARENT_REFUSED),
                (None, None) => {}
            }
        }
        self.settle_budget(&lease.resource, now);
    }

    /// The parent refuses a budget.
    pub(super) fn handle_budget_refusal(
        &mut self,
        id: &ResourceId,
        reason: RefusalReason,
        now: Time,
    ) {
        let pace = self.upstream.pace();
        let place = self.budgets.by_id.get_mut(id);
        if let Some(parent) = place.and_then(|it| it.budget.upward()) {
            parent.handle_refusal(reason, pace, now);
        }
        self.settle_budget(id, now);
    }

    /// The connection to the parent was lost: all is asked again.
    pub(super) fn ask_again_for_budgets(&mut self, now: Time) {
        for id in self.budgets_of(None) {
            let place = self.budgets.by_id.get_mut(&id);
            if let Some(parent) = place.and_then(|it| it.budget.upward()) {
                parent.ask_again_at(now);
            }
            self.settle_budget(&id, now);
        }
    }

    /// Looks at the next holder of the first budget of which holders may get more.
    pub(super) fn push_budget(&mut self, to: &mut Pushed, now: Time) {
        let Some(id) = self.budgets.rounds.first().cloned() else {
            return;
        };
        let at = self.budgets.clock.at(now);
        let Some(place) = self.budgets.by_id.get_mut(&id) else {
            self.budgets.rounds.remove(&id);
            return;
        };
        let push = place.budget.push_next(at, now);
        if !place.budget.has_round() {
            self.budgets.rounds.remove(&id);
        }
        if let Some((account, answer)) = push {
            self.push_answer(&id, &account, &answer, to, now);
        }
        self.settle_budget(&id, now);
    }

    fn push_answer(
        &mut self,
        id: &ResourceId,
        account: &AccountId,
        answer: &Answer,
        to: &mut Pushed,
        now: Time,
    ) {
        let holder = &account.holder;
        match holder.kind {
            HolderKind::Client if self.children.clients.contains(holder) => {
                let lease = self.budget_lease(id, answer, now);
                let reply = to.clients.entry(holder.clone()).or_default();
                reply.leases.push(lease);
            }
            HolderKind::Server if self.children.subscribed.contains(&holder.name) => {
                let lease = self.budget_server_lease(id, answer, now);
                let reply = to.children.entry(holder.name.clone());
                let reply = reply.or_insert_with(|| self.empty_reply());
                reply.leases.push(lease);
            }
            HolderKind::Client | HolderKind::Server => {}
        }
    }

    fn budget_lease(&mut self, id: &ResourceId, answer: &Answer, now: Time) -> ClientLease {
        let ((expires_in, refresh_in), budget) = self.budget_terms(id, answer, now);
        shorter_lease(
            self.config.clock_tolerance,
            ClientLease {
                resource: id.clone(),
                capacity: Amount::from_computed(answer.ceiling as f64),
                expires_in,
                refresh_in,
                safe_capacity: None,
                granted_by: Some(self.mastership_id),
                limited_by: answer.limited_by,
                learning_for: None,
                decided: true,
                sequence: Some(answer.sequence),
                budget,
            },
        )
    }

    fn budget_server_lease(&mut self, id: &ResourceId, answer: &Answer, now: Time) -> ServerLease {
        let ((expires_in, refresh_in), budget) = self.budget_terms(id, answer, now);
        ServerLease {
            resource: id.clone(),
            capacity: Amount::from_computed(answer.ceiling as f64),
            expires_in,
            refresh_in,
            algorithm: self.budgets.get(id).map(Budget::algorithm),
            terms: ParentTerms {
                share: Amount::from_computed(answer.share as f64),
                ..ParentTerms::default()
            },
            granted_by: Some(self.mastership_id),
            sequence: Some(answer.sequence),
            decided: Some(true),
            budget,
        }
    }

    /// Returns the time for which an answer counts, that until the next request, and the state of the budget.
    fn budget_terms(
        &mut self,
        id: &ResourceId,
        answer: &Answer,
        now: Time,
    ) -> ((Duration, Duration), Option<BudgetState>) {
        let at = self.budgets.clock.at(now);
        let Some(Place { budget, .. }) = self.budgets.by_id.get_mut(id) else {
            return Default::default();
        };
        let state = budget.state(answer.taken, at, now);
        (budget.pace(at, now), Some(state))
    }

    /// Bytes that are counted for each template and caller.
    pub(super) fn budget_bytes(&self) -> impl Iterator<Item = (TemplateSlot, CallerSlot, usize)> {
        self.budgets.by_id.iter().map(|(id, place)| {
            let bytes = weight::resource_bytes(id.as_str()) + place.budget.weighed;
            (TemplateSlot::NONE, place.budget.caller, bytes)
        })
    }
}

/// The parts of a request beside its word.
struct Said {
    need: Demand,
    has: Option<Has>,
    sequence: Option<u64>,
    streams: bool,
}
