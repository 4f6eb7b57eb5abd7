//! A limit per second, which follows a changing capacity.
//!
//! The decision comes from a bucket that a lease feeds ([`doorward_limits::AtomicFedBucket`]), in exact arithmetic, and
//! without a lock while the rate stays. The bucket fills at the rate in force and holds at most a *burst*: one usual
//! request, and the amount of a short span at that rate, so that a task that wakes a little late loses nothing. So in
//! any span of time, the limiter admits at most the amount that the rates in force gave, plus one burst (or one
//! request, if that is larger).
//!
//! A change of rate adds nothing: the bucket's content stays, cut to the new burst. The bucket starts empty, or with one
//! burst at its first lease ([`LeasedRate::starting_full`]). A rate of 0 empties it, so nothing is left for later. Without a limit, everything is admitted. Rates below one per
//! second work: the bucket fills up to the waiting request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_limits::{AtomicFedBucket, Decision, Feed, Moment, Supply, Units};
use thiserror::Error;

use crate::capacity::{Allowance, Capacity, Source};
use crate::limiter::FAST_CLOCK_BEHIND;
pub use crate::limiter::supply::Burst;
use crate::limiter::supply::{BURST_MAX, supply};
use crate::time::Time;

/// A refusal for now.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
// The tag is not within the time, which every caller would have to compute.
#[repr(u8)]
pub enum NotNow {
    /// The limiter would admit the cost after this time, at the present rate.
    #[error("over the rate; come back in {retry_after:?}")]
    RetryAfter {
        /// Time to wait.
        retry_after: Duration,
    },
    /// The present rate never admits the cost, because nothing may be used. The rate may change.
    #[error("nothing may be used at present")]
    Blocked,
}

/// A rate that follows a lease, shared by threads. The program's `RateLimiter` decides by it.
#[derive(Debug)]
pub struct LeasedRate {
    burst: Burst,
    bucket: AtomicFedBucket,
    applied: Mutex<Applied>,
}

/// Allowance that was applied last. The holder of the lock may feed the bucket.
#[derive(Debug)]
struct Applied {
    allowance: Allowance,
    /// Start of its lease, through all refreshes.
    since: Time,
    /// Supplies of its capacities, kept because they rarely change.
    known: [(Capacity, Supply); 2],
    /// Whether the first lease begins with a burst, and has not begun.
    starts_full: bool,
}

impl LeasedRate {
    /// Creates a limiter that admits nothing until it gets a rate.
    pub fn new(burst: Burst, now: Time) -> Self {
        Self {
            burst,
            bucket: AtomicFedBucket::new(moment(now), FAST_CLOCK_BEHIND),
            applied: Mutex::new(Applied {
                allowance: Allowance::NONE,
                since: now,
                known: [(Capacity::NONE, Supply::NOTHING); 2],
                starts_full: false,
            }),
        }
    }

    /// Lets the first lease begin with one burst, as a local limit does.
    #[must_use]
    pub fn starting_full(self) -> Self {
        self.lock().starts_full = true;
        self
    }

    /// Applies a new rate. Once this has returned, the previous rate admits nothing.
    pub fn handle_allowance(&self, allowance: Allowance, now: Time) {
        self.handle_while_waiting(allowance, Units::ZERO, now);
    }

    /// Does the same while a request for `waiting` waits: units that have come in for it stay, even above the burst.
    pub(crate) fn handle_while_waiting(&self, allowance: Allowance, waiting: Units, now: Time) {
        // Holds the lock to the end: of two allowances the later one counts.
        let mut applied = self.lock();
        let feed = applied.feed(self.burst, allowance, now);
        self.bucket.turn(feed, waiting, moment(now));
        let is_lease = allowance.source == Source::Lease && allowance.at(now) != Capacity::NONE;
        if applied.starts_full && is_lease {
            applied.starts_full = false;
            self.bucket.refund(BURST_MAX, Units::ZERO, moment(now));
        }
    }

