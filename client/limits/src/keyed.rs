//! A limit for each key, for many threads, within bounds.
//!
//! Keys are spread over shards. Each has its own lock, which is held for one decision. Only keys that differ from a
//! fresh one are stored. Each operation also looks at two other keys of its shard and forgets those that have become
//! fresh again. So idle keys leave without a scan and without a thread, and a key in use never leaves. [`Keyed::sweep`]
//! does the same while no caller asks.
//!
//! The number of keys never exceeds the bound. At the bound, all new keys share one more limit, the overflow
//! ([`Keyed::with_overflow`]), and [`Figures::overflowed`] counts its decisions. A key that finds room later begins
//! fresh. When most keys of a flood have left, their memory is freed.
//!
//! Another limit ([`Keyed::set_limit`]) converts all keys, one shard after the other. A caller waits only while the keys
//! of its own shard, a sixty-fourth of all, are converted.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hashbrown::HashTable;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::key::Key;
use crate::limiter::Limiter;
use crate::lock::lock;
use crate::moment::Moment;
use crate::timeline::Timeline;
use crate::units::Units;

mod at_key;

pub use at_key::AtKey;

/// A limit for each key.
pub struct Keyed<A: Algorithm> {
    shards: Box<[Mutex<Shard<A>>]>,
    /// Limit that keys without room share.
    overflow: Mutex<Limiter<A>>,
    /// Whether the shared limit is another one than that of a key.
    own_overflow: bool,
    keys_max: usize,
    /// Shard at which the next search for room begins.
    next_shard: AtomicUsize,
    keys: AtomicUsize,
    overflowed: AtomicU64,
    forgotten: AtomicU64,
}

/// Statistics of a map of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of stored keys.
    pub keys: usize,
    /// Number of operations of keys without room, which used the shared limit.
    pub overflowed: u64,
    /// Number of keys that were forgotten because they were fresh again.
    pub forgotten: u64,
}

/// One part of the keys.
struct Shard<A: Algorithm> {
    /// Place of each key among the entries.
    places: HashTable<u32>,
    entries: Vec<Entry<A::State>>,
    limit: A,
    times: Timeline,
    /// The next place to look at.
    cursor: usize,
}

/// State of one key.
struct Entry<S> {
    key: Key,
    state: S,
}

/// Number of shards: more than cores, so that two threads seldom meet.
const SHARDS: usize = 64;

/// Number of other keys that one operation looks at.
const LOOKS: usize = 2;

/// Number of keys that an operation looks at if it finds no room for its own.
const LOOKS_FOR_ROOM: usize = 16;

/// Number of entries for which memory is taken at first, and kept.
const ENTRIES_MIN: usize = 64;

