//! Where the holders of a resource are, how they are found by name, and whose lease ends next.
//!
//! Most resources have few holders. These are looked through; what is found under a name, or ends next, needs no index
//! of its own. Many are in chunks, with a table of names and a heap of expiries.

use std::collections::BTreeSet;

use siphasher::sip::SipHasher13;

use crate::chunked::Chunked;
use crate::id::HolderKind;
use crate::lease_table::Holding;
use crate::lease_table::expiries::Expiries;
use crate::lease_table::slot::{CHUNK, Slot};
use crate::split_table::SplitTable;
use crate::time::{Due, Time};

/// So many are looked through.
pub(super) const FEW: usize = 4;

/// Holders by slot, by name, and by when to look at them.
#[derive(Debug)]
pub(super) enum Places {
    /// No more than [`FEW`] so far.
    Few(Few),
    /// There were more.
    Many(Box<Many>),
}

/// Holders that are looked through.
#[derive(Debug)]
pub(super) struct Few {
    holdings: Vec<Option<Holding>>,
    /// When the first of them is scheduled.
    due: Due,
}

/// Holders with indexes. What every request reads comes first, and stands together.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Many {
    /// The slot, and 32 bits of the hash: growing the table does not touch the holders.
    by_name: SplitTable,
    /// The first chunk of holders, found without a step through `others`: most resources have no other one.
    first: Vec<Option<Holding>>,
    /// At least one entry for every holder, not later than its next expiry.
    expiries: Expiries,
    /// All other chunks.
    others: Vec<Vec<AlignedPlace>>,
    /// Free places, and when who was there was to be looked at last: there is an entry for that still, unless
    /// it has come up.
    free: Chunked<(Slot, Time)>,
    /// There are no entries for as many of the free places, the first ones: all were forgotten.
    without_entries: usize,
    /// No entry has come up that is later.
    came_up: Time,
}

/// A place that begins with a line of a processor's cache. Allocators align to less, and a holder would be in four lines
/// instead of three.
#[derive(Debug)]
#[repr(align(64))]
struct AlignedPlace(Option<Holding>);

const _: () = assert!(size_of::<AlignedPlace>() <= 3 * 64);

/// What every request reads is in the first two lines of a processor's cache.
const _: () = assert!(std::mem::offset_of!(Many, others) <= 2 * 64);

/// Hashes names with a key: names come from outside, and must not be made to collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameHash {
    /// The key.
    pub(super) seed: u64,
}

impl NameHash {
    /// The hash of a holder's name.
    pub(super) fn of(self, kind: HolderKind, name: &str) -> u64 {
        // A client and a child server of one name are different holders.
        let of_kind = 0x646f_6f72_7761_7264 + kind as u64;
        SipHasher13::new_with_keys(self.seed, of_kind).hash(name.as_bytes())
    }

    /// 32 bits of it.
    pub(super) fn short(self, kind: HolderKind, name: &str) -> u32 {
        // The low half.
        self.of(kind, name) as u32
    }

    fn of_holding(self, holding: &Holding) -> u32 {
        self.short(holding.kind, holding.name.as_str())
    }
}

impl Places {
    /// Nobody.
    pub(super) const fn new() -> Self {
        Self::Few(Few {
            holdings: Vec::new(),
            due: Due::NEVER,
        })
    }

    /// The holder of that name.
    pub(super) fn find(
        &self,
        kind: HolderKind,
        name: &str,
        hash: impl FnOnce() -> u32,
    ) -> Option<Slot> {
        let is_it = |it: &Holding| it.kind == kind && it.name.as_str() == name;
        match self {
            Self::Few(few) => few.slots().find(|(_, it)| is_it(it)).map(|(slot, _)| slot),
            Self::Many(many) => {
                let hash = hash();
                let is_it = |slot| many.get(Slot(slot)).is_some_and(is_it);
                many.by_name.find(hash, is_it).map(Slot)
            }
        }
    }

