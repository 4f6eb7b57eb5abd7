//! New templates: computes their consequences for a node before they are in force.
//!
//! A set of templates may be large, and a node must not be held up while two of them are compared. So that is done
//! first, without the node ([`PreparedTemplates::new`]), and one cheap step puts them in force
//! ([`Node::handle_prepared_templates`]). Each resource then applies them on its own ([`sweep`](super::sweep)), at
//! the latest before the next request for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::TemplateSlot;
use crate::id::ResourceId;
use crate::messages::NodeEvent;
use crate::node::Node;
use crate::node::resources::ResourceSlot;
use crate::templates::{Template, Templates};
use crate::time::Time;

/// The templates in force at a node, and the number of each in admission. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ActiveTemplates(Arc<Numbered>);

#[derive(Debug)]
struct Numbered {
    templates: Templates,
    /// In the order of the templates.
    slots: Vec<TemplateSlot>,
    /// No book had this number, or a later one.
    next_slot: TemplateSlot,
}

/// Templates that are to be in force, and what follows from them.
#[derive(Debug)]
pub struct PreparedTemplates {
    former: ActiveTemplates,
    next: ActiveTemplates,
    /// Numbers of former templates of which none with that glob is left.
    gone: Vec<TemplateSlot>,
    outlasts: Duration,
    learning_outlasts: Duration,
}

impl ActiveTemplates {
    /// The first templates of a node.
    pub(super) fn first(templates: Templates) -> Self {
        let none = BTreeMap::new();
        Self::numbered(templates, &none, TemplateSlot::FIRST)
    }

    /// Numbers the templates. A template whose glob has a number keeps it.
    fn numbered(
        templates: Templates,
        known: &BTreeMap<&str, TemplateSlot>,
        mut next_slot: TemplateSlot,
    ) -> Self {
        let slots = templates.iter().map(|template| {
            let known = known.get(template.identifier_glob.as_str());
            known.copied().unwrap_or_else(|| {
                let slot = next_slot;
                next_slot = slot.next();
                slot
            })
        });
        let slots = slots.collect();
        Self(Arc::new(Numbered {
            templates,
            slots,
            next_slot,
        }))
    }

    /// The templates.
    pub fn templates(&self) -> &Templates {
        &self.0.templates
    }

    /// The template for a resource, and its number.
    pub(super) fn find(&self, id: &ResourceId) -> (TemplateSlot, Option<&Arc<Template>>) {
        let found = self.0.templates.find_with_position(id);
        let slot = found.and_then(|(position, _)| self.0.slots.get(position));
        let slot = slot.copied().unwrap_or(TemplateSlot::NONE);
        (slot, found.map(|(_, template)| template))
    }
}

impl PreparedTemplates {
    /// Templates that are to follow those that are in force. O(n log n).
    pub fn new(former: &ActiveTemplates, templates: Templates) -> Self {
        let before = former.templates();
        let numbers = before.iter().zip(&former.0.slots);
        let mut known: BTreeMap<&str, TemplateSlot> = numbers
            .map(|(template, slot)| (template.identifier_glob.as_str(), *slot))
            .collect();
        let (outlasts, learning_outlasts) = before.shortened(&templates);
        let next = ActiveTemplates::numbered(templates, &known, former.0.next_slot);
        for template in next.templates().iter() {
            known.remove(template.identifier_glob.as_str());
        }
        Self {
            gone: known.into_values().collect(),
            former: former.clone(),
            next,
            outlasts,
            learning_outlasts,
        }
    }

    /// The templates.
    pub fn templates(&self) -> &Templates {
        self.next.templates()
    }

    /// See [`Templates::outlasts`].
    pub fn outlasts(&self) -> Duration {
        self.outlasts
    }

    /// The same within a mastership. A learning mode that is shorter than its lease counts in place of it then.
    pub fn learning_outlasts(&self) -> Duration {
        self.learning_outlasts
    }

    /// The same templates, to follow those in force: prepared again if others came first. O(n log n) then.
    #[must_use]
    pub fn prepared_for(self, active: &ActiveTemplates) -> Self {
        if Arc::ptr_eq(&self.former.0, &active.0) {
            return self;
        }
        Self::new(active, self.next.templates().clone())
    }
}

impl Node {
    /// The templates in force.
    pub fn templates(&self) -> &Templates {
        self.active_templates.templates()
    }

    /// The same, to prepare others that follow them.
    pub fn active_templates(&self) -> &ActiveTemplates {
        &self.active_templates
    }

    /// Puts new templates in force, as [`Node::handle_prepared_templates`] does. O(templates): for callers that no
    /// request waits for.
    pub fn handle_templates(&mut self, templates: Templates, now: Time) {
        let prepared = PreparedTemplates::new(&self.active_templates, templates);
        let is_next = self.handle_prepared_templates(prepared, now).is_ok();
        debug_assert!(is_next, "they were prepared for those in force");
    }

    /// Puts new templates in force, also for existing leases: each changes when its holder asks next. O(1). The
    /// rest is due at once, in [`Node::handle_timeout`]: until then, snapshots show resources as of their last
    /// decision.
    ///
    /// A root that is learning goes on for as long as leases of its predecessors may last, also if
    /// these give shorter ones.
    ///
    /// # Errors
    ///
    /// Returns `prepared` unchanged, if the templates in force are not those that it was prepared for. The node
    /// stays unchanged, too.
    pub fn handle_prepared_templates(
        &mut self,
        prepared: PreparedTemplates,
        now: Time,
    ) -> Result<(), PreparedTemplates> {
        if !Arc::ptr_eq(&prepared.former.0, &self.active_templates.0) {
            return Err(prepared);
        }
        self.end_term_if_over(now);
        if !self.config.has_parent && self.mastership.is_master() {
            self.longer_leases = self.longer_leases.max(prepared.learning_outlasts);
            let lasts = self.config.clock_tolerance.report(prepared.outlasts);
            self.former_leases_until = self.former_leases_until.max(now + lasts);
        }
        let PreparedTemplates {
            former, next, gone, ..
        } = prepared;
        self.active_templates = next;
        self.begin_sweep_of_templates(gone, now);
        self.discard(Box::new(former));
        self.sweep_some(now);
        self.update_budget_templates(now);
        Ok(())
    }

    /// Applies the templates in force to a resource.
    pub(super) fn apply_template(&mut self, place: ResourceSlot, now: Time) {
        let Some(entry) = self.resources.at_mut(place) else {
            return;
        };
        let (slot, template) = self.active_templates.find(entry.resource.id());
        let template = template.map(Arc::clone);
        let before = std::mem::replace(&mut entry.template, slot);
        self.admission.move_resource(before, slot, entry.bytes());
        let resource = &mut entry.resource;
        let had_source = resource.has_source();
        resource.handle_template(template, self.sweep.longer_leases(), now);
        let over = resource.overcommitted();
        if had_source && !resource.has_source() {
            let resource = resource.id().clone();
            self.push_event(NodeEvent::TemplateGone { resource });
        } else if let Some((capacity, reserved)) = over {
            let resource = resource.id().clone();
            self.push_event(NodeEvent::CapacityBelowReserved {
                resource,
                capacity,
                reserved,
            });
        }
    }
}
