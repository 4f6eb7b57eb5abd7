//! So many at once: what is counted while it lasts, not by time. For many threads, without a lock.
//!
//! A limit that shrinks below what is out takes nothing away: it takes effect as permits come back. It may change by
//! itself at a moment; who takes looks at the time for that.
//!
//! # One word
//!
//! The lower 50 bits of a word say how many permits are out, the upper 14 are a tag. Who sets a limit, and there is one
//! at a time, makes the tag odd, writes the limit, and makes the tag even again. Who takes reads the word, then the
//! limit, and replaces the word if it still is the same. So nobody takes by a limit that is over once the call that
//! changed it has returned, nor by half of one. (But if limits changed 8,192 times meanwhile and as many permits were
//! out as before.) Who finds an odd tag, or a limit that is over, asks for the lock.
//!
//! Whoever waits for permits says so and then looks at the word; whoever gives back changes the word and then looks
//! whether anybody waits. One of both sees the other: for that, what is read and written of the word is in one order
//! for all (`SeqCst`), as it must be of what says that somebody waits.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::moment::Moment;

/// Permits that are out, and how many may be.
#[derive(Debug)]
pub struct InFlight {
    word: AtomicU64,
    /// How many may be out. Written, with `ends`, while the tag is odd, by who has the lock.
    limit: AtomicU64,
    /// When that is over for who reads a fast clock, in nanoseconds since the origin.
    ends: AtomicI64,
    /// By so many nanoseconds may a fast clock be behind.
    behind: u64,
    then: Mutex<Option<(Moment, u64)>>,
}

/// What a thread has read, which may be of several limits.
#[derive(Clone, Copy)]
struct Seen {
    word: u64,
    limit: u64,
    ends: i64,
}

/// The word is another one than it was.
#[derive(Debug)]
struct Changed;

const COUNT_BITS: u32 = 50;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// One more in the tag: its lowest bit says that the limit is being written.
const TAG: u64 = 1 << COUNT_BITS;

impl InFlight {
    /// The most that are ever out, whatever the limit.
    pub const MOST: u64 = COUNT;

