//! A limit of permits at once, counted while they are out and not by time. For many threads, without a lock.
//!
//! A limit that shrinks below the permits out takes none away; it takes effect as permits come back. It may change by
//! itself at a moment, so a take reads the time.
//!
//! # One word
//!
//! The lower 50 bits of a word are the number of permits out, the upper 14 are a tag. A thread that sets a limit holds
//! a lock. It makes the tag odd, writes the limit, and makes the tag even again. A thread that takes reads the word,
//! then the limit, and replaces the word if it is unchanged. So no thread takes by a limit that had already been
//! replaced when the call that changed it returned, nor by half of one. (The exception: limits changed 8,192 times in
//! between, and the number of permits is the same.) A thread that finds an odd tag, or a limit that has ended, uses the
//! lock.
//!
//! A thread that waits for permits announces that and then looks at the word; a thread that gives back changes the word
//! and then looks for waiting threads. At least one of them sees the other. For that, accesses to the word have one
//! order for all threads (`SeqCst`), and so must accesses to the announcement.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::time::Duration;

use crate::lock::lock;
use crate::moment::Moment;

/// Number of permits out, and its limit.
#[derive(Debug)]
pub struct InFlight {
    word: AtomicU64,
    /// Largest number of permits. Written, with `ends`, while the tag is odd, by the holder of the lock.
    limit: AtomicU64,
    /// End of that limit for readers of a fast clock, in nanoseconds since the origin.
    ends: AtomicI64,
    /// Largest delay of a fast clock, in nanoseconds.
    behind: u64,
    then: Mutex<Option<(Moment, u64)>>,
}

/// Values that a thread has read, perhaps of several limits.
#[derive(Clone, Copy)]
struct Seen {
    word: u64,
    limit: u64,
    ends: i64,
}

/// Error: another thread has changed the word.
#[derive(Debug)]
struct Changed;

const COUNT_BITS: u32 = 50;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// One step of the tag: its lowest bit means that the limit is being written.
const TAG: u64 = 1 << COUNT_BITS;

impl InFlight {
    /// Largest number of permits out, whatever the limit.
    pub const MOST: u64 = COUNT;

    /// Creates a limit of 0. `behind` is the largest delay of a clock for [`InFlight::take_at_once`].
    pub fn new(behind: Duration) -> Self {
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            ends: AtomicI64::new(i64::MAX),
            behind: u64::try_from(behind.as_nanos()).unwrap_or(u64::MAX),
            then: Mutex::new(None),
        }
    }

    /// Sets the limit (`None` is no limit), and the limit that follows by itself at a moment.
    pub fn set_limit(&self, limit: Option<u64>, then: Option<(Moment, Option<u64>)>) {
        let mut kept = lock(&self.then);
        *kept = then.map(|(turn, limit)| (turn, most(limit)));
        self.write(most(limit), *kept);
    }

    /// Takes `permits` if the limit admits them. Returns whether they were taken.
    #[inline]
    pub fn take(&self, permits: u64, now: Moment) -> bool {
        let taken = self.take_at_once(permits, now);
        taken.unwrap_or_else(|| self.take_with_lock(permits, now))
    }

    /// Takes `permits` if the limit admits them. None: only the lock can decide, with a better clock; or the limit is
    /// 0.
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
        // A thread that reads a limit of a later tag sees in `replace` that the word has changed.
        fence(Ordering::Acquire);
        seen
    }

    /// Takes `permits` by the values that were read, if they are within the limit, and if the word is unchanged.
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

    /// Gives back `permits`.
    #[inline]
    pub fn release(&self, permits: u64) {
        let before = self.word.fetch_sub(permits, Ordering::SeqCst) & COUNT;
        debug_assert!(permits <= before, "more given back than was taken");
        if permits > before {
            self.word.fetch_add(permits - before, Ordering::SeqCst);
        }
    }

    /// Returns the number of permits out.
    #[inline]
    pub fn get(&self) -> u64 {
        self.word.load(Ordering::SeqCst) & COUNT
    }

    /// Returns the time at which the limit changes by itself, unless that has already happened.
    pub fn turn(&self) -> Option<Moment> {
        lock(&self.then).map(|(turn, _)| turn)
    }

    #[cold]
    fn take_with_lock(&self, permits: u64, now: Moment) -> bool {
        // The lock keeps other threads from setting a limit.
        let mut then = lock(&self.then);
        if let Some((_, limit)) = then.take_if(|(turn, _)| *turn <= now) {
            self.write(limit, None);
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let take = |word: u64| {
            let wanted = (word & COUNT).saturating_add(permits);
            (wanted <= limit).then_some((word & !COUNT) | wanted)
        };
        let all = Ordering::SeqCst;
        self.word.try_update(all, all, take).is_ok()
    }

    /// Writes the limit; the caller holds the lock.
    fn write(&self, limit: u64, then: Option<(Moment, u64)>) {
        self.word.fetch_add(TAG, Ordering::SeqCst);
        let is_odd = self.word.load(Ordering::Relaxed) & TAG != 0;
        debug_assert!(is_odd, "it would be taken by half a limit");
        // No thread sees the new limit together with the previous word.
        fence(Ordering::Release);
        let ends = then.map_or(i64::MAX, |(turn, _)| {
            turn.nanos().saturating_sub_unsigned(self.behind)
        });
        self.limit.store(limit, Ordering::Relaxed);
        self.ends.store(ends, Ordering::Relaxed);
        self.word.fetch_add(TAG, Ordering::SeqCst);
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

    /// Threads take and give back all the time, and count the permits. Limits shrink and grow meanwhile: after a limit
    /// is set, no thread takes above it.
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
                    // From some moment on at most one permit is out, because a second one is never admitted.
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
