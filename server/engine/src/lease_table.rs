//! Who holds what of one resource: holders by name, the exact sums over them, and whose lease ends
//! next.
//!
//! Nothing here decides anything. Every sum is kept exactly (see [`ExactSum`]), and expiry is found
//! without scanning: a heap has at least one entry for every holder, not later than its next
//! expiry. An entry that comes up early, because the lease was renewed meanwhile, is put back, so
//! renewing a lease costs nothing here, and each lease is looked at about once a lease length.

mod holding;

pub(crate) use holding::{Holding, ServerReport};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;
use std::ops::Range;
use std::time::Duration;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use crate::admission::weight;
use crate::demand::Demand;
use crate::exact_sum::ExactSum;
use crate::id::{HolderId, HolderKind};
use crate::lease::Leases;
use crate::planted::{self, Bug};
use crate::time::Time;

/// Where a holder is in the table. Not valid any more once the holder is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

/// Holders in a chunk of the table: a power of two. Chunks never move, so adding a holder never
/// copies what is there.
const CHUNK: usize = 512;

/// The holders of one resource.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    seed: u64,
    chunks: Vec<Vec<Option<Holding>>>,
    free: Vec<Slot>,
    /// The slot, and 32 bits of the hash: growing the table does not touch the holders.
    by_name: HashTable<(Slot, u32)>,
    expiries: BinaryHeap<Reverse<(Time, Slot)>>,
    granted: ExactSum,
    reserved: ExactSum,
    /// No lease that is worth anything ends later.
    in_use_until: Time,
    wants: ExactSum,
    waiting: usize,
    /// Names of holders that are not kept in place.
    name_bytes: usize,
}

