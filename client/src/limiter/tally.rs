//! Sums to which many threads add, and from which one thread takes.
//!
//! Each thread adds to a cell of its own, or to one that it shares with few others, so that threads do not wait for
//! each other's cache lines. The first threads *own* their cells. No other thread writes there, so an owner adds
//! without an exchange between processors, which would cost as much as the rest of a limiter's call. An owner's sum
//! only grows, and the taker remembers how much of it was taken. A thread that ends leaves its cell to the next one,
//! which sees its last sum and continues from that.
//!
//! All other threads add in single atomic steps on one word, whose changes have one order for all threads (`Relaxed`
//! suffices), and the taker empties it. So every amount is taken exactly once. The taker may miss an amount that is
//! being added at that moment; it takes that amount the next time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// A sum of amounts.
#[derive(Debug, Default)]
pub struct Tally {
    cells: [Part; CELLS],
}

/// Number of cells. If there are more threads, some share a cell.
const CELLS: usize = 8;

/// Number of parts of a unit. A whole number of parts below 2³² is added in one step; other amounts are floating-point
/// numbers.
const PARTS: f64 = 1_024.0;

/// A cell, alone in its cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part {
    /// Sum of all amounts that the owner added, in parts. Only the owner writes it. It may wrap to 0.
    owners: AtomicU64,
    /// Part of that sum that was taken. Only the taker writes it.
    taken: AtomicU64,
    /// Sum of the other threads' amounts, in parts.
    others: AtomicU64,
    /// Sum of amounts that are not a small number of parts, as the bits of a floating-point number; it starts with the
    /// bits of 0.
    rest: AtomicU64,
}

/// Cell of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mine {
    /// No cell yet.
    None,
    /// A cell without other threads.
    Owned(usize),
    /// A cell that another thread may own.
    Shared(usize),
}

/// Cells without an owner: a bit for each.
static FREE: AtomicU8 = AtomicU8::new(u8::MAX);

/// Number of threads that found no such cell.
static SHARING: AtomicUsize = AtomicUsize::new(0);

const _: () = assert!(CELLS == u8::BITS as usize);

thread_local! {
    /// The value needs no drop, so it is accessible until the thread ends.
    static MINE: Cell<Mine> = const { Cell::new(Mine::None) };
    /// Gives the cell back when the thread ends.
    static OWNED: Cell<Option<Owned>> = const { Cell::new(None) };
}

/// A cell that a thread owns, until this is dropped.
struct Owned(usize);

impl Tally {
    /// Adds an amount.
    #[inline]
    pub fn add(&self, amount: f64) {
        if let (Mine::Owned(cell), Some(parts)) = (MINE.get(), small(amount))
            && let Some(part) = self.cells.get(cell)
        {
            // No other thread writes the cell, so nothing is lost between the load and the store.
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

    /// Returns the sum since the last call, and empties it. Only one thread may call it at a time.
    pub fn take(&self) -> f64 {
        let cells = self.cells.iter();
        cells.map(Part::take).sum()
    }
}

/// Converts an amount to parts, if it is a small whole number of them.
#[inline]
fn small(amount: f64) -> Option<u32> {
    let parts = amount * PARTS;
    // If it is another number then, it is none of those.
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
    let mine = assign(&FREE);
    if let Mine::Owned(cell) = mine {
        let owned = Owned(cell);
        // A thread that is ending keeps no cell: it gives the cell back at once.
        if OWNED.try_with(|it| it.set(Some(owned))).is_err() {
            return;
        }
    }
    MINE.set(mine);
}

/// Takes a free cell, or shares one. The next owner of a cell continues the sum of the former one, and so sees all of it.
fn assign(free: &AtomicU8) -> Mine {
    let without_first = |free: u8| (free > 0).then(|| free & (free - 1));
    match free.try_update(Ordering::AcqRel, Ordering::Acquire, without_first) {
        Ok(free) => Mine::Owned(free.trailing_zeros() as usize),
        Err(_) => Mine::Shared(SHARING.fetch_add(1, Ordering::Relaxed) % CELLS),
    }
}

fn give_back(free: &AtomicU8, cell: usize) {
    let before = free.fetch_or(1 << cell, Ordering::AcqRel);
    debug_assert!(before & 1 << cell == 0, "two threads would have owned it");
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Amounts that the thread still adds while it ends go to the shared sum.
        MINE.set(Mine::Shared(self.0));
        give_back(&FREE, self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// More threads than cells add, while one thread takes all the time.
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
        let free = AtomicU8::new(u8::MAX);
        for cell in 0..CELLS {
            assert_eq!(assign(&free), Mine::Owned(cell));
        }
        for _ in 0..2 * CELLS {
            assert!(matches!(assign(&free), Mine::Shared(_)));
        }
        give_back(&free, 3);
        assert_eq!(assign(&free), Mine::Owned(3));
        assert!(matches!(assign(&free), Mine::Shared(_)));
    }

    /// Each thread owns or shares a cell, and leaves it to the next.
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
