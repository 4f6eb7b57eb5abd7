//! Clients with a stream, in the order in which the division moved away from their leases.
//!
//! A push costs a message, so the server looks for the clients whose lease differs most from their share, without a
//! scan. Each client has a [`Position`]: the level of the division at which its lease would be its share. If the level
//! falls, the clients above it are to shrink, the highest first. If it rises, the clients that are short are to grow,
//! the lowest first. A look at a client moves it to the present level, so each look makes progress.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeInclusive};

use crate::amount::Amount;
use crate::division::Levels;
use crate::holders::Slot;
use crate::rounding::SHORTFALL;

/// Smallest rise of the level that is pushed. Smaller ones wait for the client's next request, so that each newcomer
/// does not cause a push to all clients.
const RISE_MIN: f64 = 1.0 / 512.0;

/// Place of a client in its band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Priority, or 0 if the algorithm has no bands.
    pub(crate) band: i64,
    /// Whether its lease is smaller than its wants.
    pub(crate) is_short: bool,
    /// Level at which its lease is its share.
    pub(crate) level: Amount,
}

/// The clients with a stream. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Streaming {
    positions: BTreeMap<Slot, Position>,
    order: BTreeSet<(Position, Slot)>,
    /// Clients whose places are by a former algorithm, from there on.
    misplaced: Option<Bound<Slot>>,
}

impl Streaming {
    /// Places a client, or removes it.
    pub(crate) fn place(&mut self, slot: Slot, position: Option<Position>) {
        let before = match position {
            Some(position) => self.positions.insert(slot, position),
            None => self.positions.remove(&slot),
        };
        if before == position {
            return;
        }
        before.map(|before| self.order.remove(&(before, slot)));
        position.map(|position| self.order.insert((position, slot)));
        debug_assert_eq!(self.positions.len(), self.order.len());
    }

    /// Notes that the algorithm has changed.
    pub(crate) fn misplace_all(&mut self) {
        self.misplaced = Some(Bound::Unbounded);
    }

    /// Returns the next client that is to be placed by the present algorithm.
    pub(crate) fn next_misplaced(&mut self) -> Option<Slot> {
        let from = self.misplaced.take()?;
        let (slot, _) = self.positions.range((from, Bound::Unbounded)).next()?;
        self.misplaced = Some(Bound::Excluded(*slot));
        Some(*slot)
    }

    /// Returns the client to look at next: first the one that is farthest above its level, then the one that is
    /// farthest below. `shrinks`: others wait for capacity, as one far below its level does. `growths`: capacity is free.
    /// O(bands · log n).
    pub(crate) fn next(
        &self,
        levels: impl Fn(i64) -> Levels,
        shrinks: bool,
        growths: bool,
    ) -> Option<Slot> {
        let mut highest: Option<(f64, Slot)> = None;
        let mut lowest: Option<(f64, Slot)> = None;
        let mut band = self.order.first().map(|(position, _)| position.band);
        while let Some(priority) = band {
            let levels = levels(priority);
            for (is_short, level) in [(false, levels.satisfied), (true, levels.short)] {
                let all = Self::range(priority, is_short);
                let Some((position, slot)) = self.order.range(all).next_back() else {
                    continue;
                };
                let ratio = position.level.get() / level.max(f64::MIN_POSITIVE);
                let is_above = position.level.get() > level * (1.0 + SHORTFALL);
                if is_above && highest.is_none_or(|(most, _)| ratio > most) {
                    highest = Some((ratio, *slot));
                }
            }
            if let Some((position, slot)) = self.order.range(Self::range(priority, true)).next() {
                let ratio = position.level.get() / levels.short;
                let is_below = position.level.get() < levels.short * (1.0 - RISE_MIN);
                if is_below && lowest.is_none_or(|(least, _)| ratio < least) {
                    lowest = Some((ratio, *slot));
                }
            }
            let last = *Self::range(priority, true).end();
            let later = (Bound::Excluded(last), Bound::Unbounded);
            band = self.order.range(later).next().map(|(it, _)| it.band);
        }
        let shrinks = shrinks || !growths && lowest.is_some();
        let (shrinks, growths) = (highest.filter(|_| shrinks), lowest.filter(|_| growths));
        shrinks.or(growths).map(|(_, slot)| slot)
    }

    fn range(band: i64, is_short: bool) -> RangeInclusive<(Position, Slot)> {
        let position = |level| Position {
            band,
            is_short,
            level,
        };
        (position(Amount::ZERO), Slot::FIRST)..=(position(Amount::MAX), Slot::LAST)
    }
}