    /// What is in a slot.
    pub(super) fn get(&self, slot: Slot) -> Option<&Holding> {
        match self {
            Self::Few(few) => few.holdings.get(slot.0 as usize)?.as_ref(),
            Self::Many(many) => many.get(slot),
        }
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Holding> {
        match self {
            Self::Few(few) => few.holdings.get_mut(slot.0 as usize)?.as_mut(),
            Self::Many(many) => many.place_mut(slot)?.as_mut(),
        }
    }

    /// Puts in a holder, to be looked at when it is scheduled.
    pub(super) fn insert(&mut self, holding: Holding, hash: NameHash) -> Slot {
        if let Self::Few(few) = self
            && few.slots().count() == FEW
        {
            let holdings = std::mem::take(&mut few.holdings);
            *self = Self::Many(Box::new(Many::of(holdings, hash)));
        }
        match self {
            Self::Few(few) => few.insert(holding),
            Self::Many(many) => many.insert(holding, hash),
        }
    }

    /// Takes a holder out.
    pub(super) fn remove(&mut self, slot: Slot, hash: NameHash) -> Option<Holding> {
        match self {
            Self::Few(few) => few.remove(slot),
            Self::Many(many) => many.remove(slot, hash),
        }
    }

    /// A holder is to be looked at then. It is scheduled for that.
    pub(super) fn schedule(&mut self, slot: Slot, time: Time) {
        match self {
            Self::Few(few) => few.due = few.due.or_at(time),
            Self::Many(many) => many.expiries.push((time, slot)),
        }
    }

    /// Not later than when the first holder is scheduled.
    pub(super) fn next_scheduled(&self) -> Due {
        match self {
            Self::Few(few) => few.due,
            Self::Many(many) => many.expiries.due(),
        }
    }

    /// Who is scheduled by then, if anybody may be; it is to be scheduled again, or taken out. Or an entry that means
    /// nothing any more: there may be another one.
    pub(super) fn pop_scheduled(&mut self, now: Time) -> Option<(Time, Slot)> {
        if !self.next_scheduled().is_by(now) {
            return None;
        }
        match self {
            Self::Few(few) => few.pop(),
            Self::Many(many) => many.pop(),
        }
    }

    /// Nobody is left: nothing is scheduled any more.
    pub(super) fn note_empty(&mut self) {
        match self {
            Self::Few(few) => debug_assert_eq!(few.due, Due::NEVER),
            Self::Many(many) => {
                many.expiries.clear();
                many.without_entries = many.free.len();
            }
        }
    }

    /// How many places there are, taken or not.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.holdings.len(),
            Self::Many(many) => {
                let before = many.others.len() * CHUNK;
                before + many.len_of_last()
            }
        }
    }

    /// Whether there were so many that dropping them takes long.
    pub(super) fn are_in_chunks(&self) -> bool {
        matches!(self, Self::Many(many) if !many.others.is_empty())
    }

    /// All places, taken or not.
    #[cfg(test)]
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        self.slots_from(Slot::FIRST)
    }

    /// Those from that one on.
    pub(super) fn slots_from(&self, from: Slot) -> impl Iterator<Item = Slot> + use<> {
        (from.0 as usize..self.len()).map(Slot::of)
    }

    /// All holders, in no meaningful but always the same order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Holding> {
        let (first, others) = match self {
            Self::Few(few) => (few.holdings.as_slice(), [].as_slice()),
            Self::Many(many) => (many.first.as_slice(), many.others.as_slice()),
        };
        let others = others.iter().flatten().map(|place| &place.0);
        first.iter().chain(others).flatten()
    }

    /// Bytes of memory behind it.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(few) => few.holdings.capacity() * size_of::<Option<Holding>>(),
            Self::Many(many) => {
                let others: usize = many.others.iter().map(Vec::capacity).sum();
                let holdings = many.first.capacity() + others;
                size_of::<Many>()
                    + many.others.capacity() * size_of::<Vec<AlignedPlace>>()
                    + holdings * size_of::<Option<Holding>>()
                    + many.by_name.memory_bytes()
                    + many.expiries.memory_bytes()
                    + many.free.memory_bytes()
            }
        }
    }

    /// Entries by which somebody is to be looked at.
    #[cfg(test)]
    pub(super) fn scheduled_count(&self) -> usize {
        match self {
            Self::Few(few) => few.slots().count(),
            Self::Many(many) => many.expiries.len(),
        }
    }

    /// Asserts that so many holders are where they should be. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(super) fn assert_consistent(&self, len: usize) {
        match self {
            Self::Few(few) => {
                assert!(few.holdings.len() <= FEW, "few places");
                assert_eq!(few.slots().count(), len, "holders");
                assert_eq!(few.due, few.first_due(), "due");
            }
            Self::Many(many) => {
                assert_eq!(self.len(), len + many.free.len(), "places");
                assert_eq!(many.by_name.len(), len, "names");
                many.expiries.assert_consistent();
                let entries: BTreeSet<_> = many.expiries.iter().collect();
                for slot in self.slots_from(Slot::FIRST) {
                    let entry = many.get(slot).map(|holding| (holding.scheduled, slot));
                    assert!(
                        entry.is_none_or(|it| entries.contains(&it)),
                        "{slot:?} is never looked at"
                    );
                }
            }
        }
    }
}

impl Few {
    /// The holders, and where they are.
    fn slots(&self) -> impl Iterator<Item = (Slot, &Holding)> {
        let places = self.holdings.iter().enumerate();
        places.filter_map(|(at, holding)| Some((Slot::of(at), holding.as_ref()?)))
    }

    fn insert(&mut self, holding: Holding) -> Slot {
        self.due = self.due.or_at(holding.scheduled);
        let free = self.holdings.iter().position(Option::is_none);
        if let Some(at) = free {
            if let Some(place) = self.holdings.get_mut(at) {
                *place = Some(holding);
            }
            return Slot::of(at);
        }
        push(&mut self.holdings, Some(holding));
        Slot::of(self.holdings.len() - 1)
    }

    /// Who was scheduled first leaves no trace: a request that repeats another one moves no timer.
    fn remove(&mut self, slot: Slot) -> Option<Holding> {
        let gone = self.holdings.get_mut(slot.0 as usize)?.take()?;
        self.due = self.first_due();
        Some(gone)
    }

