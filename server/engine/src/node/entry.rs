//! A resource's place in its node: among the timeouts, among what the parent is to be asked, and in the
//! books of what is let in. After each change of a resource, that place is settled anew.

use crate::admission::weight::{self, Weight};
use crate::admission::{CallerSlot, TemplateSlot};
use crate::id::ResourceId;
use crate::messages::{Conflict, NodeEvent};
use crate::node::Node;
use crate::node::resources::ResourceSlot;
use crate::node::sweep::News;
use crate::resource::Resource;
use crate::resource::parent_request::Pace;
use crate::resource::timer::Timer;
use crate::time::{Due, Time};

/// A resource, and its place. In this order, what every request reads stands together.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) template: TemplateSlot,
    /// The caller that brought it.
    pub(super) caller: CallerSlot,
    /// The last news for all resources that it has applied.
    pub(super) heard: News,
    /// Its weight when admission last counted it.
    pub(super) weighed: Weight,
    pub(super) resource: Resource,
    /// Its entry among the timeouts.
    pub(super) scheduled: Option<Time>,
    /// Its entry among the requests to the parent.
    asks_parent_at: Due,
}

impl Entry {
    /// A resource that has no place yet.
    pub(super) fn new(
        resource: Resource,
        template: TemplateSlot,
        caller: CallerSlot,
        heard: News,
    ) -> Self {
        Self {
            resource,
            scheduled: None,
            asks_parent_at: Due::NEVER,
            template,
            caller,
            weighed: Weight::default(),
            heard,
        }
    }

    /// Bytes of the resource and its holders, as they were counted.
    pub(super) fn bytes(&self) -> usize {
        weight::resource_bytes(self.resource.id().as_str()) + self.weighed.bytes()
    }

    /// Asserts that it is where it should be, if it has heard what concerns all. O(leases), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent(&self, pace: Pace, has_parent: bool, has_heard: bool) {
        let resource = &self.resource;
        let id = resource.id();
        resource.assert_consistent();
        assert_eq!(self.weighed, resource.weight(), "what {id} weighs");
        assert!(
            !resource.is_empty(),
            "{id} has no holders and is still there"
        );
        assert!(
            self.scheduled.is_some() || self.asks_parent_at != Due::NEVER || has_parent,
            "{id} has leases that will end, and no timeout"
        );
        if !has_heard {
            return;
        }
        self.assert_scheduled(pace);
    }

    /// Asserts that it is among the timeouts, and among what the parent is to be asked, when it is due.
    ///
    /// # Panics
    ///
    /// If it is not.
    fn assert_scheduled(&self, pace: Pace) {
        let id = self.resource.id();
        let timeout = self.resource.next_timeout(pace);
        assert_eq!(self.scheduled, timeout, "the timeout of {id}");
        let ask = self.resource.due(Timer::ParentRequest, pace);
        assert_eq!(
            self.asks_parent_at.time(),
            ask,
            "when to ask the parent for {id}"
        );
    }
}

impl Node {
    /// Updates books and timers after a resource has changed, or removes the resource if it has no
    /// holders.
    pub(super) fn settle_at(&mut self, slot: ResourceSlot) {
        let Some(entry) = self.resources.at_mut(slot) else {
            return;
        };
        self.counters.expired += entry.resource.take_expired();
        let weight = entry.resource.weight();
        let charges = entry.resource.take_charges();
        let before = std::mem::replace(&mut entry.weighed, weight);
        if weight != before || !charges.is_empty() {
            self.admission
                .note_changes(charges, before, weight, entry.template);
        }
        if entry.resource.take_unsettled() {
            let resource = &entry.resource;
            self.children.note_unsettled(resource.id(), resource);
        }
        let waste = entry.resource.take_waste();
        let conflict = entry.resource.take_conflict();
        let is_gone = entry.resource.is_empty();
        let (mut next, mut ask) = (None, Due::NEVER);
        if !is_gone {
            let pace = self.upstream.pace();
            next = entry.resource.next_timeout(pace);
            ask = entry.resource.due(Timer::ParentRequest, pace).into();
        }
        let before = std::mem::replace(&mut entry.scheduled, next);
        let ask_before = std::mem::replace(&mut entry.asks_parent_at, ask);
        self.upstream
            .reschedule(entry.resource.id(), ask_before, ask);
        if next != before {
            if let Some(time) = before {
                self.timeouts.remove(&(time, slot));
            }
            if let Some(time) = next {
                self.timeouts.insert((time, slot));
            }
        }
        if let Some(conflict) = conflict {
            let id = entry.resource.id().clone();
            self.note_conflict(id, *conflict);
        }
        waste.into_iter().for_each(|value| self.discard(value));
        if is_gone {
            self.drop_resource(slot);
        }
    }

    /// Debug builds only: a resource is in its place, and [`Node::settle_at`] would change nothing.
    pub(super) fn assert_settled(&self, slot: ResourceSlot) {
        if cfg!(debug_assertions)
            && let Some(entry) = self.resources.at(slot)
        {
            let (resource, id) = (&entry.resource, entry.resource.id());
            assert!(!resource.has_untaken(), "{id} has changed");
            assert_eq!(entry.weighed, resource.weight(), "what {id} weighs");
            entry.assert_scheduled(self.upstream.pace());
        }
    }

    /// The same, of the resource of that id, if there is one.
    pub(super) fn settle(&mut self, id: &ResourceId) {
        if let Some(slot) = self.resources.find(id) {
            self.settle_at(slot);
        }
    }

    /// Two live processes ask under one name.
    fn note_conflict(&mut self, resource: ResourceId, conflict: Conflict) {
        self.counters.conflicts += 1;
        if self.conflicts.note(&conflict) {
            let holder = conflict.holder;
            self.push_event(NodeEvent::TwoProcesses { resource, holder });
        }
    }

    /// Removes a resource without holders.
    fn drop_resource(&mut self, slot: ResourceSlot) {
        if let Some(entry) = self.resources.remove(slot) {
            let id = entry.resource.id().clone();
            let bytes = weight::resource_bytes(id.as_str());
            self.admission
                .note_resource_gone(entry.caller, entry.template, bytes);
            if entry.resource.has_had_many() {
                self.discard(entry);
            }
            self.push_event(NodeEvent::ResourceDropped { resource: id });
        }
    }
}
