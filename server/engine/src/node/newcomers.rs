//! A node's bounds: resources that are taken on, and what is in use.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::From;
use crate::admission::limits::Limits;
use crate::admission::weight::{self, TotalWeight, Weight};
use crate::id::ResourceId;
use crate::limit::Limit;
use crate::node::event::NodeEvent;
use crate::node::resources::ResourceSlot;
use crate::node::{Entry, Node};
use crate::request::RefusalReason;
use crate::resource::{Beginning, Chosen, Resource};
use crate::time::Time;

impl Node {
    /// How often each limit refused something since the node came to be, in the order of [`Limit::ALL`].
    pub fn refused_by_limit(&self) -> &[u64; Limit::ALL.len()] {
        self.admission.refused()
    }

    /// How often any limit did.
    pub fn refused_by_limits(&self) -> u64 {
        self.admission.refusals()
    }

    /// Other limits are in force from now on: a caller that has more than they allow keeps it.
    pub fn handle_limits(&mut self, limits: Limits) {
        self.config.limits = limits;
    }

    /// The bounds of the node.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Adds a resource without holders, and returns where it is.
    ///
    /// # Errors
    ///
    /// If no template matches, or a limit is reached.
    pub(super) fn add_resource(
        &mut self,
        id: &ResourceId,
        from: From,
        now: Time,
    ) -> Result<ResourceSlot, RefusalReason> {
        let (of, template) = self.in_force.find(id);
        let template = template.map(Arc::clone);
        let is_known = template.is_some() || self.config.has_parent;
        if !is_known {
            return Err(RefusalReason::UnknownResource);
        }
        let name = weight::name_bytes(id.as_str());
        let caller = self
            .admission
            .admit_resource(name, from, of, &self.config.limits, now)?;
        let glob = template
            .as_ref()
            .map(|template| template.identifier_glob.clone());
        let beginning = Beginning {
            mastership: self.mastership_id,
            vacant_since: self.vacant_since,
            longer_leases: self.longer_leases,
            clock_tolerance: self.config.clock_tolerance,
        };
        let chosen = Chosen {
            seed: self.config.seed,
            claims_at_once: self.config.claims_at_once,
        };
        let resource = match template {
            Some(template) if !self.config.has_parent => {
                Resource::of_root(id.clone(), template, beginning, chosen, now)
            }
            template => Resource::of_parent(id.clone(), template, beginning, chosen),
        };
        let learning_left = resource.learning_left(now);
        let slot = self
            .resources
            .insert(Entry::new(resource, of, caller, self.sweep.news()));
        self.push_event(NodeEvent::ResourceAdded {
            resource: id.clone(),
            template: glob,
        });
        if let Some(left) = learning_left {
            let resource = id.clone();
            self.push_event(NodeEvent::LearningBegan { resource, left });
        }
        Ok(slot)
    }

    /// Asserts that what is counted for limits is there.
    pub(super) fn assert_counted(&self) {
        let mut weight = TotalWeight::default();
        let (mut names, mut children) = (0, BTreeSet::new());
        for (id, entry) in self.resources.iter() {
            weight.replace(Weight::default(), entry.weighed);
            names += weight::name_bytes(id.as_str());
            children.extend(entry.resource.children().map(|(name, _)| name));
        }
        let brought = self.resources.values().map(|entry| entry.caller);
        self.admission
            .assert_counts(brought, weight, names, children.len());
    }
}
