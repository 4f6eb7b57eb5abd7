//! The processor's counter as a cheap clock, set by a good clock every millisecond.
//!
//! The counter measures only the time since it was last set, which is a millisecond at most. So its errors do not add
//! up: a wrong factor because a program changed the clock's speed during the measurement, or another counter speed
//! after a move to another machine. After a freeze of the process or the machine, the counter is beyond that
//! millisecond, or before it if it started anew, and the code reads the good clock. The counter is behind by less than
//! [`FAST_CLOCK_BEHIND`](crate::limiter::FAST_CLOCK_BEHIND) as long as it runs at half its speed or more.
//!
//! The measurement of its speed takes up to a fifth of a second, once for each process. Until [`Counter::start`] has
//! finished, the code reads the good clock. Where processors have no steady counter, the system's monotonic clock
//! replaces it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use doorward_limits::Moment;

/// A counter, and the time at which it was set.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    ticks: OnceLock<Ticks>,
    /// Nanoseconds to add to the counter for the time. Several threads may set it, each of them correctly. So it is a
    /// single number, and not two numbers that belong together.
    offset: AtomicI64,
    /// End of the counter's validity, in ticks. Written after the offset.
    until: AtomicU64,
    /// Lock of the thread that sets the counter.
    setting: Mutex<()>,
}

#[derive(Debug)]
struct Ticks {
    source: quanta::Clock,
    /// Nanoseconds per tick, times 2³².
    factor: u64,
    /// Ticks for which the counter is valid once it is set.
    window: u64,
}

const FACTOR_BITS: u32 = 32;

/// Time for which the counter is valid once it is set.
const WINDOW_NANOS: u64 = 1_000_000;

/// Largest part of the window that a reading of the good clock may take. A longer reading means that the thread was
/// interrupted between its two looks at the counter, so they do not tell the time of the reading.
const READ_PART: u64 = 256;

impl Counter {
    /// Measures the counter's speed, unless it is known. Takes up to a fifth of a second.
    pub(crate) fn start(&self) {
        let _ticks = self.ticks.get_or_init(|| Ticks::of(quanta::Clock::new()));
    }

    /// Returns the time, or a little less. `good` is a good clock.
    #[inline]
    pub(crate) fn now(&self, good: impl Fn() -> Moment) -> Moment {
        let Some(ticks) = self.ticks.get() else {
            return good();
        };
        let count = ticks.source.raw();
        // This load makes the offset visible that was written before `until`.
        let left = self.until.load(Ordering::Acquire).wrapping_sub(count);
        if left > ticks.window {
            return self.set(ticks, good);
        }
        let offset = self.offset.load(Ordering::Relaxed);
        Moment::from_nanos(ticks.nanos(count).wrapping_add(offset))
    }

    /// Reads the good clock, and sets the counter by it.
    #[cold]
    fn set(&self, ticks: &Ticks, good: impl Fn() -> Moment) -> Moment {
        let before = ticks.source.raw();
        let now = good();
        let count = ticks.source.raw();
        let is_known = count.wrapping_sub(before) <= ticks.window / READ_PART;
        if let (true, Ok(_setting)) = (is_known, self.setting.try_lock()) {
            let offset = now.nanos().wrapping_sub(ticks.nanos(count));
            self.offset.store(offset, Ordering::Relaxed);
            let until = count.wrapping_add(ticks.window);
            self.until.store(until, Ordering::Release);
        }
        now
    }
}

impl Ticks {
    fn of(source: quanta::Clock) -> Self {
        let factor = source.delta_as_nanos(0, 1 << FACTOR_BITS).max(1);
        let window = (WINDOW_NANOS << FACTOR_BITS) / factor;
        Self {
            source,
            factor,
            window,
        }
    }

    /// Converts ticks to nanoseconds, from an unknown origin, modulo 2⁶⁴: differences of it are small.
    #[inline]
    fn nanos(&self, count: u64) -> i64 {
        let nanos = (u128::from(count) * u128::from(self.factor)) >> FACTOR_BITS;
        (nanos as u64).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;

    /// A counter of one tick per nanosecond, a good clock at the same speed, and the number of its readings.
    struct Both {
        counter: Counter,
        ticks: Arc<quanta::Mock>,
        good: Cell<i64>,
        reads: Cell<u32>,
    }

    impl Both {
        fn new() -> Self {
            let (source, ticks) = quanta::Clock::mock();
            ticks.increment(7_u64);
            let counter = Counter::default();
            counter.ticks.set(Ticks::of(source)).unwrap();
            Self {
                counter,
                ticks,
                good: Cell::new(1_000),
                reads: Cell::new(0),
            }
        }

        fn pass(&self, nanos: u64, by_good_clock: i64) {
            self.ticks.increment(nanos);
            self.good.set(self.good.get() + by_good_clock);
        }

        #[track_caller]
        fn shows(&self, now: i64, reads: u32) {
            let shown = self.counter.now(|| {
                self.reads.set(self.reads.get() + 1);
                Moment::from_nanos(self.good.get())
            });
            assert_eq!((shown.nanos(), self.reads.get()), (now, reads));
        }
    }

    #[test]
    fn the_good_clock_is_read_once_a_millisecond() {
        let both = Both::new();
        both.shows(1_000, 1);
        both.pass(999_999, 999_999);
        both.shows(1_000_999, 1);
        both.pass(1, 1);
        both.shows(1_001_000, 1);
        both.pass(1, 1);
        both.shows(1_001_001, 2);
        both.pass(1, 1);
        both.shows(1_001_002, 2);
    }

    #[test]
    fn errors_do_not_add_up() {
        let both = Both::new();
        both.shows(1_000, 1);
        for millisecond in 1..100 {
            both.pass(1_000_000, 1_100_000);
            both.shows(1_000_000 + both.good.get() - 1_100_000, millisecond);
            both.pass(1, 0);
            both.shows(both.good.get(), millisecond + 1);
        }
    }

    #[test]
    fn after_a_freeze_the_good_clock_is_read_even_if_the_counter_started_anew() {
        let both = Both::new();
        both.shows(1_000, 1);
        both.pass(3_600_000_000_000, 3_600_000_000_000);
        both.shows(3_600_000_001_000, 2);
        both.ticks.decrement(3_600_000_000_000_u64);
        both.good.set(both.good.get() + 60);
        both.shows(3_600_000_001_060, 3);
    }

    #[test]
    fn a_thread_that_is_interrupted_while_it_reads_sets_nothing() {
        let both = Both::new();
        let slow = || {
            both.pass(1_000_000, 1_000_000);
            Moment::from_nanos(both.good.get())
        };
        assert_eq!(both.counter.now(slow).nanos(), 1_001_000);
        both.shows(1_001_000, 1);
        both.shows(1_001_000, 1);
    }

    #[test]
    fn an_unstarted_counter_reads_the_good_clock() {
        let counter = Counter::default();
        for nanos in [5, 6] {
            let now = Moment::from_nanos(nanos);
            assert_eq!(counter.now(|| now), now);
        }
        // The real counter shows about the same time.
        counter.start();
        let now = Moment::from_nanos(7);
        assert_eq!(counter.now(|| now), now);
    }
}
