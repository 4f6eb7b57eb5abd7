//! Level of a bucket, and its settings, for many threads: a sequence lock.
//!
//! The number of the sequence is odd while a thread writes. A thread reads the number, then the level and the settings,
//! and decides. A refusal is valid if the number is still the same, so refusals write nothing. A thread that takes
//! makes the number odd by one exchange, which fails if another thread has written, then stores the level, and makes
//! the number even. So a decision never mixes the states of two moments, and amounts of any size are exact.
//!
//! The cell is closed for three stores only, unless its owner holds it for longer, behind the owner's lock. A thread
//! that finds it closed for long waits for that lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::{hint, thread};

use crate::flow::Flow;
use crate::level::Level;
use crate::moment::Moment;

/// A level and its settings. They fill exactly the unit that processors exchange.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cell {
    /// Odd while the cell is closed.
    sequence: AtomicU64,
    missing: Wide,
    at: AtomicI64,
    full: Wide,
    drops: AtomicU64,
    part: AtomicU64,
}

/// The lower and the upper half of a number.
#[derive(Debug)]
struct Wide([AtomicU64; 2]);

/// Number of attempts before a thread lets other threads go first.
pub(crate) const ATTEMPTS: usize = 100;

impl Cell {
    /// Creates a cell.
    pub(crate) const fn new(flow: Flow, level: Level) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            missing: Wide::new(level.missing),
            at: AtomicI64::new(level.at.nanos()),
            full: Wide::new(flow.full),
            drops: AtomicU64::new(flow.drops),
            part: AtomicU64::new(flow.part),
        }
    }

    /// Does one operation on the level. It returns whether it changed the level, and the result. None if the operation
    /// returns that, or another thread has written meanwhile: try again, but not for ever.
    ///
    /// It is inlined, and makes the answer where its result is known. Through a call or a value in between, all parts
    /// of the answer would be computed and written, although a caller may use only one.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "constant costs and unused parts of an answer cost nothing then"
    )]
    pub(crate) fn update<R>(
        &self,
        operation: impl FnOnce(&Flow, &mut Level) -> Option<(bool, R)>,
    ) -> Option<R> {
        let sequence = self.sequence.load(Ordering::Acquire);
        if is_closed(sequence) {
            return None;
        }
        let (flow, before) = self.read();
        // A thread that reads what another one writes sees below that the number has changed.
        fence(Ordering::Acquire);
        let mut level = before;
        let (changes, result) = operation(&flow, &mut level)?;
        if !changes {
            let same = self.sequence.load(Ordering::Relaxed) == sequence;
            return same.then_some(result);
        }
        if !self.try_close(sequence) {
            return None;
        }
        self.missing.set(level.missing);
        // A store less is faster.
        if level.at != before.at {
            self.at.store(level.at.nanos(), Ordering::Relaxed);
        }
        self.sequence.store(sequence + 2, Ordering::Release);
        Some(result)
    }

    /// Returns the time of the level, perhaps of another moment.
    pub(crate) fn at(&self) -> Moment {
        Moment::from_nanos(self.at.load(Ordering::Relaxed))
    }

    /// Closes the cell, and returns its settings and level. The caller holds the owner's lock, so the cell is closed by
    /// a thread that takes, if at all.
    pub(crate) fn close(&self) -> (Flow, Level) {
        let mut attempts = 0;
        while !self.try_close(self.sequence.load(Ordering::Relaxed) & !1) {
            attempts += 1;
            if attempts % ATTEMPTS == 0 {
                thread::yield_now();
            }
            hint::spin_loop();
        }
        self.read()
    }

    /// Writes settings and a level, and opens the cell.
    pub(crate) fn open(&self, flow: &Flow, level: Level) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        debug_assert!(is_closed(sequence), "another thread could write as well");
        self.full.set(flow.full);
        self.drops.store(flow.drops, Ordering::Relaxed);
        self.part.store(flow.part, Ordering::Relaxed);
        self.missing.set(level.missing);
        self.at.store(level.at.nanos(), Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Release);
    }

    #[inline]
    fn try_close(&self, sequence: u64) -> bool {
        let (closed, set, fetch) = (sequence + 1, Ordering::Acquire, Ordering::Relaxed);
        let result = self
            .sequence
            .compare_exchange_weak(sequence, closed, set, fetch);
        // No thread sees the next level together with the previous number.
        fence(Ordering::Release);
        result.is_ok()
    }

    #[inline]
    fn read(&self) -> (Flow, Level) {
        let flow = Flow {
            full: self.full.get(),
            drops: self.drops.load(Ordering::Relaxed),
            part: self.part.load(Ordering::Relaxed),
        };
        let level = Level {
            missing: self.missing.get(),
            at: self.at(),
        };
        (flow, level)
    }
}

const fn is_closed(sequence: u64) -> bool {
    sequence & 1 == 1
}

impl Wide {
    const fn new(number: i128) -> Self {
        let number = number.cast_unsigned();
        Self([
            AtomicU64::new(number as u64),
            AtomicU64::new((number >> 64) as u64),
        ])
    }

    #[inline]
    fn get(&self) -> i128 {
        let Self([lower, upper]) = self;
        let (lower, upper) = (lower.load(Ordering::Relaxed), upper.load(Ordering::Relaxed));
        (u128::from(upper) << 64 | u128::from(lower)).cast_signed()
    }

    #[inline]
    fn set(&self, number: i128) {
        let (Self([lower, upper]), number) = (self, number.cast_unsigned());
        lower.store(number as u64, Ordering::Relaxed);
        upper.store((number >> 64) as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow {
        full: 9,
        drops: 1,
        part: 1,
    };

    /// Another thread changes the level between two looks of a thread that decides.
    #[test]
    fn no_decision_is_by_a_state_that_is_over() {
        for changes in [true, false] {
            let cell = Cell::new(FLOW, Level::FULL);
            let answer = cell.update(|_, level| {
                let (flow, other) = cell.close();
                cell.open(&flow, other);
                level.missing = 5;
                Some((changes, ()))
            });
            assert_eq!(answer, None);
            assert_eq!(cell.close(), (FLOW, Level::FULL));
            let closed = cell.update(|_, level| {
                level.missing = 5;
                Some((changes, ()))
            });
            assert_eq!(closed, None);
            cell.open(&FLOW, Level::FULL);
            assert_eq!(cell.update(|_, _| Some((changes, ()))), Some(()));
        }
    }
}
