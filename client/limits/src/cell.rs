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

/// State that a thread has read in a cell. It may be a mixture of two states, until [`Cell::decide`] has returned true.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    sequence: u64,
    pub(crate) flow: Flow,
    pub(crate) level: Level,
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

    /// Reads the cell, to decide by it. None if it is closed.
    #[inline(always)]
    pub(crate) fn look(&self) -> Option<Look> {
        let sequence = self.sequence.load(Ordering::Acquire);
        if is_closed(sequence) {
            return None;
        }
        let (flow, level) = self.read();
        // A thread that reads what another one writes sees in `decide` that the number has changed.
        fence(Ordering::Acquire);
        Some(Look {
            sequence,
            flow,
            level,
        })
    }

    /// Ends a decision, with the next level if it changes. False if another thread has written meanwhile: the decision
    /// is void.
    #[inline(always)]
    pub(crate) fn decide(&self, look: &Look, next: Option<Level>) -> bool {
        let Some(level) = next else {
            // The reads of the decision come before the next read of the number.
            fence(Ordering::Acquire);
            return self.sequence.load(Ordering::Relaxed) == look.sequence;
        };
        if !self.try_close(look.sequence) {
            return false;
        }
        self.missing.set(level.missing);
        // A store less is faster.
        if level.at != look.level.at {
            self.at.store(level.at.nanos(), Ordering::Relaxed);
        }
        self.sequence.store(look.sequence + 2, Ordering::Release);
        true
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
        let cell = &self.sequence;
        let result = cell.compare_exchange_weak(sequence, closed, set, fetch);
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
            at: Moment::from_nanos(self.at.load(Ordering::Relaxed)),
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

    /// Another thread writes between two looks of a thread that decides.
    #[test]
    fn no_decision_is_by_a_state_that_is_over() {
        let next = Level::empty(&FLOW, Moment::ORIGIN);
        for next in [Some(next), None] {
            let cell = Cell::new(FLOW, Level::FULL);
            let look = cell.look().unwrap();
            assert_eq!(cell.close(), (FLOW, Level::FULL));
            assert!(cell.look().is_none());
            assert!(!cell.decide(&look, next));
            cell.open(&FLOW, Level::FULL);
            assert!(!cell.decide(&look, next));
            let look = cell.look().unwrap();
            assert!(cell.decide(&look, next));
            assert_eq!(cell.close(), (FLOW, next.unwrap_or(Level::FULL)));
        }
    }
}
