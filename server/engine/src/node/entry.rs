//! A resource's place in its node: among the timeouts, the requests to the parent, and the accounts of admission. Each
//! change of a resource updates its place. Conflicts of processes that resources find are kept here, too.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use crate::admission::{CallerSlot, TemplateSlot, weight};
use crate::id::{HolderId, ResourceId};
use crate::messages::{Conflict, NodeEvent};
use crate::node::Node;
use crate::node::resources::ResourceSlot;
use crate::node::sweep::Generation;
use crate::resource::parent::ParentPace;
use crate::resource::{Effects, Resource};
use crate::time::Time;

/// A resource, and its place. In this order, what every request reads stands together.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) template: TemplateSlot,
    /// The caller that brought it.
    pub(super) caller: CallerSlot,
    /// The last news for all resources that it has applied.
    pub(super) heard: Generation,
    /// Its weight when admission last counted it.
    pub(super) weighed: usize,
    pub(super) resource: Resource,
    /// Its entry among the timeouts.
    pub(super) scheduled: Option<Time>,
    /// Its entry among the requests to the parent.
    asks_parent_at: Option<Time>,
}

impl Entry {
    /// A resource that has no place yet.
    pub(super) fn new(
        resource: Resource,
        template: TemplateSlot,
        caller: CallerSlot,
        heard: Generation,
    ) -> Self {
        Self {
            resource,
            scheduled: None,
            asks_parent_at: None,
            template,
            caller,
            weighed: 0,
            heard,
        }
    }

    /// Bytes of the resource and its holders, as they were counted.
    pub(super) fn bytes(&self) -> usize {
        weight::resource_bytes(self.resource.id().as_str()) + self.weighed
    }

    /// Asserts that it is where it should be, if it has heard what concerns all. O(leases), for tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_consistent(&self, pace: ParentPace, has_parent: bool, has_heard: bool) {
        let resource = &self.resource;
        let id = resource.id();
        resource.assert_consistent();
        assert_eq!(self.weighed, resource.holder_bytes(), "what {id} weighs");
        assert!(resource.effects().is_none(), "{id} has changed");
        assert!(
            !resource.is_empty(),
            "{id} has no holders and is still there"
        );
        assert!(
            self.scheduled.is_some()
                || self.asks_parent_at.is_some()
                || has_parent
                || resource.has_mark(),
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
    fn assert_scheduled(&self, pace: ParentPace) {
        let id = self.resource.id();
        let timeout = self.resource.next_timeout();
        assert_eq!(self.scheduled, timeout, "the timeout of {id}");
        let ask = self.resource.next_request(pace);
        assert_eq!(self.asks_parent_at, ask, "when to ask the parent for {id}");
    }
}

impl Node {
    /// Updates accounts and timers after a resource has changed, or removes the resource if it has no
    /// holders.
    pub(super) fn settle_at(&mut self, slot: ResourceSlot, now: Time) {
        let Some(entry) = self.resources.at_mut(slot) else {
            return;
        };
        if entry.resource.update_mark(now)
            && let Some(marks) = &mut self.marks
        {
            marks.note_due(entry.resource.id());
        }
        let Effects {
            expired,
            charges,
            is_unsettled,
            conflict,
            waste,
        } = entry.resource.take_effects();
        self.counters.expired += u64::from(expired);
        let bytes = entry.resource.holder_bytes();
        let before = std::mem::replace(&mut entry.weighed, bytes);
        if bytes != before || !charges.is_empty() {
            self.admission
                .note_changes(charges, before, bytes, entry.template);
        }
        if is_unsettled {
            let resource = &entry.resource;
            self.children.note_unsettled(resource.id(), resource);
        }
        let is_gone = entry.resource.is_empty();
        let (mut next, mut ask) = (None, None);
        if !is_gone {
            let pace = self.upstream.pace();
            next = entry.resource.next_timeout();
            ask = entry.resource.next_request(pace);
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
            assert!(resource.effects().is_none(), "{id} has changed");
            assert_eq!(entry.weighed, resource.holder_bytes(), "what {id} weighs");
            entry.assert_scheduled(self.upstream.pace());
        }
    }

    /// Brings the resource of that id up to date, and changes it. None: there is no such resource.
    pub(super) fn change_resource<T>(
        &mut self,
        id: &ResourceId,
        now: Time,
        change: impl FnOnce(&mut Resource) -> T,
    ) -> Option<T> {
        self.bring_up_to_date(id, now);
        let slot = self.resources.find(id)?;
        let result = change(&mut self.resources.at_mut(slot)?.resource);
        self.settle_at(slot, now);
        Some(result)
    }

