//! Where the holders of a resource are, how they are found by name, and whose lease ends next.
//!
//! Most resources have few holders: a scan finds a name, or who is scheduled first. More than [`SCANNED_MAX`] have an
//! [`Index`]. Holders are in chunks, which never move.

use std::collections::BTreeSet;

use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use crate::holders::{Holding, Standing};
use crate::id::{HolderId, HolderKind, Incarnation};
use crate::split_table::SplitTable;
use crate::time::Time;

/// Places without an index.
pub(super) const SCANNED_MAX: usize = 4;

/// Holders by slot, by name, and by when to look at them.
#[derive(Debug)]
pub(super) struct Places {
    /// The first chunk is found without another step: most resources have no other one.
    chunks: SmallVec<[Vec<Option<Holding>>; 1]>,
    /// When the first holder is scheduled: each request asks for that. The end of time: none is.
    due: Time,
    /// Absent: there are at most [`SCANNED_MAX`] places.
    index: Option<Box<Index>>,
}

/// Finds holders by name and by schedule.
#[derive(Debug, Default)]
struct Index {
    /// The slot, and 32 bits of the hash: growing the table does not touch the holders.
    by_name: SplitTable,
    /// When to look at each holder.
    by_schedule: BTreeSet<(Time, Slot)>,
    free: Vec<Slot>,
}

/// Hashes names with a key: names come from outside, and must not be made to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameHash {
    /// The key.
    pub(super) seed: u64,
}

impl NameHash {
    /// The hash of a holder.
    pub(super) fn of(self, holder: &HolderId) -> u64 {
        self.of_parts(holder.kind, holder.name.as_str(), holder.process)
    }

    /// 32 bits of the hash of a holder's name. The table finds the newest process of a name by it.
    pub(super) fn of_name(self, holder: &HolderId) -> u32 {
        self.of_parts(holder.kind, holder.name.as_str(), None) as u32
    }

    /// 32 bits of the hash by which the table finds a holder.
    fn of_holding(self, holding: &Holding) -> u32 {
        let is_replaced = holding.standing == Standing::Replaced;
        let process = holding.incarnation.filter(|_| is_replaced);
        self.of_parts(holding.kind(), holding.name.as_str(), process) as u32
    }

    fn of_parts(self, kind: HolderKind, name: &str, process: Option<Incarnation>) -> u64 {
        // A client and a child server of one name are different holders.
        let of_kind = 0x646f_6f72_7761_7264 + kind as u64;
        let of_name = SipHasher13::new_with_keys(self.seed, of_kind).hash(name.as_bytes());
        let of_process = |process: Incarnation| {
            SipHasher13::new_with_keys(self.seed, of_name).hash(&process.get().to_le_bytes())
        };
        process.map_or(of_name, of_process)
    }
}

impl Places {
    /// No holders.
    pub(super) fn new() -> Self {
        Self {
            chunks: SmallVec::new(),
            due: Time::MAX,
            index: None,
        }
    }

    /// The holder with this hash which `is_it`.
    pub(super) fn find(
        &self,
        hash: impl FnOnce() -> u32,
        is_it: impl Fn(&Holding) -> bool,
    ) -> Option<Slot> {
        let Some(index) = &self.index else {
            let mut places = self.chunks.iter().flatten();
            let at = places.position(|place| place.as_ref().is_some_and(&is_it));
            return at.map(Slot::of);
        };
        let is_it = |slot| self.get(Slot(slot)).is_some_and(&is_it);
        index.by_name.find(hash(), is_it).map(Slot)
    }

    /// Returns the holder in a slot.
    pub(super) fn get(&self, slot: Slot) -> Option<&Holding> {
        let (chunk, place) = slot.place();
        self.chunks.get(chunk)?.get(place)?.as_ref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Holding> {
        self.place_mut(slot)?.as_mut()
    }

    /// Puts in a holder, to be looked at when it is scheduled.
    pub(super) fn insert(&mut self, holding: Holding, hash: NameHash) -> Slot {
        let free = match &mut self.index {
            Some(index) => index.free.pop(),
            None => {
                let mut places = self.chunks.iter().flatten();
                places.position(Option::is_none).map(Slot::of)
            }
        };
        let slot = free.unwrap_or_else(|| self.add_place(hash));
        if let Some(index) = &mut self.index {
            index.enter(slot, &holding, hash);
        }
        self.due = self.due.min(holding.scheduled);
        if let Some(place) = self.place_mut(slot) {
            *place = Some(holding);
        }
        slot
    }

    /// Takes a holder out.
    pub(super) fn remove(&mut self, slot: Slot, hash: NameHash) -> Option<Holding> {
        let gone = self.place_mut(slot)?.take()?;
        if let Some(index) = &mut self.index {
            index.by_name.remove(hash.of_holding(&gone), slot.0);
            index.by_schedule.remove(&(gone.scheduled, slot));
            index.free.push(slot);
        }
        self.note_due();
        Some(gone)
    }

    /// Changes the standing of a client's process. A replaced one is not found by its name alone.
    pub(super) fn change_standing(&mut self, slot: Slot, standing: Standing, hash: NameHash) {
        let Some(holding) = self.get_mut(slot) else {
            return;
        };
        let before = hash.of_holding(holding);
        holding.standing = standing;
        let after = hash.of_holding(holding);
        if let Some(index) = &mut self.index {
            index.by_name.remove(before, slot.0);
            index.by_name.insert(after, slot.0);
        }
    }

    /// Schedules a holder for another time.
    pub(super) fn schedule(&mut self, slot: Slot, time: Time) {
        let Some(holding) = self.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut holding.scheduled, time);
        if let Some(index) = &mut self.index {
            index.by_schedule.remove(&(before, slot));
            index.by_schedule.insert((time, slot));
        }
        self.note_due();
    }

