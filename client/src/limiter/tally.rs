//! Sums that many threads add to, and one takes away.
//!
//! Each thread adds to a cell of its own, or one that it shares with few, so that threads do not wait for each other's
//! cache lines. Every amount is taken away exactly once: it is added and taken in single steps on one word, whose
//! changes are in one order for all, whatever is before or after them (`Relaxed`). Who takes may miss what is being
//! added at that moment. It is there the next time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A sum.
#[derive(Debug, Default)]
pub struct Tally {
    cells: [Part; CELLS],
}

/// Cells. More threads than these share some.
const CELLS: usize = 8;

/// A part of the sum. Alone in what processors exchange.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part {
    /// Small whole amounts: nearly all are, and they are added in one step.
    whole: AtomicU64,
    /// All others, as the bits of a floating-point number, which begin as those of 0.
    rest: AtomicU64,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Which cell is this thread's. Above all cells: it has none yet.
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Tally {
    /// So much more.
    #[inline]
    pub fn add(&self, amount: f64) {
        let Some(part) = self.cells.get(mine()) else {
            return;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "if it is another number then, it is none of those"
        )]
        let whole = amount as u32;
        if f64::from(whole) == amount {
            part.whole.fetch_add(whole.into(), Ordering::Relaxed);
        } else {
            part.add_rest(amount);
        }
    }

    /// What was added since the last time.
    pub fn take(&self) -> f64 {
        let cells = self.cells.iter();
        cells.map(Part::take).sum()
    }
}

impl Part {
    fn add_rest(&self, amount: f64) {
        let more = |sum| Some((f64::from_bits(sum) + amount).to_bits());
        let _former = self
            .rest
            .try_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    fn take(&self) -> f64 {
        let whole = self.whole.swap(0, Ordering::Relaxed);
        let nothing = 0.0_f64.to_bits();
        let rest = self.rest.swap(nothing, Ordering::Relaxed);
        whole as f64 + f64::from_bits(rest)
    }
}

/// Which cell is this thread's.
#[inline]
fn mine() -> usize {
    let mine = MINE.get();
    if mine < CELLS { mine } else { first() }
}

#[cold]
fn first() -> usize {
    let mine = THREADS.fetch_add(1, Ordering::Relaxed) % CELLS;
    MINE.set(mine);
    mine
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// More threads than cells add, while one takes all the time.
    #[test]
    fn every_amount_is_taken_exactly_once() {
        const EACH: u32 = 100_000;
        let (tally, over) = (Tally::default(), AtomicBool::new(false));
        let taken = thread::scope(|threads| {
            let taker = threads.spawn(|| {
                let mut taken = 0.0;
                while !over.load(Ordering::Acquire) {
                    taken += tally.take();
                }
                taken
            });
            let adder = || {
                for amount in 0..EACH {
                    tally.add(f64::from(amount % 4) * 0.5);
                }
            };
            let adders: Vec<_> = (0..CELLS + 3).map(|_| threads.spawn(adder)).collect();
            for adder in adders {
                adder.join().unwrap();
            }
            over.store(true, Ordering::Release);
            taker.join().unwrap()
        });
        let expected = f64::from(EACH) * 0.75 * (CELLS + 3) as f64;
        assert_eq!(taken + tally.take(), expected);
        assert_eq!(tally.take(), 0.0);
    }
}