    fn first_due(&self) -> Due {
        let scheduled = self.slots().map(|(_, it)| it.scheduled);
        scheduled.min().into()
    }

    /// Who is scheduled first. When to look next is up to the others.
    fn pop(&mut self) -> Option<(Time, Slot)> {
        let first = self.slots().map(|(slot, it)| (it.scheduled, slot)).min()?;
        let others = self.slots().filter(|(slot, _)| *slot != first.1);
        self.due = others.map(|(_, it)| it.scheduled).min().into();
        Some(first)
    }
}

impl Many {
    /// Those that were few.
    fn of(holdings: Vec<Option<Holding>>, hash: NameHash) -> Self {
        let mut many = Self::default();
        for (at, place) in holdings.iter().enumerate() {
            match place {
                Some(holding) => many.index(Slot::of(at), holding, hash),
                None => many.free.push((Slot::of(at), Time::ZERO)),
            }
        }
        many.without_entries = many.free.len();
        many.first = holdings;
        many
    }

    fn get(&self, slot: Slot) -> Option<&Holding> {
        let (chunk, place) = slot.place();
        match chunk.checked_sub(1) {
            None => self.first.get(place)?.as_ref(),
            Some(at) => self.others.get(at)?.get(place)?.0.as_ref(),
        }
    }

    /// Places of the chunk that new ones are in.
    fn len_of_last(&self) -> usize {
        self.others.last().map_or(self.first.len(), Vec::len)
    }

    fn place_mut(&mut self, slot: Slot) -> Option<&mut Option<Holding>> {
        let (chunk, place) = slot.place();
        match chunk.checked_sub(1) {
            None => self.first.get_mut(place),
            Some(at) => Some(&mut self.others.get_mut(at)?.get_mut(place)?.0),
        }
    }

    fn insert(&mut self, mut holding: Holding, hash: NameHash) -> Slot {
        let (slot, entry) = match self.free.pop() {
            Some((slot, entry)) => (slot, Some(entry)),
            None => (self.add_place(), None),
        };
        let has_entry = self.free.len() >= self.without_entries;
        self.without_entries = self.without_entries.min(self.free.len());
        let kept =
            entry.filter(|entry| has_entry && *entry > self.came_up && *entry <= holding.scheduled);
        match kept {
            // It is looked at a little early, and one entry is enough for all who come and go.
            Some(kept) => holding.scheduled = kept,
            None => self.expiries.push((holding.scheduled, slot)),
        }
        self.name(slot, &holding, hash);
        if let Some(place) = self.place_mut(slot) {
            *place = Some(holding);
        }
        self.tidy_expiries();
        slot
    }

    /// Takes out the first entry of those by which holders are looked at.
    fn pop(&mut self) -> Option<(Time, Slot)> {
        let (time, slot) = self.expiries.pop()?;
        self.came_up = self.came_up.max(time);
        Some((time, slot))
    }

    fn add_place(&mut self) -> Slot {
        if self.len_of_last() == CHUNK {
            self.others.push(Vec::with_capacity(CHUNK));
        }
        let place = self.others.len() * CHUNK + self.len_of_last();
        match self.others.last_mut() {
            None => push(&mut self.first, None),
            Some(chunk) => chunk.push(AlignedPlace(None)),
        }
        Slot::of(place)
    }

    /// Enters a holder in the table of names, and in the heap.
    fn index(&mut self, slot: Slot, holding: &Holding, hash: NameHash) {
        self.name(slot, holding, hash);
        self.expiries.push((holding.scheduled, slot));
    }

    /// Enters a holder in the table of names.
    fn name(&mut self, slot: Slot, holding: &Holding, hash: NameHash) {
        let hash = hash.of_holding(holding);
        self.by_name.insert(hash, slot.0);
    }

    fn remove(&mut self, slot: Slot, hash: NameHash) -> Option<Holding> {
        let holding = self.place_mut(slot)?.take()?;
        let hash = hash.of_holding(&holding);
        self.by_name.remove(hash, slot.0);
        self.free.push((slot, holding.scheduled));
        Some(holding)
    }

    /// Entries that mean nothing any more do not pile up: those of a place that somebody has who is looked at by another
    /// one. Those of free places stay: the next who comes there may be looked at by one of them.
    fn tidy_expiries(&mut self) {
        let places = self.by_name.len() + self.free.len();
        // Taken out, since holders are looked at meanwhile.
        let mut expiries = std::mem::take(&mut self.expiries);
        expiries.tidy(places, |(time, slot)| {
            let holding = self.get(slot);
            holding.is_none_or(|holding| holding.scheduled == time)
        });
        self.expiries = expiries;
    }
}

/// Adds a place to the first chunk, which grows as needed, and by little at a time: most resources have few holders, and each
/// place is large.
fn push(chunk: &mut Vec<Option<Holding>>, place: Option<Holding>) {
    if chunk.len() == chunk.capacity() {
        let more = 1 + chunk.len() / 4;
        chunk.reserve_exact(more.min(CHUNK.saturating_sub(chunk.len()).max(1)));
    }
    chunk.push(place);
}
