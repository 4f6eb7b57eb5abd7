//! The resources of a node: found by id, listed in the order of their ids, and added if a limit allows it.
//!
//! A request finds a resource once, by a hash of its id, and from then on names it by its slot, a number: nothing is
//! compared or cloned again. Ids come from outside, and one caller may bring tens of thousands, so the hash is keyed:
//! ids cannot be chosen to fall into one place of the table. The order is for page-by-page views; it changes only when
//! a resource comes or goes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use crate::admission::limits::Limits;
use crate::admission::{AdmissionGate, Limit, weight};
use crate::continuity::MastershipStart;
use crate::id::{Caller, HolderKind, ResourceId};
use crate::messages::{NodeEvent, RefusalReason};
use crate::node::{Entry, Node};
use crate::resource::Resource;
use crate::resource::marking::Predecessors;
use crate::split_table::SplitTable;
use crate::time::Time;

/// Where a resource is. Not valid any more once the resource is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceSlot(u32);

/// The resources of a node.
#[derive(Debug, Default)]
pub(super) struct Resources {
    seed: u64,
    /// Each by itself, so that what is gone gives its memory back.
    entries: Vec<Option<Box<Entry>>>,
    free: Vec<ResourceSlot>,
    /// With the hash: growing the table does not touch the resources.
    by_id: SplitTable,
    in_order: BTreeMap<ResourceId, ResourceSlot>,
}

impl Resources {
    /// None; the seed keys the hash of ids.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Number of resources.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Self {
        let none = Self::new(self.seed);
        std::mem::replace(self, none)
    }

    /// Returns 32 bits of a keyed hash of an id.
    fn hash(&self, id: &ResourceId) -> u32 {
        let hasher = SipHasher13::new_with_keys(self.seed, 0x7265_736f_7572_6365);
        hasher.hash(id.as_str().as_bytes()) as u32
    }

    /// The resource of that id.
    pub(super) fn find(&self, id: &ResourceId) -> Option<ResourceSlot> {
        let is_it = |slot| {
            let entry = self.at(ResourceSlot(slot));
            entry.is_some_and(|it| it.resource.id() == id)
        };
        self.by_id.find(self.hash(id), is_it).map(ResourceSlot)
    }

    /// Returns the resource in `slot`.
    pub(super) fn at(&self, slot: ResourceSlot) -> Option<&Entry> {
        self.entries.get(slot.0 as usize)?.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn at_mut(&mut self, slot: ResourceSlot) -> Option<&mut Entry> {
        self.entries.get_mut(slot.0 as usize)?.as_deref_mut()
    }

    /// The resource of that id.
    pub(super) fn get(&self, id: &ResourceId) -> Option<&Entry> {
        self.at(self.find(id)?)
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Entry> {
        self.at_mut(self.find(id)?)
    }

    /// Puts in a resource that is not there yet.
    pub(super) fn insert(&mut self, entry: Entry) -> ResourceSlot {
        let id = entry.resource.id().clone();
        debug_assert!(self.find(&id).is_none(), "{id} is there already");
        let hash = self.hash(&id);
        let slot = self.place(Box::new(entry));
        self.by_id.insert(hash, slot.0);
        self.in_order.insert(id, slot);
        slot
    }

    /// Takes a resource out.
    pub(super) fn remove(&mut self, slot: ResourceSlot) -> Option<Box<Entry>> {
        let entry = self.entries.get_mut(slot.0 as usize)?.take()?;
        let id = entry.resource.id();
        let hash = self.hash(id);
        self.by_id.remove(hash, slot.0);
        self.in_order.remove(id);
        self.free.push(slot);
        Some(entry)
    }

    /// All of them, in the order of their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.after(None).map(|(_, entry)| entry)
    }

    /// Where they are, in the order of their ids.
    pub(super) fn slots(&self) -> impl Iterator<Item = ResourceSlot> {
        self.in_order.values().copied()
    }

    /// The resources after that id, in order. Absent: all of them.
    pub(super) fn after(
        &self,
        id: Option<&ResourceId>,
    ) -> impl Iterator<Item = (&ResourceId, &Entry)> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        let ids = self
            .in_order
            .range::<ResourceId, _>((from, Bound::Unbounded));
        ids.filter_map(|(id, slot)| Some((id, self.at(*slot)?)))
    }

    /// Asserts that each is found where it is, and nothing else. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent(&self) {
        let there = self.entries.iter().flatten().count();
        assert_eq!(there, self.by_id.len(), "resources by id");
        assert_eq!(there, self.in_order.len(), "resources in order");
        assert_eq!(there + self.free.len(), self.entries.len(), "slots");
        for (id, slot) in &self.in_order {
            assert_eq!(self.find(id), Some(*slot), "{id} is not found");
        }
    }

    fn place(&mut self, entry: Box<Entry>) -> ResourceSlot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ResourceSlot(u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(place) = self.entries.get_mut(slot.0 as usize) {
            *place = Some(entry);
        }
        slot
    }
}

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
        if self.is_budget(id) {
            return Err(RefusalReason::IsBudget);
        }
        let (of, template) = self.active_templates.find(id);
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
        let start = self.mastership_start();
        let seed = self.config.seed;
        let resource = match template {
            Some(template) if !self.config.has_parent => {
                let unknown = Predecessors::Unknown { kept: None };
                let marks = self.marks.as_mut();
                let predecessors = marks.map_or(unknown, |marks| marks.take_found(id));
                Resource::of_root(id.clone(), template, start, predecessors, seed, now)
            }
            template => Resource::of_parent(id.clone(), template, start, seed),
        };
        let learning_left = resource.learning_remaining(now);
        let slot = self
            .resources
            .insert(Entry::new(resource, of, caller, self.sweep.generation()));
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

    /// Returns the start of this mastership.
    pub(super) fn mastership_start(&self) -> MastershipStart {
        MastershipStart {
            mastership: self.mastership_id,
            vacant_since: self.vacant_since,
            longer_leases: self.longer_leases,
            clock_tolerance: self.config.clock_tolerance,
        }
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
        for (template, caller, bytes) in self.budget_bytes() {
            *by_template.entry(template).or_insert(0) += bytes;
            *by_caller.entry(caller).or_insert(0) += bytes;
        }
        self.admission.assert_counts(&by_caller, &by_template);
    }
}
