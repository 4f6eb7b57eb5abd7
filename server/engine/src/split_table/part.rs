//! A small hash table: an entry stands where its hash says, or as soon after that as there was room.

use crate::split_table::spread;

/// Room of the smallest: a power of two.
const ROOM_MIN: usize = 8;

/// A place, and the hash of whoever is in it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: u32,
}

/// No place has that number.
const NOBODY: u32 = u32::MAX;

const VACANT: Entry = Entry {
    hash: 0,
    place: NOBODY,
};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// None, or a power of two, of which some are vacant.
    entries: Box<[Entry]>,
    len: u32,
    /// All entries have so many first bits in common.
    pub(super) bits: u32,
}

impl Part {
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The place of that hash which `is_it`.
    pub(super) fn find(&self, hash: u32, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let at = self.position(hash, is_it)?;
        self.entries.get(at).map(|entry| entry.place)
    }

    /// Puts in a place that is not there yet.
    pub(super) fn insert(&mut self, hash: u32, place: u32) {
        debug_assert_ne!(place, NOBODY);
        if 4 * (self.len() + 1) > 3 * self.entries.len() {
            self.grow();
        }
        self.put(Entry { hash, place });
    }

    /// Takes out a place, which has that hash. Returns whether it was there.
    pub(super) fn remove(&mut self, hash: u32, place: u32) -> bool {
        let Some(mut gap) = self.position(hash, |it| it == place) else {
            return false;
        };
        self.len -= 1;
        // Those after it that could stand where it stood move up: there are no gaps before any entry.
        let mut at = self.after(gap);
        while let Some(entry) = self.entries.get(at).copied().filter(Entry::is_there) {
            let is_home = self.distance(self.home(entry.hash), at) < self.distance(gap, at);
            if !is_home {
                self.set(gap, entry);
                gap = at;
            }
            at = self.after(at);
        }
        self.set(gap, VACANT);
        true
    }

    /// Takes those out whose hash says so, into another one. In both, all have so many first bits in common.
    pub(super) fn split(&mut self, bits: u32, is_second: impl Fn(u32) -> bool) -> Self {
        let mut parts = [0, 1].map(|_| Self {
            entries: vec![VACANT; self.entries.len()].into_boxed_slice(),
            len: 0,
            bits,
        });
        for entry in self.entries.iter().filter(|entry| entry.is_there()) {
            let [first, second] = &mut parts;
            let part = if is_second(entry.hash) { second } else { first };
            part.put(*entry);
        }
        let [first, second] = parts;
        *self = first;
        second
    }

    /// Bytes of memory behind it.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.entries)
    }

    fn grow(&mut self) {
        let room = ROOM_MIN.max(2 * self.entries.len());
        let entries = vec![VACANT; room].into_boxed_slice();
        let before = std::mem::replace(&mut self.entries, entries);
        self.len = 0;
        for entry in before.iter().filter(|entry| entry.is_there()) {
            self.put(*entry);
        }
    }

    /// Puts in an entry, for which there is room.
    fn put(&mut self, entry: Entry) {
        let mut at = self.home(entry.hash);
        while self.entries.get(at).is_some_and(Entry::is_there) {
            at = self.after(at);
        }
        self.set(at, entry);
        self.len += 1;
    }

    /// Where the entry of that hash stands which `is_it`.
    fn position(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            let entry = self.entries.get(at).filter(|entry| entry.is_there())?;
            if entry.hash == hash && is_it(entry.place) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn set(&mut self, at: usize, entry: Entry) {
        if let Some(place) = self.entries.get_mut(at) {
            *place = entry;
        }
    }

    /// Where an entry of that hash stands if there is room. The upper bits are the best ones.
    fn home(&self, hash: u32) -> usize {
        let upper = (spread(hash) >> 32) as usize;
        (upper * self.entries.len()) >> 32
    }

    fn after(&self, at: usize) -> usize {
        self.distance(0, at + 1)
    }

    /// How far it is from there to there: after the last one comes the first one.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.entries.len().wrapping_sub(1)
    }
}

impl Entry {
    fn is_there(&self) -> bool {
        self.place != NOBODY
    }
}
