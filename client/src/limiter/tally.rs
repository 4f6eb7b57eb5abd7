//! Sums that many threads add to, and one takes away.
//!
//! Each thread adds to a cell of its own, or one that it shares with few, so that threads do not wait for each other's
//! cache lines. The first threads *own* their cells: nobody else writes there, so they add without an exchange between
//! processors, which would cost as much as all else that a limiter does. The sum of an owner only grows, and who takes
//! remembers how much of it was taken. A thread that ends leaves its cell to the next one, through a lock, so that the
//! next one goes on from its last sum.
//!
//! All others add in single steps on one word, whose changes are in one order for all, whatever is before or after them
//! (`Relaxed`), and who takes empties it. So every amount is taken away exactly once. Who takes may miss what is being
//! added at that moment. It is there the next time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A sum.
#[derive(Debug, Default)]
pub struct Tally {
    cells: [Part; CELLS],
}

/// Cells. More threads than these share some.
const CELLS: usize = 8;

/// Whole numbers of such parts, below 2³², are added in one step. Others are floating-point numbers.
const PARTS: f64 = 1_024.0;

/// A part of the sum. Alone in what processors exchange.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part {
    /// All that the owner ever added, in parts. Only the owner writes it. It may begin again at 0.
    owners: AtomicU64,
    /// How much of that was taken. Only who takes writes it.
    taken: AtomicU64,
    /// What others added, in parts.
    others: AtomicU64,
    /// Amounts that are no small number of parts, as the bits of a floating-point number, which begin as those of 0.
    rest: AtomicU64,
}

/// Which cell a thread adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mine {
    /// It has none yet.
    None,
    /// No other thread has this one.
    Owned(usize),
    /// Somebody may own it.
    Shared(usize),
}

/// Cells without an owner, and how many threads came when there were none.
static FREE: Mutex<Free> = Mutex::new(Free {
    cells: [true; CELLS],
    came: 0,
});

struct Free {
    cells: [bool; CELLS],
    came: usize,
}

thread_local! {
    /// Nothing is to be dropped of it, so that it can be looked at until the thread is over.
    static MINE: Cell<Mine> = const { Cell::new(Mine::None) };
    /// Gives the cell back when the thread ends.
    static OWNED: Cell<Option<Owned>> = const { Cell::new(None) };
}

/// The cell that a thread owns, until this is dropped.
struct Owned(usize);

impl Tally {
    /// So much more.
    #[inline]
    pub fn add(&self, amount: f64) {
        if let (Mine::Owned(cell), Some(parts)) = (MINE.get(), small(amount))
            && let Some(part) = self.cells.get(cell)
        {
            // Nobody else writes it, so nothing is lost between these.
            let sum = part.owners.load(Ordering::Relaxed);
            let sum = sum.wrapping_add(parts.into());
            part.owners.store(sum, Ordering::Relaxed);
        } else {
            self.add_shared(amount);
        }
    }

    #[inline(never)]
    fn add_shared(&self, amount: f64) {
        let cell = match MINE.get() {
            Mine::None => {
                first();
                return self.add(amount);
            }
            Mine::Owned(cell) | Mine::Shared(cell) => cell,
        };
        let Some(part) = self.cells.get(cell) else {
            return;
        };
        match small(amount) {
            Some(parts) => {
                part.others.fetch_add(parts.into(), Ordering::Relaxed);
            }
            None => part.add_rest(amount),
        }
    }

    /// What was added since the last time. For one thread at a time.
    pub fn take(&self) -> f64 {
        let cells = self.cells.iter();
        cells.map(Part::take).sum()
    }
}

/// That in parts, if it is a small whole number of them.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "if it is another number then, it is none of those"
)]
fn small(amount: f64) -> Option<u32> {
    let parts = amount * PARTS;
    let whole = parts as u32;
    (f64::from(whole) == parts).then_some(whole)
}

impl Part {
    fn add_rest(&self, amount: f64) {
        let more = |sum| Some((f64::from_bits(sum) + amount).to_bits());
        let _former = self
            .rest
            .try_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    fn take(&self) -> f64 {
        let owners = self.owners.load(Ordering::Relaxed);
        let taken = self.taken.swap(owners, Ordering::Relaxed);
        let others = self.others.swap(0, Ordering::Relaxed);
        let nothing = 0.0_f64.to_bits();
        let rest = self.rest.swap(nothing, Ordering::Relaxed);
        let parts = owners.wrapping_sub(taken) as f64 + others as f64;
        parts / PARTS + f64::from_bits(rest)
    }
}

#[cold]
fn first() {
    let mine = Free::lock(Free::assign);
    if let Mine::Owned(cell) = mine {
        let owned = Owned(cell);
        // A thread that is ending keeps nothing: it gives the cell back at once.
        if OWNED.try_with(|it| it.set(Some(owned))).is_err() {
            return;
        }
    }
    MINE.set(mine);
}

impl Free {
    fn lock<R>(act: impl FnOnce(&mut Self) -> R) -> R {
        // Nothing panics while it is held.
        act(&mut FREE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn assign(&mut self) -> Mine {
        let mut cells = self.cells.iter_mut().enumerate();
        if let Some((cell, is_free)) = cells.find(|(_, is_free)| **is_free) {
            *is_free = false;
            return Mine::Owned(cell);
        }
        self.came = self.came.wrapping_add(1);
        Mine::Shared(self.came % CELLS)
    }

    fn give_back(&mut self, cell: usize) {
        if let Some(is_free) = self.cells.get_mut(cell) {
            debug_assert!(!*is_free, "two threads would have owned it");
            *is_free = true;
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // What the thread still adds while it ends goes where nobody minds.
        MINE.set(Mine::Shared(self.0));
        Free::lock(|free| free.give_back(self.0));
    }
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

    #[test]
    fn a_cell_has_one_owner_at_a_time() {
        let mut free = Free {
            cells: [true; CELLS],
            came: 0,
        };
        for cell in 0..CELLS {
            assert_eq!(free.assign(), Mine::Owned(cell));
        }
        for _ in 0..2 * CELLS {
            assert!(matches!(free.assign(), Mine::Shared(_)));
        }
        free.give_back(3);
        assert_eq!(free.assign(), Mine::Owned(3));
        assert!(matches!(free.assign(), Mine::Shared(_)));
    }

    /// Each owns a cell, or shares one, and leaves it to the next.
    #[test]
    fn nothing_is_lost_when_threads_come_and_go() {
        let tally = Tally::default();
        let mut taken = 0.0;
        for _ in 0..50 {
            thread::scope(|threads| {
                for _ in 0..CELLS + 3 {
                    threads.spawn(|| {
                        for _ in 0..100 {
                            tally.add(1.5);
                        }
                    });
                }
            });
            taken += tally.take();
        }
        assert_eq!(taken, 50.0 * (CELLS + 3) as f64 * 150.0);
    }

    #[test]
    fn amounts_of_all_sizes_are_added() {
        let amounts = [
            0.0,
            1e-9,
            0.1,
            1.5,
            7.0,
            1_048_575.5,
            1_048_576.0,
            4e9,
            1e15,
        ];
        for amount in amounts {
            let tally = Tally::default();
            tally.add(amount);
            assert_eq!(tally.take(), amount);
            assert_eq!(tally.take(), 0.0);
        }
    }
}