    /// None are out, and none may be. A clock by which is taken at once may be so much behind.
    pub const fn new(behind: Duration) -> Self {
        let nanos = behind.as_nanos();
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            ends: AtomicI64::new(i64::MAX),
            behind: if nanos < u64::MAX as u128 {
                nanos as u64
            } else {
                u64::MAX
            },
            then: Mutex::new(None),
        }
    }

    /// So many may be out from now on, none being no limit; and from a moment on so many, by itself.
    pub fn set_limit(&self, limit: Option<u64>, then: Option<(Moment, Option<u64>)>) {
        let mut kept = self.lock();
        *kept = then.map(|(turn, limit)| (turn, most(limit)));
        self.write(most(limit), *kept);
    }

    /// Takes so many if no more than the limit are out then. Returns whether they were taken.
    #[inline]
    pub fn take(&self, permits: u64, now: Moment) -> bool {
        match self.take_at_once(permits, now) {
            Some(taken) => taken,
            None => self.take_with_lock(permits, now),
        }
    }

    /// Takes so many if no more than the limit are out then. None: that is not to be said without the lock, for which a
    /// better clock is to be read; or none may be out at all.
    #[inline]
    pub fn take_at_once(&self, permits: u64, now: Moment) -> Option<bool> {
        loop {
            let seen = self.read();
            if seen.word & TAG != 0 || now.nanos() >= seen.ends || seen.limit == 0 {
                return None;
            }
            if let Ok(taken) = self.replace(seen, permits) {
                return Some(taken);
            }
        }
    }

    #[inline]
    fn read(&self) -> Seen {
        let word = self.word.load(Ordering::SeqCst);
        let seen = Seen {
            word,
            limit: self.limit.load(Ordering::Relaxed),
            ends: self.ends.load(Ordering::Relaxed),
        };
        // Who reads a limit of a later tag sees in `replace` that the word has changed.
        fence(Ordering::Acquire);
        seen
    }

    /// Takes so many by what was seen, if they are within its limit, unless the word is another one by now.
    #[inline]
    fn replace(&self, seen: Seen, permits: u64) -> Result<bool, Changed> {
        let wanted = (seen.word & COUNT).saturating_add(permits);
        if wanted > seen.limit {
            let word = self.word.load(Ordering::SeqCst);
            let is_same_limit = word & !COUNT == seen.word & !COUNT;
            return is_same_limit.then_some(false).ok_or(Changed);
        }
        let next = (seen.word & !COUNT) | wanted;
        let (all, read) = (Ordering::SeqCst, Ordering::Relaxed);
        let replaced = self.word.compare_exchange_weak(seen.word, next, all, read);
        replaced.map(|_| true).map_err(|_| Changed)
    }

    /// Gives back so many that were taken.
    #[inline]
    pub fn release(&self, permits: u64) {
        let before = self.word.fetch_sub(permits, Ordering::SeqCst) & COUNT;
        debug_assert!(permits <= before, "more given back than was taken");
        if permits > before {
            self.word.fetch_add(permits - before, Ordering::SeqCst);
        }
    }

    /// How many are out.
    #[inline]
    pub fn get(&self) -> u64 {
        self.word.load(Ordering::SeqCst) & COUNT
    }

    /// When the limit changes by itself, if that is known and was not seen to be over.
    pub fn turn(&self) -> Option<Moment> {
        self.lock().map(|(turn, _)| turn)
    }

    #[cold]
    fn take_with_lock(&self, permits: u64, now: Moment) -> bool {
        // Nobody else sets a limit.
        let mut then = self.lock();
        if let Some((_, limit)) = then.take_if(|(turn, _)| *turn <= now) {
            self.write(limit, None);
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let take = |word: u64| {
            let wanted = (word & COUNT).saturating_add(permits);
            (wanted <= limit).then_some((word & !COUNT) | wanted)
        };
        let taken = self
            .word
            .try_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.is_ok()
    }

    /// For who has the lock.
    fn write(&self, limit: u64, then: Option<(Moment, u64)>) {
        self.word.fetch_add(TAG, Ordering::SeqCst);
        let is_odd = self.word.load(Ordering::Relaxed) & TAG != 0;
        debug_assert!(is_odd, "it would be taken by half a limit");
        // Nobody sees the limit together with the former word.
        fence(Ordering::Release);
        let ends = then.map_or(i64::MAX, |(turn, _)| {
            turn.nanos().saturating_sub_unsigned(self.behind)
        });
        self.limit.store(limit, Ordering::Relaxed);
        self.ends.store(ends, Ordering::Relaxed);
        self.word.fetch_add(TAG, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Moment, u64)>> {
        self.then.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn most(limit: Option<u64>) -> u64 {
    limit.map_or(InFlight::MOST, |limit| limit.min(InFlight::MOST))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    const NOW: Moment = Moment::ORIGIN;

    fn limit(limit: u64) -> InFlight {
        let out = InFlight::new(Duration::ZERO);
        out.set_limit(Some(limit), None);
        out
    }

    #[test]
    fn a_limit_that_shrinks_takes_effect_as_permits_come_back() {
        let out = limit(3);
        assert!(out.take(3, NOW));
        assert!(!out.take(1, NOW));
        out.set_limit(Some(2), None);
        out.release(1);
        assert!(!out.take(1, NOW));
        out.release(1);
        assert!(out.take(1, NOW));
        out.set_limit(None, None);
        assert!(out.take(InFlight::MOST - 2, NOW));
        assert!(!out.take(1, NOW), "the most that can be counted");
        assert_eq!(out.get(), InFlight::MOST);
    }

    #[test]
    fn the_end_of_a_limit_is_obeyed_to_the_moment_and_by_a_fast_clock_before_it() {
        let out = InFlight::new(Duration::from_nanos(10));
        let at = |nanos| Moment::from_nanos(nanos);
        out.set_limit(Some(2), Some((at(100), Some(1))));
        assert_eq!(out.take_at_once(1, at(89)), Some(true));
        assert_eq!(out.take_at_once(1, at(90)), None);
        assert_eq!(out.turn(), Some(at(100)));
        assert!(out.take(1, at(99)));
        out.release(1);
        assert!(!out.take(1, at(100)), "the limit is 1 from here on");
        assert_eq!(out.turn(), None);
        assert_eq!(out.take_at_once(1, at(101)), Some(false));
    }

    #[test]
    fn nothing_is_taken_or_refused_by_a_limit_that_was_read_before_another_was_set() {
        let out = limit(1);
        let seen = out.read();
        out.set_limit(Some(1), None);
        out.replace(seen, 1).unwrap_err();
        out.replace(seen, 2).unwrap_err();
        assert_eq!(out.get(), 0);
        assert!(out.take(1, NOW));
    }

    #[test]
    fn while_a_limit_is_written_nothing_is_taken_without_the_lock() {
        let out = limit(5);
        out.word.fetch_add(TAG, Ordering::SeqCst);
        assert_eq!(out.take_at_once(1, NOW), None);
        assert!(out.take(1, NOW), "who has the lock writes no limit");
    }

    /// Threads take and give back all the time, and count those who are in. Limits shrink and grow meanwhile: once one
    /// is set, nobody gets in above it.
    #[test]
    fn threads_never_take_more_than_the_limit_that_is_in_force() {
        const LIMITS: [u64; 3] = [3, 1, 2];
        let out = limit(3);
        let (over, all) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Barrier::new(5);
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    start.wait();
                    while !over.load(Ordering::Relaxed) {
                        if out.take(1, NOW) {
                            assert!(
                                all.fetch_add(1, Ordering::SeqCst) < 3,
                                "more than ever may be"
                            );
                            all.fetch_sub(1, Ordering::SeqCst);
                            out.release(1);
                        }
                    }
                });
            }
            start.wait();
            for round in 0..6_000 {
                out.set_limit(Some(LIMITS[round % 3]), None);
                if LIMITS[round % 3] == 1 {
                    // From some moment on at most one is in, as nobody may join two.
                    while out.get() > 1 {
                        thread::yield_now();
                    }
                    for _ in 0..20 {
                        assert!(out.get() <= 1, "taken by a limit that is over");
                    }
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!((out.get(), all.into_inner()), (0, 0));
    }
}
