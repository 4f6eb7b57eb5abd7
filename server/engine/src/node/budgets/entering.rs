//! Budgets and accounts that are new at a node, and budgets of which nothing is known any more.

use std::sync::Arc;

use crate::admission::{AdmissionGate, TemplateSlot, weight};
use crate::budget::{AccountId, Budget};
use crate::id::{Caller, ResourceId};
use crate::messages::{NodeEvent, RefusalReason};
use crate::node::Node;
use crate::node::budgets::{ACCOUNT_BYTES, Place};
use crate::node::marks::NodeMarks;
use crate::time::Time;

/// Budgets of which the log says that it is unknown what was given, in one mastership.
const UNKNOWN_TOLD_MAX: u32 = 20;

impl Node {
    /// Adds a budget and admits an account of it, if they are new.
    ///
    /// # Errors
    ///
    /// A limit is reached, or the id is that of another resource.
    pub(super) fn enter_budget(
        &mut self,
        id: &ResourceId,
        account: &AccountId,
        caller: Option<Caller>,
        now: Time,
    ) -> Result<(), RefusalReason> {
        let kind = account.holder.kind;
        let known = self.budgets.by_id.get(id);
        if known.is_some_and(|place| place.budget.knows(account)) {
            return Ok(());
        }
        let is_known = known.is_some();
        let mut gate = AdmissionGate {
            admission: &mut self.admission,
            limits: &self.config.limits,
            caller,
            template: TemplateSlot::NONE,
        };
        gate.admit_holder(kind, ACCOUNT_BYTES, 0, now)?;
        if is_known {
            return Ok(());
        }
        if self.resources.find(id).is_some() {
            return Err(RefusalReason::IsNoBudget);
        }
        let template = self.active_templates.find(id).1.map(Arc::clone);
        let at = self.budgets.clock.at(now);
        let mastership = self.mastership_id;
        let bytes = weight::resource_bytes(id.as_str());
        let mut is_unknown = false;
        let budget = match &template {
            None if !self.config.has_parent => return Err(RefusalReason::UnknownResource),
            Some(template) if !self.config.has_parent => {
                let Some(terms) = &template.algorithm.budget else {
                    return Err(RefusalReason::IsNoBudget);
                };
                let caller = gate.admit_resource(kind, bytes, now)?;
                let present = terms.period.at(at);
                let marks = self.marks.as_mut();
                let is_known = |marks: &&mut Box<NodeMarks>| marks.is_complete();
                let is_known = terms.period.is_marked() && marks.as_ref().is_some_and(is_known);
                let is_known = is_known || self.budgets.since.is_some_and(|it| it <= present.start);
                is_unknown = template.algorithm.learns() && !is_known;
                let marks = marks.and_then(|marks| marks.take_budget(id, terms.period, present));
                let (mark, before) = marks.unzip();
                Budget::of_root(
                    id.clone(),
                    Arc::clone(template),
                    (mark, before.unwrap_or_default(), is_unknown),
                    mastership,
                    caller,
                    at,
                )
            }
            _ => {
                let caller = gate.admit_resource(kind, bytes, now)?;
                Budget::of_parent(id.clone(), mastership, caller, now)
            }
        };
        let place = Place {
            budget,
            timeout: None,
            asks_parent_at: None,
            counted: (0, 0),
        };
        self.budgets.by_id.insert(id.clone(), place);
        if is_unknown && self.budgets.unknown_told < UNKNOWN_TOLD_MAX {
            self.budgets.unknown_told += 1;
            let resource = id.clone();
            self.push_event(NodeEvent::BudgetUnknown { resource });
        }
        self.push_event(NodeEvent::ResourceAdded {
            resource: id.clone(),
            template: template.map(|it| it.identifier_glob.clone()),
        });
        Ok(())
    }

    /// Takes an operator's word for one budget, or all of them. Returns whether it is for one.
    pub(in crate::node) fn set_unknown_budgets(
        &mut self,
        only: Option<&ResourceId>,
        is_unknown: bool,
        now: Time,
    ) -> bool {
        if only.is_none() {
            self.budgets.since = (!is_unknown).then_some(i64::MIN);
        }
        for id in self.budgets_of(only) {
            if let Some(place) = self.budgets.by_id.get_mut(&id) {
                place.budget.set_unknown(is_unknown);
            }
            self.settle_budget(&id, now);
        }
        only.is_some_and(|id| self.budgets.contains(id))
    }

    /// Brings the templates in force to all budgets. O(budgets).
    pub(in crate::node) fn update_budget_templates(&mut self, now: Time) {
        let at = self.budgets.clock.at(now);
        for id in self.budgets_of(None) {
            let template = self.active_templates.find(&id).1.map(Arc::clone);
            if let Some(place) = self.budgets.by_id.get_mut(&id) {
                place.budget.set_template(template.as_ref());
                place.budget.look(at, now);
            }
            self.settle_budget(&id, now);
        }
    }

    pub(super) fn budgets_of(&self, only: Option<&ResourceId>) -> Vec<ResourceId> {
        let all = self.budgets.by_id.keys();
        let chosen = all.filter(|id| only.is_none_or(|only| only == *id));
        chosen.cloned().collect()
    }

    /// Forgets a budget of which nothing is reserved, marked or known.
    pub(super) fn forget_budget(&mut self, id: &ResourceId) {
        let is_over = |place: &&Place| place.budget.is_forgettable();
        if self.budgets.by_id.get(id).filter(is_over).is_none() {
            return;
        }
        let Some(place) = self.budgets.by_id.remove(id) else {
            return;
        };
        self.budgets.rounds.remove(id);
        if let Some(at) = place.timeout {
            self.budgets.timeouts.remove(&(at, id.clone()));
        }
        self.upstream.reschedule(id, place.asks_parent_at, None);
        let bytes = weight::resource_bytes(id.as_str());
        self.admission
            .note_resource_gone(place.budget.caller, TemplateSlot::NONE, bytes);
        self.push_event(NodeEvent::ResourceDropped {
            resource: id.clone(),
        });
    }
}
