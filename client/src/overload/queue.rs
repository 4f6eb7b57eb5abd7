//! Waiting requests: in the order of rank and arrival, with their predicted cost, and the time at which each gives up.
//!
//! Each rank has a list, and a heap has the times. Two trees would be simpler, but a decision would take twice as long.
//! A request that has gone leaves its number in both; such numbers are dropped at the ends of a list, or when they are
//! the greater part.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use doorward_limits::Moment;
use slab::Slab;

use crate::overload::criticality::{Criticality, RANKS, Rank, TIERS};

/// Number of entries without a request that are never too many.
const STALE: usize = 64;

/// Place of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    rank: Rank,
    number: Number,
}

/// Number of a request: no two have the same arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    arrival: u64,
    slot: usize,
}

/// A waiting request. `waiter`: the thing to wake.
#[derive(Debug)]
pub struct Waiting<W> {
    /// The thing to wake.
    pub waiter: W,
    /// Hash of the name of the operation.
    pub operation: u64,
    /// Predicted cost, in thousandths of a unit.
    pub cost: u64,
    /// Time at which it gives up.
    pub leaves_at: Moment,
    /// Time after which the answer is useless.
    pub deadline: Option<Moment>,
}

/// The queue.
#[derive(Debug)]
pub struct Queue<W> {
    waiting: Slab<(u64, Waiting<W>)>,
    ranks: Vec<List>,
    /// A bit for each rank with a waiting request.
    occupied: u128,
    leaving: BinaryHeap<Reverse<(Moment, Number, Rank)>>,
    /// Sum of all costs.
    cost: u64,
    lens: [usize; TIERS],
    /// When each tier began to have a waiting request without a pause.
    busy_since: [Option<Moment>; TIERS],
}

/// Requests of one rank, the oldest first.
#[derive(Clone, Debug, Default)]
struct List {
    numbers: VecDeque<Number>,
    /// Number and cost of those that still wait.
    len: usize,
    cost: u64,
}

// A bit for each rank.
const _: () = assert!(RANKS <= u128::BITS as usize);

impl Key {
    /// Returns the tier.
    pub fn tier(self) -> Criticality {
        self.rank.tier()
    }
}

impl<W> Queue<W> {
    /// Returns the number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of waiting requests of a tier.
    pub fn len_of(&self, tier: Criticality) -> usize {
        self.lens.get(tier as usize).copied().unwrap_or_default()
    }

    /// Returns the predicted cost of all waiting requests, in thousandths of a unit.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the predicted cost of those that a new request of a rank waits for.
    pub fn cost_before(&self, rank: Rank) -> u64 {
        let mut left = self.occupied & (u128::MAX >> (u128::BITS as usize - 1 - rank.place()));
        let mut cost = 0;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            cost += self.ranks.get(place).map_or(0, |list| list.cost);
            left &= left - 1;
        }
        cost
    }

    /// Returns since when requests of a tier wait without a pause.
    pub fn busy_since(&self, tier: Criticality) -> Option<Moment> {
        self.busy_since.get(tier as usize).copied().flatten()
    }

    /// Adds a request, and returns its place. `arrival`: a number that grows.
    pub fn push(&mut self, rank: Rank, arrival: u64, waiting: Waiting<W>, now: Moment) -> Key {
        let (cost, leaves_at) = (waiting.cost, waiting.leaves_at);
        let slot = self.waiting.insert((arrival, waiting));
        let number = Number { arrival, slot };
        self.cost += cost;
        self.occupied |= 1 << rank.place();
        if let Some(list) = self.ranks.get_mut(rank.place()) {
            list.numbers.push_back(number);
            list.len += 1;
            list.cost += cost;
        }
        let tier = rank.tier() as usize;
        if let (Some(len), Some(since)) = (self.lens.get_mut(tier), self.busy_since.get_mut(tier)) {
            *len += 1;
            since.get_or_insert(now);
        }
        self.leaving.push(Reverse((leaves_at, number, rank)));
        Key { rank, number }
    }

    /// Removes a request, if it waits.
    pub fn remove(&mut self, key: Key) -> Option<Waiting<W>> {
        if !is_waiting(&self.waiting, key.number) {
            return None;
        }
        let (_, waiting) = self.waiting.try_remove(key.number.slot)?;
        let cost = waiting.cost;
        self.cost -= cost;
        if let Some(list) = self.ranks.get_mut(key.rank.place()) {
            list.len -= 1;
            list.cost -= cost;
            if list.len == 0 {
                list.numbers.clear();
                self.occupied &= !(1 << key.rank.place());
            } else if list.numbers.len() > 2 * list.len + STALE {
                let waiting = &self.waiting;
                list.numbers.retain(|number| is_waiting(waiting, *number));
            }
        }
        let tier = key.tier() as usize;
        if let (Some(len), Some(since)) = (self.lens.get_mut(tier), self.busy_since.get_mut(tier)) {
            *len -= 1;
            *since = since.filter(|_| *len > 0);
        }
        if self.leaving.len() > 2 * self.waiting.len() + STALE {
            let waiting = &self.waiting;
            self.leaving
                .retain(|Reverse((_, number, _))| is_waiting(waiting, *number));
        }
        Some(waiting)
    }

    /// Returns the request that is served next, and its operation.
    pub fn first(&mut self) -> Option<(Key, u64)> {
        let place = self.occupied.trailing_zeros() as usize;
        let (list, waiting) = (self.ranks.get_mut(place)?, &self.waiting);
        let is_gone = |number: &mut Number| !is_waiting(waiting, *number);
        while list.numbers.pop_front_if(is_gone).is_some() {}
        let number = *list.numbers.front()?;
        let (key, waiting) = self.entry(place, number)?;
        Some((key, waiting.operation))
    }

    /// Returns the newest request of the last rank, if that is after a rank.
    pub fn last_after(&mut self, rank: Rank) -> Option<(Key, &Waiting<W>)> {
        let place = (u128::BITS as usize - 1).checked_sub(self.occupied.leading_zeros() as usize)?;
        if place <= rank.place() {
            return None;
        }
        let (list, waiting) = (self.ranks.get_mut(place)?, &self.waiting);
        let is_gone = |number: &mut Number| !is_waiting(waiting, *number);
        while list.numbers.pop_back_if(is_gone).is_some() {}
        let number = *list.numbers.back()?;
        self.entry(place, number)
    }

    fn entry(&self, place: usize, number: Number) -> Option<(Key, &Waiting<W>)> {
        let (_, waiting) = self.waiting.get(number.slot)?;
        let rank = Rank::at(place);
        Some((Key { rank, number }, waiting))
    }

    /// Returns the request that gives up next, and when.
    pub fn next_leaving(&mut self) -> Option<(Moment, Key)> {
        while let Some(Reverse((at, number, rank))) = self.leaving.peek().copied() {
            if is_waiting(&self.waiting, number) {
                return Some((at, Key { rank, number }));
            }
            self.leaving.pop();
        }
        None
    }
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: Slab::new(),
            ranks: vec![List::default(); RANKS],
            occupied: 0,
            leaving: BinaryHeap::new(),
            cost: 0,
            lens: [0; TIERS],
            busy_since: [None; TIERS],
        }
    }
}

fn is_waiting<W>(waiting: &Slab<(u64, Waiting<W>)>, number: Number) -> bool {
    waiting
        .get(number.slot)
        .is_some_and(|(arrival, _)| *arrival == number.arrival)
}