impl LeaseTable {
    /// An empty table; the seed keys the hash of names.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            chunks: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            expiries: BinaryHeap::new(),
            granted: ExactSum::ZERO,
            reserved: ExactSum::ZERO,
            in_use_until: Time::ZERO,
            wants: ExactSum::ZERO,
            waiting: 0,
            name_bytes: 0,
        }
    }

    /// What names of holders take that are not kept in place.
    pub(crate) fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// How many holders there are.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Σ of what the newest leases say.
    pub(crate) fn granted(&self) -> &ExactSum {
        &self.granted
    }

    /// Σ of the most that may be in use.
    pub(crate) fn reserved(&self) -> &ExactSum {
        &self.reserved
    }

    /// Until when something may be in use, if nothing more is granted. None: nothing is in use.
    /// It may be later than the last lease ends, if a holder said that it has less than it was
    /// granted; but no lease was ever to last longer.
    pub(crate) fn in_use_until(&self, now: Time) -> Option<Time> {
        let in_use = !self.reserved.rounded_up().is_zero() && self.in_use_until > now;
        in_use.then_some(self.in_use_until)
    }

    /// Σ wants.
    pub(crate) fn wants(&self) -> &ExactSum {
        &self.wants
    }

    /// How many holders get less than their share because of what others hold.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The holder of that name.
    pub(crate) fn find(&self, kind: HolderKind, name: &str) -> Option<Slot> {
        let hash = self.hash(kind, name);
        self.by_name
            .find(spread(hash), |(slot, kept)| {
                *kept == hash
                    && self.get(*slot).is_some_and(|holding| {
                        holding.holder.kind == kind && holding.holder.name.as_str() == name
                    })
            })
            .map(|(slot, _)| *slot)
    }

    /// What is in a slot.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Holding> {
        let (chunk, place) = slot.place();
        self.chunks.get(chunk)?.get(place)?.as_ref()
    }

    fn get_mut(&mut self, slot: Slot) -> Option<&mut Holding> {
        let (chunk, place) = slot.place();
        self.chunks.get_mut(chunk)?.get_mut(place)?.as_mut()
    }

    /// Puts in a holder that is not there yet.
    pub(crate) fn insert(&mut self, holding: Holding) -> Slot {
        debug_assert!(
            self.find(holding.holder.kind, holding.holder.name.as_str())
                .is_none(),
            "{} is there already",
            holding.holder
        );
        let hash = self.hash(holding.holder.kind, holding.holder.name.as_str());
        self.wants.add(holding.demand.wants());
        self.granted.add(holding.newest().capacity);
        self.reserved.add_sum(&holding.leases.reserved_sum());
        self.waiting += usize::from(holding.waits);
        self.name_bytes += weight::name_bytes(holding.holder.name.as_str());
        if let Some(until) = holding.leases.in_use_until() {
            self.in_use_until = self.in_use_until.max(until);
        }
        let scheduled = holding.scheduled;
        let slot = self.place(holding);
        self.by_name
            .insert_unique(spread(hash), (slot, hash), |(_, hash)| spread(*hash));
        self.expiries.push(Reverse((scheduled, slot)));
        self.sweep_expiries();
        slot
    }

    /// Drops the heap's entries of holders that are gone once they are the most of it. It takes as
    /// many insertions as there is work in here for it to happen again.
    fn sweep_expiries(&mut self) {
        if self.expiries.len() > 4 * self.len() + 1024 {
            let mut entries = std::mem::take(&mut self.expiries).into_vec();
            entries.retain(|Reverse((time, slot))| {
                self.get(*slot)
                    .is_some_and(|holding| holding.scheduled == *time)
            });
            entries.sort_unstable();
            entries.dedup();
            self.expiries = BinaryHeap::from(entries);
        }
    }

    /// Stores a holder in a free place.
    fn place(&mut self, holding: Holding) -> Slot {
        if let Some(slot) = self.free.pop() {
            let (chunk, place) = slot.place();
            if let Some(empty) = self.chunks.get_mut(chunk).and_then(|c| c.get_mut(place)) {
                *empty = Some(holding);
            }
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            // The first chunk grows as needed: most resources have few holders.
            let capacity = if self.chunks.is_empty() { 1 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let chunk = self.chunks.len() - 1;
        let place = self.chunks.last().map_or(0, Vec::len);
        if let Some(last) = self.chunks.last_mut() {
            last.push(Some(holding));
        }
        Slot(u32::try_from(chunk * CHUNK + place).unwrap_or(u32::MAX))
    }

    /// Takes a holder out.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Holding> {
        let (chunk, place) = slot.place();
        let holding = self.chunks.get_mut(chunk)?.get_mut(place)?.take()?;
        let hash = self.hash(holding.holder.kind, holding.holder.name.as_str());
        if let Ok(entry) = self
            .by_name
            .find_entry(spread(hash), |(kept, _)| *kept == slot)
        {
            entry.remove();
        }
        if !planted::is(Bug::SlotNotFreed) {
            self.free.push(slot);
        }
        self.wants.subtract(holding.demand.wants());
        self.granted.subtract(holding.newest().capacity);
        self.reserved.subtract_sum(&holding.leases.reserved_sum());
        self.waiting -= usize::from(holding.waits);
        self.name_bytes -= weight::name_bytes(holding.holder.name.as_str());
        if self.is_empty() {
            // Entries of holders long gone are all that is left.
            self.expiries.clear();
            self.in_use_until = Time::ZERO;
        }
        Some(holding)
    }

    /// Changes a holder's leases, keeping the sums and the heap in step. What else of the holder
    /// `change` touches but its leases must not be in a sum.
    pub(crate) fn change_leases<T>(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut Leases) -> T,
    ) -> Option<T> {
        let holding = self.get_mut(slot)?;
        let granted = holding.newest().capacity;
        let reserved = holding.leases.reserved_sum();
        let result = change(&mut holding.leases);
        let granted_now = holding.newest().capacity;
        let reserved_now = holding.leases.reserved_sum();
        let next_expiry = holding.leases.next_expiry();
        let in_use_until = holding.leases.in_use_until();
        let earlier = next_expiry < holding.scheduled;
        if earlier {
            holding.scheduled = next_expiry;
            self.expiries.push(Reverse((next_expiry, slot)));
        }
        self.granted.replace(granted, granted_now);
        if reserved_now != reserved {
            // Put in first: between the two steps the sum never goes below what it holds.
            self.reserved.add_sum(&reserved_now);
            self.reserved.subtract_sum(&reserved);
        }
        if let Some(until) = in_use_until {
            self.in_use_until = self.in_use_until.max(until);
        }
        Some(result)
    }

    /// Ends every lease by then, at the latest. O(n).
    pub(crate) fn end_all_by(&mut self, time: Time) {
        for chunk in 0..self.chunks.len() {
            let places = self.chunks.get(chunk).map_or(0, Vec::len);
            for place in 0..places {
                let slot = Slot(u32::try_from(chunk * CHUNK + place).unwrap_or(u32::MAX));
                self.change_leases(slot, |leases| leases.end_by(time));
            }
        }
        self.in_use_until = self.in_use_until.min(time);
    }

    /// Changes what a holder asks for.
    pub(crate) fn change_demand(&mut self, slot: Slot, demand: Demand) {
        if let Some(holding) = self.get_mut(slot) {
            let after = demand.wants();
            let before = std::mem::replace(&mut holding.demand, demand).wants();
            self.wants.replace(before, after);
        }
    }

    /// Changes whether a holder waits for others.
    pub(crate) fn change_waits(&mut self, slot: Slot, waits: bool) {
        if let Some(holding) = self.get_mut(slot) {
            let before = std::mem::replace(&mut holding.waits, waits);
            self.waiting = self.waiting + usize::from(waits) - usize::from(before);
        }
    }

    /// Changes what is in no sum: share, why, sequence, times.
    pub(crate) fn note(&mut self, slot: Slot, note: impl FnOnce(&mut Holding)) {
        if let Some(holding) = self.get_mut(slot) {
            note(holding);
        }
    }

    /// Not later than the first expiry of any lease.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiries.peek().map(|Reverse((time, _))| *time)
    }

    /// Looks at one entry of the heap that is due, if there is one. A holder whose last lease has
    /// ended is taken out.
    pub(crate) fn expire_one(&mut self, now: Time) -> Expired {
        let now = if planted::is(Bug::ExpiresTooEarly) {
            now + Duration::from_secs(5)
        } else {
            now
        };
        match self.expiries.peek() {
            Some(Reverse((time, _))) if *time <= now => {}
            _ => return Expired::NothingDue,
        }
        let Some(Reverse((time, slot))) = self.expiries.pop() else {
            return Expired::NothingDue;
        };
        // The entry may be of a holder that is gone, or was scheduled earlier since.
        if self
            .get(slot)
            .is_none_or(|holding| holding.scheduled != time)
        {
            return Expired::Nobody;
        }
        let before = self.get(slot).map(Holding::reserved);
        let alive = self
            .change_leases(slot, |leases| leases.expire(now))
            .unwrap_or(false);
        if !alive {
            return self
                .remove(slot)
                .map_or(Expired::Nobody, |h| Expired::Holder(slot, Box::new(h)));
        }
        if let Some(holding) = self.get_mut(slot) {
            let next_expiry = holding.leases.next_expiry();
            holding.scheduled = next_expiry;
            self.expiries.push(Reverse((next_expiry, slot)));
        }
        if self.get(slot).map(Holding::reserved) < before {
            return Expired::Part;
        }
        Expired::Nobody
    }

    /// All holders, in no meaningful but always the same order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Holding> {
        self.chunks.iter().flatten().flatten()
    }

    /// Every slot from that one on, in order, with its holder, if it has one.
    pub(crate) fn places_from(&self, from: Slot) -> impl Iterator<Item = (Slot, Option<&Holding>)> {
        let (chunk, place) = from.place();
        let skip = move |number: usize| if number == chunk { place } else { 0 };
        let chunks = self.chunks.iter().enumerate().skip(chunk);
        chunks.flat_map(move |(number, chunk)| {
            let places = chunk.iter().enumerate().skip(skip(number));
            places.map(move |(place, holding)| (Slot::at(number, place), holding.as_ref()))
        })
    }

    /// Whether there were so many holders that dropping it takes long.
    pub(crate) fn has_had_many(&self) -> bool {
        self.chunks.len() > 1
    }

    /// Drops about so many holders, which are not needed any more; after that, it is not to be used. Returns
    /// whether none is left.
    pub(crate) fn drop_some(&mut self, holders: usize) -> bool {
        for _ in 0..holders.div_ceil(CHUNK) {
            self.chunks.pop();
        }
        self.chunks.is_empty()
    }

    /// How many places there are, taken or free.
    pub(crate) fn places(&self) -> usize {
        let before = self.chunks.len().saturating_sub(1) * CHUNK;
        self.chunks.last().map_or(0, |last| before + last.len())
    }

    /// The holders in these places.
    pub(crate) fn in_places(&self, places: Range<usize>) -> impl Iterator<Item = &Holding> {
        places.filter_map(|place| self.get(Slot(u32::try_from(place).ok()?)))
    }

    /// Bytes of memory behind it, names included (roughly: what the allocator adds is not known).
    pub(crate) fn memory_bytes(&self) -> usize {
        let holdings: usize = self.chunks.iter().map(Vec::capacity).sum();
        let names: usize = self.iter().map(|h| h.holder.name.as_str().len() + 16).sum();
        holdings * size_of::<Option<Holding>>()
            + names
            + self.by_name.allocation_size()
            + self.expiries.capacity() * size_of::<Reverse<(Time, Slot)>>()
            + self.free.capacity() * size_of::<Slot>()
    }

    /// Asserts that every kept sum is what its parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub(crate) fn assert_consistent(&self) {
        let mut granted = ExactSum::ZERO;
        let mut reserved = ExactSum::ZERO;
        let mut wants = ExactSum::ZERO;
        let mut waiting = 0;
        let mut len = 0;
        for holding in self.iter() {
            granted.add(holding.newest().capacity);
            reserved.add_sum(&holding.leases.reserved_sum());
            wants.add(holding.demand.wants());
            waiting += usize::from(holding.waits);
            len += 1;
            assert!(
                holding.newest().capacity <= holding.reserved(),
                "{holding:?}"
            );
            assert!(
                holding.leases.in_use_until() <= Some(self.in_use_until),
                "{holding:?}"
            );
            assert!(
                holding.scheduled <= holding.leases.next_expiry(),
                "{holding:?}"
            );
        }
        assert_eq!(granted, self.granted, "Σ granted");
        assert_eq!(reserved, self.reserved, "Σ reserved");
        assert_eq!(wants, self.wants, "Σ wants");
        assert_eq!(waiting, self.waiting, "waiting holders");
        assert_eq!(len, self.len(), "holders");
        let places: usize = self.chunks.iter().map(Vec::len).sum();
        assert_eq!(places, len + self.free.len(), "places");
        assert!(self.expiries.len() >= len, "every holder is in the heap");
    }

    /// A keyed hash of a name.
    pub(crate) fn name_hash(&self, holder: &HolderId) -> u64 {
        self.long_hash(holder.kind, holder.name.as_str())
    }

    /// 32 bits of a keyed hash: names come from outside, and must not be made to collide.
    fn hash(&self, kind: HolderKind, name: &str) -> u32 {
        // The low half.
        self.long_hash(kind, name) as u32
    }

    fn long_hash(&self, kind: HolderKind, name: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0x646f_6f72_7761_7264);
        hasher.write(name.as_bytes());
        hasher.write_u8(kind as u8);
        hasher.finish()
    }
}

/// What came of looking at a due entry.
#[derive(Debug)]
pub(crate) enum Expired {
    /// No entry is due.
    NothingDue,
    /// The entry was of nobody whose last lease has ended; there may be more.
    Nobody,
    /// An older lease has ended, and frees something; there may be more.
    Part,
    /// This holder's last lease has ended, and its slot is free; there may be more.
    Holder(Slot, Box<Holding>),
}

impl Slot {
    /// The first of all.
    pub(crate) const FIRST: Self = Self(0);

    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    fn at(chunk: usize, place: usize) -> Self {
        Self(u32::try_from(chunk * CHUNK + place).unwrap_or(u32::MAX))
    }

    /// Its chunk, and the place in it.
    fn place(self) -> (usize, usize) {
        (self.0 as usize / CHUNK, self.0 as usize % CHUNK)
    }
}

/// Spreads 32 good bits over the 64 that the table wants (it looks at both ends).
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