impl<A: Algorithm + Clone> Keyed<A> {
    /// Creates a limit for each of at most `keys_max` keys, all fresh.
    pub fn new(algorithm: A, keys_max: usize) -> Self {
        let shard = || Mutex::new(Shard::new(algorithm.clone()));
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            overflow: Mutex::new(Limiter::new(algorithm.clone())),
            own_overflow: false,
            // Places have numbers of 32 bits.
            keys_max: keys_max.min(u32::MAX as usize),
            next_shard: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            overflowed: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
        }
    }

    /// Sets another limit for all keys without room together, which [`Self::set_limit`] does not change. The default
    /// is the limit of one key, which one caller that invents keys uses up.
    #[must_use]
    pub fn with_overflow(mut self, overflow: A) -> Self {
        self.overflow = Mutex::new(Limiter::new(overflow));
        self.own_overflow = true;
        self
    }

    /// Takes `cost` of the key's limit if it is available.
    pub fn take(&self, key: Key, cost: Units, now: Moment) -> Decision {
        self.update(key, now, |limit, state, now| limit.take(state, cost, now))
    }

    /// Returns the answer that a take would get. A peek of 0 only looks.
    pub fn peek(&self, key: Key, cost: Units, now: Moment) -> Decision {
        self.update(key, now, |limit, state, now| limit.peek(state, cost, now))
    }

    /// Returns the standing of the key's limit, even if it refuses.
    pub fn standing(&self, key: Key, now: Moment) -> Standing {
        self.update(key, now, |limit, state, now| limit.standing(state, now))
    }

    /// Takes `cost`, available or not.
    pub fn charge(&self, key: Key, cost: Units, now: Moment) {
        self.update(key, now, |limit, state, now| limit.charge(state, cost, now));
    }

    /// Gives back `cost`. Any amount above full is lost.
    pub fn refund(&self, key: Key, cost: Units, now: Moment) {
        self.update(key, now, |limit, state, now| limit.refund(state, cost, now));
    }

    /// Returns whether a key is new, and the map at least half full. Then a caller that invents keys should be refused: it
    /// may take the rest of the room.
    pub fn is_crowded_for(&self, key: Key) -> bool {
        self.keys.load(Ordering::Relaxed) >= self.keys_max.div_ceil(2)
            && lock(self.shard(key)).find(key).is_none()
    }

    /// Returns the limit of one key.
    pub const fn at(&self, key: Key) -> AtKey<'_, A> {
        AtKey { map: self, key }
    }

    /// Sets another limit for all keys. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&self, next: &A, now: Moment) {
        for shard in &self.shards {
            lock(shard).set_limit(next, now);
        }
        if !self.own_overflow {
            lock(&self.overflow).set_limit(next.clone(), now);
        }
    }

    /// Looks at a number of keys of every shard, and forgets those that are fresh. Returns the number of forgotten
    /// keys. Operations do the same; call it to free memory while no caller asks.
    pub fn sweep(&self, keys_of_each_shard: usize, now: Moment) -> usize {
        let mut forgotten = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let now = shard.pass(now);
            forgotten += self.note(shard.look(keys_of_each_shard, now));
        }
        forgotten
    }

    /// Returns the statistics.
    pub fn figures(&self) -> Figures {
        Figures {
            keys: self.keys.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
            forgotten: self.forgotten.load(Ordering::Relaxed),
        }
    }

    /// Does several operations on a key's limit at once. The time of the operation is that of the map, which never goes
    /// back.
    #[inline]
    pub fn update<R>(
        &self,
        key: Key,
        clock: Moment,
        operation: impl FnOnce(&A, &mut A::State, Moment) -> R,
    ) -> R {
        let mut shard = lock(self.shard(key));
        let now = shard.pass(clock);
        self.note(shard.look(LOOKS, now));
        let found = &mut *shard;
        if let Some(place) = found.find(key)
            && let Some(entry) = found.entries.get_mut(place)
        {
            let answer = operation(&found.limit, &mut entry.state, now);
            if found.limit.is_fresh(&entry.state, now) {
                found.remove(place);
                self.note(1);
            }
            return answer;
        }
        if !self.make_room(&mut shard, clock) {
            drop(shard);
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            return lock(&self.overflow).update(clock, operation);
        }
        let mut state = shard.limit.fresh();
        let answer = operation(&shard.limit, &mut state, now);
        if shard.limit.is_fresh(&state, now) {
            self.keys.fetch_sub(1, Ordering::Relaxed);
        } else {
            shard.store(Entry { key, state });
        }
        answer
    }

    /// Counts one more key, if there is room for it.
    fn make_room(&self, shard: &mut Shard<A>, clock: Moment) -> bool {
        let count_one = || {
            let one_more = |keys| (keys < self.keys_max).then_some(keys + 1);
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            self.keys.fetch_update(set, fetch, one_more).is_ok()
        };
        count_one() || (self.look_for_room(shard, clock) && count_one())
    }

    /// Forgets one fresh key, in this shard or in another one that no thread uses. Gives up if it would have to look at
    /// many.
    #[cold]
    fn look_for_room(&self, shard: &mut Shard<A>, clock: Moment) -> bool {
        let now = shard.pass(clock);
        if self.note(shard.look(LOOKS_FOR_ROOM, now)) > 0 {
            return true;
        }
        let mut looks = LOOKS_FOR_ROOM;
        let begin = self.next_shard.fetch_add(1, Ordering::Relaxed);
        for other in self.shards.iter().cycle().skip(begin % SHARDS).take(SHARDS) {
            // Waiting for a second lock could be a deadlock.
            let Ok(mut other) = other.try_lock() else {
                continue;
            };
            let now = other.pass(clock);
            let places = looks.min(other.entries.len());
            if self.note(other.look(places, now)) > 0 {
                return true;
            }
            looks -= places;
            if looks == 0 {
                break;
            }
        }
        false
    }

    /// Records forgotten keys.
    fn note(&self, forgotten: usize) -> usize {
        if forgotten > 0 {
            self.keys.fetch_sub(forgotten, Ordering::Relaxed);
            self.forgotten
                .fetch_add(forgotten as u64, Ordering::Relaxed);
        }
        forgotten
    }

    /// Returns the shard of a key, for which any bits will do.
    fn shard(&self, key: Key) -> &Mutex<Shard<A>> {
        #[expect(clippy::indexing_slicing, reason = "the remainder is below the length")]
        &self.shards[key.high() as usize % SHARDS]
    }
}

