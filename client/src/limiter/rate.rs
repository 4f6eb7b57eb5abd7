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

use std::sync::Mutex;

use doorward_limits::{AtomicFedBucket, Decision, Feed, Moment, Supply, Units, Wait};

use crate::capacity::{Allowance, Capacity, Source};
use crate::limiter::FAST_CLOCK_BEHIND;
pub use crate::limiter::supply::Burst;
use crate::limiter::supply::{BURST_MAX, supply};
use crate::lock::lock;
use crate::refusal::Refusal;
use crate::time::Time;

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
        lock(&self.applied).starts_full = true;
        self
    }

    /// Applies a new rate. Once this has returned, the previous rate admits nothing.
    pub fn handle_allowance(&self, allowance: Allowance, now: Time) {
        self.handle_while_waiting(allowance, Units::ZERO, now);
    }

    /// Does the same while a request for `waiting` waits: units that have come in for it stay, even above the burst.
    pub(crate) fn handle_while_waiting(&self, allowance: Allowance, waiting: Units, now: Time) {
        // Holds the lock to the end: of two allowances the later one counts.
        let mut applied = lock(&self.applied);
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

    /// Uses `cost`, which must be finite and not negative, if the rate admits it now.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the time to wait, at the present rate. Without a time: the present rate never admits the
    /// cost, because nothing may be used. The rate may change.
    #[inline]
    pub fn try_acquire(&self, cost: f64, now: Time) -> Result<(), Refusal> {
        // Holds the lock to the end, so that no other thread feeds the bucket an outdated allowance.
        let mut applied = lock(&self.applied);
        self.follow(&mut applied, units(cost), now);
        answer(self.bucket.take(units(cost), moment(now)))
    }

    /// Does the same without a lock, by a clock that may be behind by [`FAST_CLOCK_BEHIND`]. None: call
    /// [`LeasedRate::try_acquire`] with a good clock. That happens after the end of a lease, shortly before it, and
    /// where the rate is 0.
    // Constant costs and unused parts of an answer cost nothing then.
    #[inline(always)]
    pub fn try_acquire_at_once(&self, cost: Units, now: Moment) -> Option<Result<(), Wait>> {
        self.bucket.take_at_once(cost, now)
    }

    /// Corrects an amount that was used: `used` instead of `estimate`, while a request for `waiting` waits. The bucket
    /// may be in debt afterwards. Without effect if the lease began after `taken_at`.
    pub fn settle(&self, taken_at: Time, estimate: Units, used: Units, waiting: Units, now: Time) {
        let mut applied = lock(&self.applied);
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
        match self.peek(Units::ZERO, now) {
            Decision::Allowed(allowed) => allowed.remaining,
            Decision::After(_) | Decision::Never(_) => Units::ZERO,
        }
    }

    /// Returns whether less than a burst is there, and more comes in.
    pub fn is_filling(&self, now: Time) -> bool {
        match self.peek(Units::ZERO, now) {
            Decision::Allowed(allowed) => !allowed.reset.is_zero(),
            Decision::After(_) => true,
            Decision::Never(_) => false,
        }
    }

    /// Returns whether the rate admits `cost` now, without using it.
    ///
    /// # Errors
    ///
    /// As [`LeasedRate::try_acquire`].
    pub fn look(&self, cost: f64, now: Time) -> Result<(), Refusal> {
        answer(self.peek(units(cost), now))
    }

    fn peek(&self, cost: Units, now: Time) -> Decision {
        let mut applied = lock(&self.applied);
        self.follow(&mut applied, cost, now);
        self.bucket.peek(cost, moment(now))
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
fn answer(decision: Decision) -> Result<(), Refusal> {
    match decision {
        Decision::Allowed(_) => Ok(()),
        Decision::After(time) => Err(Refusal::over(Some(time))),
        Decision::Never(_) => Err(Refusal::over(None)),
    }
}

/// Converts a point in time to that of local limits.
fn moment(time: Time) -> Moment {
    Moment::ORIGIN.after(time.since_origin())
}

#[cfg(test)]
mod tests;
