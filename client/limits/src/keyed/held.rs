//! Keys of a map that are held together with other limits.

use std::fmt;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::{Keyed, LOOKS, Shard};
use crate::algorithm::Algorithm;
use crate::decision::{Answer, Decision, Standing};
use crate::key::Key;
use crate::limit::{self, Act, Held, Limit};
use crate::limiter::Limiter;
use crate::lock::lock;
use crate::moment::Moment;
use crate::units::Units;

/// Limit of one key of a map.
#[derive(Clone, Copy)]
pub struct AtKey<'a, A: Algorithm> {
    pub(super) map: &'a Keyed<A>,
    pub(super) key: Key,
}

impl<A: Algorithm> fmt::Debug for AtKey<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtKey").field(&self.key).finish()
    }
}

impl<A> Limit for AtKey<'_, A>
where
    A: Algorithm<State: Send> + Clone + Send,
{
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.map.take(self.key, cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.map.peek(self.key, cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.map.standing(self.key, now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.map.charge(self.key, cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.map.refund(self.key, cost, now);
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self.map).addr()
    }

    fn key(&self) -> Key {
        self.key
    }

    fn hold(&self, keys: &[Key], now: Moment) -> Box<dyn Held + '_> {
        Box::new(HeldKeys::new(self.map, keys, now))
    }
}

/// Keys that one thread uses, with their shards locked.
struct HeldKeys<'a, A: Algorithm + Clone> {
    map: &'a Keyed<A>,
    shards: Vec<(usize, MutexGuard<'a, Shard<A>>)>,
    /// Keys with room, and their states, which are out of the shard meanwhile.
    keys: Vec<(Key, A::State)>,
    /// The shared limit, if a key has no room.
    overflow: Option<MutexGuard<'a, Limiter<A>>>,
    clock: Moment,
}

impl<'a, A: Algorithm + Clone> HeldKeys<'a, A> {
    fn new(map: &'a Keyed<A>, keys: &[Key], clock: Moment) -> Self {
        let mut numbers: Vec<usize> = keys.iter().map(|key| Keyed::<A>::number(*key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let shards = numbers
            .into_iter()
            .map(|number| (number, lock(map.shard(number))));
        let mut held = Self {
            map,
            shards: shards.collect(),
            keys: Vec::with_capacity(keys.len()),
            overflow: None,
            clock,
        };
        for key in keys {
            held.add(*key);
        }
        held
    }

    /// Takes a key's state out of its shard.
    fn add(&mut self, key: Key) {
        let (map, clock) = (self.map, self.clock);
        if self.keys.iter().any(|it| it.0 == key) {
            return;
        }
        let Some(shard) = self.shard(key) else {
            return;
        };
        let now = shard.pass(clock);
        map.note(shard.look(LOOKS, now));
        let state = match shard.find(key) {
            Some(place) => shard.take_out(place),
            None => map
                .make_room(shard, clock)
                .then(|| shard.limits.now.fresh()),
        };
        match state {
            Some(state) => self.keys.push((key, state)),
            None => {
                map.overflowed.fetch_add(1, Ordering::Relaxed);
                self.overflow.get_or_insert_with(|| lock(&map.overflow));
            }
        }
    }

    fn shard(&mut self, key: Key) -> Option<&mut Shard<A>> {
        let number = Keyed::<A>::number(key);
        let place = self.shards.binary_search_by_key(&number, |it| it.0);
        self.shards.get_mut(place.ok()?).map(|it| &mut *it.1)
    }
}

impl<A: Algorithm + Clone> Held for HeldKeys<'_, A> {
    fn act(&mut self, act: Act, key: Key, cost: Units) -> Answer {
        let act_on =
            |limit: &A, state: &mut A::State, now| limit::act(limit, state, act, cost, now);
        let number = Keyed::<A>::number(key);
        let shard = self.shards.iter_mut().find(|it| it.0 == number);
        let held = self.keys.iter_mut().find(|it| it.0 == key);
        if let (Some((_, state)), Some((_, shard))) = (held, shard) {
            let now = shard.pass(self.clock);
            return act_on(&shard.limits.now, state, now);
        }
        let map = self.map;
        let overflow = self.overflow.get_or_insert_with(|| lock(&map.overflow));
        overflow.update(self.clock, act_on)
    }
}

/// States go back to their shards.
impl<A: Algorithm + Clone> Drop for HeldKeys<'_, A> {
    fn drop(&mut self) {
        let clock = self.clock;
        for (key, state) in std::mem::take(&mut self.keys) {
            let map = self.map;
            let Some(shard) = self.shard(key) else {
                continue;
            };
            let now = shard.pass(clock);
            if shard.limits.now.is_fresh(&state, now) {
                map.keys.fetch_sub(1, Ordering::Relaxed);
            } else {
                shard.insert(key, state);
            }
        }
    }
}