impl<A: Algorithm + Clone> Shard<A> {
    fn new(algorithm: A) -> Self {
        Self {
            places: HashTable::new(),
            entries: Vec::new(),
            limit: algorithm,
            times: Timeline::START,
            cursor: 0,
        }
    }

    /// Returns the time of the shard's keys at the clock's time.
    #[inline]
    fn pass(&mut self, clock: Moment) -> Moment {
        self.times.pass(&self.limit, clock)
    }

    fn find(&self, key: Key) -> Option<usize> {
        let is_it = |place: &u32| {
            let entry = self.entries.get(*place as usize);
            entry.is_some_and(|it| it.key == key)
        };
        let place = self.places.find(key.low(), is_it)?;
        Some(*place as usize)
    }

    fn store(&mut self, entry: Entry<A::State>) {
        let (bits, place) = (entry.key.low(), self.entries.len());
        // Grows by a quarter, so that little memory is empty.
        if place == self.entries.capacity() {
            self.entries.reserve_exact((place / 4).max(ENTRIES_MIN));
        }
        self.entries.push(entry);
        // Places have numbers of 32 bits.
        self.places
            .insert_unique(bits, place as u32, bits_of(&self.entries));
    }

    /// Forgets the key at a place, which the last one takes.
    fn remove(&mut self, place: usize) {
        let end = self.entries.len().saturating_sub(1);
        let last = self.entries.last().map_or(0, |it| it.key.low());
        // It is the place of an entry.
        let gone = self.entries.swap_remove(place);
        if let Ok(found) = (self.places).find_entry(gone.key.low(), |it| *it as usize == place) {
            found.remove();
        }
        if let Some(moved) = self.places.find_mut(last, |it| *it as usize == end) {
            *moved = place as u32;
        }
        // Frees the memory of a flood of keys that is over.
        let room = (self.entries.len() * 2).max(ENTRIES_MIN);
        if room < self.entries.capacity() / 2 {
            self.entries.shrink_to(room);
            self.places.shrink_to(room, bits_of(&self.entries));
        }
    }

    /// Looks at the next places, and forgets the fresh keys. Returns the number of forgotten keys.
    fn look(&mut self, places: usize, now: Moment) -> usize {
        let before = self.entries.len();
        // A key may be seen twice, if it takes the place of a forgotten one. All the same, a walk over all misses none.
        for _ in 0..places.min(2 * before) {
            if self.cursor >= self.entries.len() {
                self.cursor = 0;
            }
            match self.entries.get(self.cursor) {
                Some(entry) if self.limit.is_fresh(&entry.state, now) => self.remove(self.cursor),
                _ => self.cursor += 1,
            }
        }
        before - self.entries.len()
    }

    fn set_limit(&mut self, next: &A, clock: Moment) {
        let now = self.pass(clock);
        for entry in &mut self.entries {
            self.limit.change(next, &mut entry.state, now);
        }
        self.limit = next.clone();
    }
}

/// Returns the bits of the key at a place.
fn bits_of<S>(entries: &[Entry<S>]) -> impl Fn(&u32) -> u64 {
    |place| entries.get(*place as usize).map_or(0, |it| it.key.low())
}

impl<A: Algorithm + Clone> fmt::Debug for Keyed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.figures().fmt(f)
    }
}

#[cfg(test)]
mod tests;