    /// The same as [`Node::settle_at`], of the resource of that id, if there is one.
    pub(super) fn settle(&mut self, id: &ResourceId, now: Time) {
        if let Some(slot) = self.resources.find(id) {
            self.settle_at(slot, now);
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

/// Time that a conflict is shown after its last refusal. The refused process asks again at least once a minute.
const SHOWN: Duration = Duration::from_secs(120);

/// Number of names kept.
const NAMES_MAX: usize = 1_000;

/// Times of recent conflicts, by name, and by refused process of a node. Absent process: a client's name, or a process
/// that sends no incarnation.
#[derive(Debug, Default)]
pub(super) struct Conflicts(BTreeMap<HolderId, Time>);

impl Conflicts {
    /// Notes a conflict. Returns whether it is a new one.
    pub(super) fn note(&mut self, conflict: &Conflict) -> bool {
        let now = conflict.at;
        if let Some(at) = self.0.get_mut(&conflict.holder) {
            return now.since(std::mem::replace(at, now)) >= SHOWN;
        }
        if self.0.len() >= NAMES_MAX {
            self.0.retain(|_, at| now.since(*at) < SHOWN);
        }
        if self.0.len() < NAMES_MAX {
            self.0.insert(conflict.holder.clone(), now);
        }
        true
    }

    /// Returns the conflicts to show after that one, in order. Absent: all of them.
    pub(super) fn shown_after(
        &self,
        after: Option<&HolderId>,
        now: Time,
    ) -> impl Iterator<Item = Conflict> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let seen = self.0.range::<HolderId, _>((from, Bound::Unbounded));
        let shown = seen.filter(move |(_, at)| now.since(**at) < SHOWN);
        shown.map(|(holder, at)| Conflict {
            holder: holder.clone(),
            at: *at,
        })
    }

    /// Returns the time since that process was last refused. None: no refusal is known.
    pub(super) fn refused_ago(&self, process: &HolderId, now: Time) -> Option<Duration> {
        Some(now.since(*self.0.get(process)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::id::{HolderName, Incarnation};

    fn conflict(process: u64, name: &str, seconds: u64) -> Conflict {
        Conflict {
            holder: HolderId {
                process: Incarnation::new(process),
                ..HolderId::server(HolderName::new(name).unwrap())
            },
            at: Time::from_secs(seconds),
        }
    }

    fn shown(conflicts: &Conflicts, seconds: u64) -> usize {
        conflicts
            .shown_after(None, Time::from_secs(seconds))
            .count()
    }

    #[test]
    fn it_is_news_once_for_as_long_as_it_goes_on() {
        let mut conflicts = Conflicts::default();
        for (second, is_news) in [(0, true), (60, false), (170, false), (290, true)] {
            let noted = conflicts.note(&conflict(1, "a", second));
            assert_eq!(noted, is_news, "at {second} s");
        }
        assert_eq!(shown(&conflicts, 409), 1);
        assert_eq!(shown(&conflicts, 410), 0);
    }

    #[test]
    fn known_conflicts_stay_known_when_the_list_is_full() {
        let mut conflicts = Conflicts::default();
        for number in 0..NAMES_MAX {
            conflicts.note(&conflict(1, &number.to_string(), 0));
        }
        let more = |seconds| conflict(1, "one more", seconds);
        assert!(conflicts.note(&more(100)), "it is reported");
        assert!(!conflicts.note(&conflict(1, "7", 100)));
        assert_eq!(shown(&conflicts, 150), 1);
        assert!(conflicts.note(&more(150)));
        assert_eq!(shown(&conflicts, 150), 2);
    }

    #[test]
    fn each_of_several_processes_that_were_refused_is_known() {
        let mut conflicts = Conflicts::default();
        for (process, seconds) in [(1, 0), (2, 5), (1, 9)] {
            conflicts.note(&conflict(process, "a", seconds));
        }
        for (process, ago) in [(1, Some(1)), (2, Some(5)), (3, None)] {
            let holder = conflict(process, "a", 0).holder;
            let found = conflicts.refused_ago(&holder, Time::from_secs(10));
            assert_eq!(found, ago.map(Duration::from_secs), "{process}");
        }
    }
}
