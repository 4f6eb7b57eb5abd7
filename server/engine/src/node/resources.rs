//! The resources of a node: found by id, listed in the order of their ids.
//!
//! A request finds a resource once, by a hash of its id, and from then on names it by its slot, a number: nothing is
//! compared or cloned again. Ids come from outside, and one caller may bring tens of thousands, so the hash is keyed:
//! ids cannot be chosen to fall into one place of the table. The order is for page-by-page views; it changes only when
//! a resource comes or goes.

use std::collections::BTreeMap;
use std::ops::Bound;

use siphasher::sip::SipHasher13;

use crate::id::ResourceId;
use crate::node::Entry;
use crate::split_table::SplitTable;

/// Where a resource is. Not valid any more once the resource is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceSlot(u32);

/// The resources of a node.
#[derive(Debug)]
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
            entries: Vec::new(),
            free: Vec::new(),
            by_id: SplitTable::default(),
            in_order: BTreeMap::new(),
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
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ResourceId, &Entry)> {
        self.after(None)
    }

    /// The same, without their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &Entry> {
        self.iter().map(|(_, entry)| entry)
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
        let free = self.free.pop();
        if let Some(slot) = free
            && let Some(place) = self.entries.get_mut(slot.0 as usize)
        {
            *place = Some(entry);
            return slot;
        }
        self.entries.push(Some(entry));
        ResourceSlot(u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX))
    }
}