    /// Follows the allowance through all changes that come by themselves. A frozen process may have missed several of
    /// them, and the bucket knows only the next one.
    fn follow(&self, applied: &mut Applied, cost: Units, now: Time) {
        while let (Some(until), Some(_)) = (applied.allowance.until, applied.allowance.safe)
            && until <= now
        {
            let next = applied.allowance.seen_at(until);
            let feed = applied.feed(self.burst, next, until);
            self.bucket.turn(feed, cost, moment(until));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Applied> {
        // No code panics while it holds the lock.
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses `cost`, which must be finite and not negative, if the rate admits it now.
    ///
    /// # Errors
    ///
    /// [`NotNow`], with the time to wait.
    #[inline]
    pub fn try_acquire(&self, cost: f64, now: Time) -> Result<(), NotNow> {
        // Holds the lock to the end, so that no other thread feeds the bucket an outdated allowance.
        let mut applied = self.lock();
        self.follow(&mut applied, units(cost), now);
        answer(self.bucket.take(units(cost), moment(now)))
    }

    /// Does the same without a lock, by a clock that may be behind by [`FAST_CLOCK_BEHIND`]. None: call
    /// [`LeasedRate::try_acquire`] with a good clock. That happens after the end of a lease, shortly before it, and
    /// where the rate is 0.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "constant costs and unused parts of an answer cost nothing then"
    )]
    pub fn try_acquire_at_once(&self, cost: Units, now: Moment) -> Option<Result<(), NotNow>> {
        self.bucket.take_at_once(cost, now).map(answer)
    }

    /// Corrects an amount that was used: `used` instead of `estimate`, while a request for `waiting` waits. The bucket
    /// may be in debt afterwards. Without effect if the lease began after `taken_at`.
    pub fn settle(&self, taken_at: Time, estimate: Units, used: Units, waiting: Units, now: Time) {
        let mut applied = self.lock();
        self.follow(&mut applied, waiting, now);
        if taken_at < applied.since {
            return;
        }
        let now = moment(now);
        if used > estimate {
            let more = used.saturating_sub(estimate);
            self.bucket.charge(more, waiting, now);
        } else if used < estimate {
            let less = estimate.saturating_sub(used);
            self.bucket.refund(less, waiting, now);
        }
    }

    /// Returns the amount that the rate admits at once now.
    pub fn left(&self, now: Time) -> Units {
        let mut applied = self.lock();
        self.follow(&mut applied, Units::ZERO, now);
        match self.bucket.peek(Units::ZERO, moment(now)) {
            Decision::Allowed(allowed) => allowed.remaining,
            Decision::After(_) | Decision::Never(_) => Units::ZERO,
        }
    }

    /// Returns whether less than a burst is there, and more comes in.
    pub fn is_filling(&self, now: Time) -> bool {
        let mut applied = self.lock();
        self.follow(&mut applied, Units::ZERO, now);
        match self.bucket.peek(Units::ZERO, moment(now)) {
            Decision::Allowed(allowed) => !allowed.reset.is_zero(),
            Decision::After(_) => true,
            Decision::Never(_) => false,
        }
    }

    /// Returns whether the rate admits `cost` now, without using it.
    ///
    /// # Errors
    ///
    /// [`NotNow`], with the time to wait.
    pub fn look(&self, cost: f64, now: Time) -> Result<(), NotNow> {
        let mut applied = self.lock();
        self.follow(&mut applied, units(cost), now);
        answer(self.bucket.peek(units(cost), moment(now)))
    }
}

impl Applied {
    /// Returns the feed of the bucket by another allowance.
    fn feed(&mut self, burst: Burst, allowance: Allowance, now: Time) -> Feed {
        let has_ended = self.allowance.until.is_some_and(|until| until <= now);
        if has_ended || self.allowance.source != allowance.source {
            self.since = now;
        }
        let of = |capacity: Capacity| {
            let mut known = self.known.iter();
            match known.find(|(it, _)| *it == capacity) {
                Some((_, supply)) => *supply,
                None => supply(burst, capacity),
            }
        };
        let (supply, then) = (of(allowance.capacity), of(allowance.then));
        self.known = [(allowance.capacity, supply), (allowance.then, then)];
        self.allowance = allowance;
        let then = allowance.until.map(|until| (moment(until), then));
        Feed { supply, then }
    }
}

#[inline]
fn units(cost: f64) -> Units {
    debug_assert!(cost.is_finite() && cost >= 0.0);
    Units::at_least(cost).unwrap_or(Units::MAX)
}

#[inline]
fn answer(decision: Decision) -> Result<(), NotNow> {
    match decision {
        Decision::Allowed(_) => Ok(()),
        Decision::After(retry_after) => Err(NotNow::RetryAfter { retry_after }),
        Decision::Never(_) => Err(NotNow::Blocked),
    }
}

/// Converts a point in time to that of local limits.
fn moment(time: Time) -> Moment {
    Moment::ORIGIN.after(time.since_origin())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capacity::Source;

    fn at(seconds: f64) -> Time {
        Time::after_origin(Duration::from_secs_f64(seconds))
    }

    fn rate(rate: f64) -> Allowance {
        Allowance {
            capacity: Capacity::Limited(rate),
            source: Source::Lease,
            until: None,
            then: Capacity::NONE,
            safe: None,
        }
    }

    fn limiter(allowance: Allowance) -> LeasedRate {
        let limiter = LeasedRate::new(Burst::default(), Time::ZERO);
        limiter.handle_allowance(allowance, Time::ZERO);
        limiter
    }

    /// Returns the number of admitted requests of cost 1 in a span, each at the time of the previous answer.
    fn admitted(limiter: &LeasedRate, from: f64, to: f64) -> u32 {
        let (mut now, mut count) = (at(from), 0);
        while now < at(to) {
            match limiter.try_acquire(1.0, now) {
                Ok(()) => count += 1,
                Err(NotNow::RetryAfter { retry_after }) => now = now + retry_after,
                Err(NotNow::Blocked) => break,
            }
        }
        count
    }

    #[test]
    fn admits_at_the_rate() {
        assert_eq!(admitted(&limiter(rate(10.0)), 0.0, 10.001), 100);
    }

    #[test]
    fn a_rate_below_one_a_second_works() {
        assert_eq!(admitted(&limiter(rate(0.1)), 0.0, 100.001), 10);
    }

    #[test]
    fn the_time_to_come_back_is_always_right() {
        let limiter = limiter(rate(3.0));
        let mut now = Time::ZERO;
        for _ in 0..1000 {
            if let Err(NotNow::RetryAfter { retry_after }) = limiter.try_acquire(0.7, now) {
                now = now + retry_after;
                limiter.try_acquire(0.7, now).unwrap();
            }
        }
    }

    #[test]
    fn nothing_is_saved_up_beyond_a_burst() {
        let limiter = limiter(rate(1000.0));
        let mut count = 0;
        while limiter.try_acquire(1.0, at(100.0)).is_ok() {
            count += 1;
        }
        // One, and 20 ms at 1000 per second.
        assert_eq!(count, 21);
    }

    #[test]
    fn a_change_of_rate_gives_nothing() {
        let limiter = limiter(rate(10.0));
        let mut count = 0;
        for change in 0..100_u32 {
            let now = at(1.0 + f64::from(change) * 1e-6);
            limiter.handle_allowance(rate(if change % 2 == 0 { 1e6 } else { 10.0 }), now);
            count += u32::from(limiter.try_acquire(1.0, now).is_ok());
        }
        // One from the second at 10 per second, and some 50 µs at a million per second.
        assert!(count <= 53, "{count}");
    }

    #[test]
    fn zero_blocks_and_no_limit_passes() {
        assert_eq!(
            limiter(rate(0.0)).try_acquire(1.0, at(9.0)),
            Err(NotNow::Blocked)
        );
        let unlimited = Allowance {
            capacity: Capacity::Unlimited,
            ..rate(0.0)
        };
        let limiter = limiter(unlimited);
        for _ in 0..1000 {
            limiter.try_acquire(1e9, Time::ZERO).unwrap();
        }
    }

    #[test]
    fn the_end_of_a_lease_is_obeyed_without_a_new_allowance() {
        let limiter = limiter(Allowance {
            until: Some(at(5.0)),
            ..rate(10.0)
        });
        assert!(limiter.try_acquire(1.0, at(4.999)).is_ok());
        assert_eq!(limiter.try_acquire(1.0, at(5.0)), Err(NotNow::Blocked));
    }

    #[test]
    fn tokens_that_are_left_at_rate_zero_cannot_be_spent_and_do_not_come_back() {
        let full = || {
            let limiter = limiter(rate(10.0));
            limiter.handle_allowance(rate(10.0), at(1.0));
            limiter
        };
        full().try_acquire(1.0, at(1.0)).unwrap();
        let limiter = full();
        limiter.handle_allowance(rate(0.0), at(1.0));
        for cost in [1.0, 1e-9] {
            assert_eq!(limiter.try_acquire(cost, at(1.0)), Err(NotNow::Blocked));
            assert_eq!(limiter.try_acquire(cost, at(2.0)), Err(NotNow::Blocked));
        }
        limiter.try_acquire(0.0, at(2.0)).unwrap();
        limiter.handle_allowance(rate(10.0), at(3.0));
        comes_in(&limiter, 1.0, 3.0, 0.1);
        // The same if a lease ends without a new allowance, and the next one comes at once or later.
        for next in [5.0, 7.0] {
            let limiter = self::limiter(Allowance {
                until: Some(at(5.0)),
                ..rate(10.0)
            });
            limiter.handle_allowance(rate(10.0), at(next));
            comes_in(&limiter, 1.0, next, 0.1);
        }
    }

    /// Checks that the limiter admits `cost` after `seconds`, and no earlier.
    #[track_caller]
    fn comes_in(limiter: &LeasedRate, cost: f64, now: f64, seconds: f64) {
        match limiter.try_acquire(cost, at(now)) {
            Err(NotNow::RetryAfter { retry_after }) => {
                let waits = retry_after.as_secs_f64();
                assert!((waits - seconds).abs() < 1e-6, "{waits} s, not {seconds}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn after_a_lease_the_following_rate_counts() {
        let ends = Allowance {
            until: Some(at(5.0)),
            then: Capacity::Limited(1.0),
            ..rate(10.0)
        };
        let limiter = limiter(ends);
        // A burst at that rate was left.
        limiter.try_acquire(1.02, at(5.0)).unwrap();
        // After a second, one has come in, not ten.
        comes_in(&limiter, 5.0, 6.0, 4.0);
        limiter.try_acquire(5.0, at(10.0)).unwrap();
        // The part before the end counts by the old rate, the part after it by the new one.
        let limiter = self::limiter(ends);
        limiter.try_acquire(1.2, at(4.8)).unwrap();
        comes_in(&limiter, 6.0, 6.0, 3.0);
    }

    #[test]
    fn a_wait_counts_the_supply_after_the_end_of_the_lease() {
        let allowance = Allowance {
            until: Some(at(1.0)),
            then: Capacity::Limited(1.0),
            ..rate(0.5)
        };
        let waits = limiter(allowance).try_acquire(1.5, Time::ZERO).unwrap_err();
        let NotNow::RetryAfter { retry_after } = waits else {
            panic!("{waits:?}")
        };
        assert!(
            (retry_after.as_secs_f64() - 2.0).abs() < 1e-6,
            "{retry_after:?}"
        );
    }

    /// Returns the wait for a request of that cost by a limiter that is empty at 0.
    fn waits(allowance: Allowance, cost: f64) -> f64 {
        let limiter = limiter(rate(0.0));
        limiter.handle_allowance(allowance, Time::ZERO);
        match limiter.try_acquire(cost, Time::ZERO) {
            Err(NotNow::RetryAfter { retry_after }) => retry_after.as_secs_f64(),
            Err(NotNow::Blocked) => f64::INFINITY,
            Ok(()) => 0.0,
        }
    }

    #[test]
    fn a_wait_counts_the_supply_before_and_after_the_end_of_the_lease() {
        let none = Capacity::NONE;
        for (rate_now, lasts, then, cost, expected) in [
            // All of it comes before the end, even at the last moment.
            (2.0, 4.0, none, 6.0, 3.0),
            (2.0, 4.0, none, 8.0, 4.0),
            // Some of it comes before the end, the rest after it.
            (2.0, 4.0, Capacity::Limited(0.5), 9.0, 6.0),
            // The lease supplies nothing before its end.
            (0.0, 4.0, Capacity::Limited(0.5), 1.0, 6.0),
            (0.0, 4.0, Capacity::Unlimited, 1.0, 4.0),
            // It never comes.
            (2.0, 4.0, none, 8.1, f64::INFINITY),
            (0.0, 4.0, none, 1.0, f64::INFINITY),
        ] {
            let allowance = Allowance {
                until: Some(at(lasts)),
                then,
                ..rate(rate_now)
            };
            let waits = waits(allowance, cost);
            assert!(
                waits == expected || (waits - expected).abs() < 1e-6,
                "{cost} of {rate_now}/s for {lasts} s, then {then:?}: {waits}, not {expected}"
            );
        }
        // A lease that ends now is over: the following capacity counts from here.
        let over = Allowance {
            until: Some(Time::ZERO),
            then: Capacity::Limited(2.0),
            ..rate(0.0)
        };
        assert!((waits(over, 4.0) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_lease_leaves_a_burst_of_its_own_rate_and_not_of_the_next() {
        let limiter = limiter(Allowance {
            until: Some(at(5.0)),
            then: Capacity::Limited(100.0),
            ..rate(1.0)
        });
        // 1.02 remain of five seconds at 1 per second, and 0.1 come in at 100 per second, of which 3 are a burst.
        limiter.try_acquire(1.0, at(5.001)).unwrap();
        comes_in(&limiter, 0.5, 5.001, (0.5 - 0.12) / 100.0);
    }

    #[test]
    fn a_request_larger_than_the_burst_waits_for_the_rest() {
        let limiter = limiter(rate(10.0));
        assert!(limiter.try_acquire(30.0, at(2.9)).is_err());
        assert!(limiter.try_acquire(30.0, at(5.9)).is_ok());
    }

    proptest! {
        #[test]
        fn the_admitted_amount_is_within_the_supply_plus_a_burst(
            steps in prop::collection::vec(
                (
                    0.0..0.5f64,
                    prop::option::of(prop_oneof![3 => 0.0..200.0f64, 1 => Just(0.0)]),
                    0.0..3.0f64,
                ),
                1..200,
            ),
        ) {
            let limiter = LeasedRate::new(Burst::default(), Time::ZERO);
            let (mut now, mut current) = (0.0, 0.0);
            // The balance of the amounts that came in and were admitted never exceeds a burst, over any window: the
            // largest difference over all windows is that of a running maximum.
            let (mut balance, mut worst, mut largest_burst) = (0.0_f64, 0.0_f64, 3.0_f64);
            for (pause, new_rate, cost) in steps {
                now += pause;
                balance = (balance - current * pause).max(0.0);
                if let Some(new_rate) = new_rate {
                    limiter.handle_allowance(rate(new_rate), at(now));
                    current = new_rate;
                    largest_burst = largest_burst.max(1.0 + new_rate * 0.02);
                }
                while limiter.try_acquire(cost.max(0.01), at(now)).is_ok() {
                    prop_assert!(current > 0.0, "spent at rate 0");
                    balance += cost.max(0.01);
                    worst = worst.max(balance);
                }
            }
            prop_assert!(worst <= largest_burst + 1e-6, "{worst} > {largest_burst}");
        }
    }
}