    /// When the first holder is scheduled.
    pub(super) fn next_scheduled(&self) -> Option<Time> {
        Some(self.due).filter(|due| *due < Time::MAX)
    }

    /// The holder that is scheduled first, if that is by then.
    pub(super) fn scheduled_by(&self, now: Time) -> Option<Slot> {
        let first = (self.due <= now).then(|| self.first_scheduled());
        first.flatten().map(|(_, slot)| slot)
    }

    /// Returns the number of places, taken or not.
    pub(super) fn len(&self) -> usize {
        let before = self.chunks.len().saturating_sub(1) * CHUNK;
        before + self.chunks.last().map_or(0, Vec::len)
    }

    /// Whether there have been so many holders that dropping them takes long.
    pub(super) fn are_in_chunks(&self) -> bool {
        self.len() > CHUNK
    }

    /// All holders, in no meaningful but always the same order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Holding> {
        self.chunks.iter().flatten().flatten()
    }

    /// Asserts that so many holders are where they should be. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(super) fn assert_consistent(&self, len: usize) {
        let due = self.iter().map(|holding| holding.scheduled).min();
        assert_eq!(self.next_scheduled(), due, "due");
        let Some(index) = &self.index else {
            assert!(self.len() <= SCANNED_MAX, "places without an index");
            assert_eq!(self.iter().count(), len, "holders");
            return;
        };
        assert_eq!(self.len(), len + index.free.len(), "places");
        assert_eq!(index.by_name.len(), len, "names");
        assert_eq!(index.by_schedule.len(), len, "schedules");
        for (time, slot) in &index.by_schedule {
            let scheduled = self.get(*slot).map(|holding| holding.scheduled);
            assert_eq!(scheduled, Some(*time), "{slot:?}");
        }
    }

    fn place_mut(&mut self, slot: Slot) -> Option<&mut Option<Holding>> {
        let (chunk, place) = slot.place();
        self.chunks.get_mut(chunk)?.get_mut(place)
    }

    /// A place behind all others.
    fn add_place(&mut self, hash: NameHash) -> Slot {
        let at = self.len();
        if at == SCANNED_MAX {
            let mut index = Index::default();
            for (at, place) in self.chunks.iter().flatten().enumerate() {
                let holding = place.iter();
                holding.for_each(|it| index.enter(Slot::of(at), it, hash));
            }
            self.index = Some(Box::new(index));
        }
        if at.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::new());
        }
        if let Some(chunk) = self.chunks.last_mut() {
            // The first chunk grows by little at a time: most resources have few holders, and each place is large.
            let more = if at < CHUNK {
                1 + chunk.len() / 4
            } else {
                CHUNK
            };
            if chunk.len() == chunk.capacity() {
                chunk.reserve_exact(more.min(CHUNK - chunk.len()));
            }
            chunk.push(None);
        }
        Slot::of(at)
    }

    fn note_due(&mut self) {
        let first = self.first_scheduled();
        self.due = first.map_or(Time::MAX, |(time, _)| time);
    }

    fn first_scheduled(&self) -> Option<(Time, Slot)> {
        if let Some(index) = &self.index {
            return index.by_schedule.first().copied();
        }
        let places = self.chunks.iter().flatten().enumerate();
        let scheduled = places.filter_map(|(at, it)| Some((it.as_ref()?.scheduled, Slot::of(at))));
        scheduled.min()
    }
}

impl Index {
    fn enter(&mut self, slot: Slot, holding: &Holding, hash: NameHash) {
        self.by_name.insert(hash.of_holding(holding), slot.0);
        self.by_schedule.insert((holding.scheduled, slot));
    }
}

/// Where a holder is in the table. Not valid any more once the holder is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) u32);

/// Holders in a chunk: a power of two. Chunks never move, so adding a holder never copies what is there.
pub(super) const CHUNK: usize = 512;

impl Slot {
    /// The first of all.
    pub(crate) const FIRST: Self = Self(0);

    /// The last of all.
    pub(crate) const LAST: Self = Self(u32::MAX);

    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// That place.
    pub(super) fn of(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Its chunk, and the place in it.
    pub(super) fn place(self) -> (usize, usize) {
        (self.0 as usize / CHUNK, self.0 as usize % CHUNK)
    }
}
