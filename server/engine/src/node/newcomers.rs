//! A node's bounds: resources that are taken on, and what is in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admission::limits::Limits;
use crate::admission::{AdmissionGate, Limit, weight};
use crate::id::{Caller, HolderKind, ResourceId};
use crate::messages::{NodeEvent, RefusalReason};
use crate::node::resources::ResourceSlot;
use crate::node::{Entry, Node};
use crate::resource::{Beginning, Resource};
use crate::time::Time;

impl Node {
    /// Number of refusals by each limit since the node began, in the order of [`Limit::ALL`].
    pub fn refused_by_limit(&self) -> &[u64; Limit::ALL.len()] {
        self.admission.refused()
    }

    /// Number of refusals by all limits together.
    pub fn refused_by_limits(&self) -> u64 {
        self.admission.refusals()
    }

    /// Puts other limits in force. A caller that has more than they allow keeps it.
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
        kind: HolderKind,
        caller: Option<Caller>,
        now: Time,
    ) -> Result<ResourceSlot, RefusalReason> {
        let (of, template) = self.in_force.find(id);
        let template = template.map(Arc::clone);
        let is_known = template.is_some() || self.config.has_parent;
        if !is_known {
            return Err(RefusalReason::UnknownResource);
        }
        let mut gate = AdmissionGate {
            admission: &mut self.admission,
            limits: &self.config.limits,
            caller,
            template: of,
        };
        let caller = gate.admit_resource(kind, weight::resource_bytes(id.as_str()), now)?;
        let glob = template
            .as_ref()
            .map(|template| template.identifier_glob.clone());
        let beginning = Beginning {
            mastership: self.mastership_id,
            vacant_since: self.vacant_since,
            longer_leases: self.longer_leases,
            clock_tolerance: self.config.clock_tolerance,
        };
        let seed = self.config.seed;
        let resource = match template {
            Some(template) if !self.config.has_parent => {
                Resource::of_root(id.clone(), template, beginning, seed, now)
            }
            template => Resource::of_parent(id.clone(), template, beginning, seed),
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
        let (mut by_caller, mut by_template) = (BTreeMap::new(), BTreeMap::new());
        for entry in self.resources.values() {
            *by_template.entry(entry.template).or_insert(0) += entry.bytes();
            let itself = weight::resource_bytes(entry.resource.id().as_str());
            *by_caller.entry(entry.caller).or_insert(0) += itself;
            for (caller, bytes) in entry.resource.brought() {
                *by_caller.entry(caller).or_insert(0) += bytes;
            }
        }
        self.admission.assert_counts(&by_caller, &by_template);
    }
}
