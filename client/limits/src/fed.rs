//! A bucket that a lease feeds: another party grants its rate, until a time.
//!
//! It differs in three ways from a [`TokenBucket`] whose limit is set, all for one reason: units that a lease gains
//! come from another holder, which may have spent its burst.
//!
//! - It begins empty, and a change of supply adds nothing: the amount stays, cut to the new burst. (A token bucket
//!   whose limit is set keeps the ratio: a tenth that is left stays a tenth.)
//! - A rate of 0 empties it, so nothing can be spent at rate 0, and nothing is left for later. *No limit* empties it
//!   too.
//! - A cost above the burst waits until enough has come in: the bucket fills up to the waiting request.
//!
//! A lease ends even if no code runs at that time. So the bucket receives the following supply in advance.
//!
//! In any span, at most the amount that the rates in force gave is taken, plus one burst, or one request if that is
//! larger.

use crate::decision::{Decision, Reason};
use crate::flow::Flow;
use crate::level::Level;
use crate::moment::{Moment, span};
use crate::token_bucket::TokenBucket;
use crate::units::Units;
use crate::wide::{scaled_up, times_over};

/// Supply of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Rate of a token bucket, and its burst. A rate of 0 is no supply.
    Limited(TokenBucket),
    /// No limit.
    Unlimited,
}

/// The supply now, and the following one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Supply now.
    pub supply: Supply,
    /// Supply from a moment on, by itself.
    pub then: Option<(Moment, Supply)>,
}

/// A bucket that a lease feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FedBucket {
    /// Supply, as it was last set or seen, and its next change by itself.
    pub(crate) feed: Feed,
    /// Missing amount of a full bucket: negative while a request waits for more than the burst.
    pub(crate) level: Level,
}

impl Feed {
    pub(crate) const NOTHING: Self = Self {
        supply: Supply::NOTHING,
        then: None,
    };
}

impl Supply {
    /// No supply.
    pub const NOTHING: Self = Self::Limited(TokenBucket::NOTHING);

    #[inline]
    pub(crate) const fn flow(&self) -> Flow {
        match self {
            Self::Limited(bucket) => bucket.flow,
            Self::Unlimited => Flow::UNLIMITED,
        }
    }
}

impl FedBucket {
    /// Creates an empty bucket without supply.
    pub const fn new(now: Moment) -> Self {
        Self {
            feed: Feed::NOTHING,
            level: Level::empty(&Flow::NOTHING, now),
        }
    }

    /// Sets another supply.
    pub fn feed(&mut self, feed: Feed, now: Moment) {
        self.turn_to(feed, Units::ZERO, now);
    }

    /// Sets the supply that follows by itself, while a request for `cost` waits. Units that have come in for that
    /// request stay, even above the burst.
    pub(crate) fn turn_to(&mut self, feed: Feed, cost: Units, now: Moment) {
        self.fill(cost, now);
        self.switch(feed.supply, cost);
        self.feed = feed;
        self.fill(cost, now);
    }

    /// Takes `cost` if it is available.
    #[inline]
    pub fn take(&mut self, cost: Units, now: Moment) -> Decision {
        self.fill(cost, now);
        let flow = self.feed.supply.flow();
        let missing = self.level.missing + flow.in_drops(cost);
        if missing > flow.full {
            return self.refusal(missing - flow.full, cost, now);
        }
        self.level.missing = missing;
        let standing = flow.standing(missing.max(0), self.level.at.nanos_since(now));
        Decision::Allowed(standing.allowed())
    }

    /// Returns the answer that a take would get.
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.clone().take(cost, now)
    }

    /// Takes `cost` even if it is not available: the bucket may be in debt, which its supply pays first. Units that
    /// came in for a waiting request stay.
    pub fn charge(&mut self, cost: Units, waiting: Units, now: Moment) {
        self.fill(waiting, now);
        self.level.missing = self.feed.supply.flow().charge(self.level.missing, cost);
    }

    /// Gives back `cost`, up to the burst, or to the cost of a waiting request.
    pub fn refund(&mut self, cost: Units, waiting: Units, now: Moment) {
        self.fill(waiting, now);
        let flow = self.feed.supply.flow();
        let missing = self.level.missing - flow.in_drops(cost);
        self.level.missing = missing.max(least(&flow, waiting));
    }

    /// Returns the supply, as it was last set or seen.
    pub const fn supply(&self) -> &Supply {
        &self.feed.supply
    }

    /// Adds the supply since the last change, up to a burst, or to the waiting cost.
    #[inline]
    fn fill(&mut self, cost: Units, now: Moment) {
        if let Some((turn, then)) = self.feed.then
            && turn <= now
        {
            self.turn(turn, then, cost);
        }
        self.come(cost, now);
    }

    #[cold]
    fn turn(&mut self, turn: Moment, then: Supply, cost: Units) {
        self.come(cost, turn);
        self.switch(then, cost);
        self.feed = Feed {
            supply: then,
            then: None,
        };
    }

    #[inline]
    fn come(&mut self, cost: Units, now: Moment) {
        let nanos = now.nanos_since(self.level.at);
        if nanos == 0 {
            return;
        }
        let flow = self.feed.supply.flow();
        let missing = self.level.missing - flow.in_nanos(nanos);
        self.level = Level {
            missing: missing.max(least(&flow, cost)),
            at: now,
        };
    }

    /// Keeps the amount, rounded down to drops of the next supply, and cut to its burst or to the waiting cost.
    fn switch(&mut self, next: Supply, cost: Units) {
        let (flow, to) = (self.feed.supply.flow(), next.flow());
        let there = in_drops_of(&to, &flow, flow.full - self.level.missing);
        self.level.missing = (to.full - there).max(least(&to, cost));
    }

    /// Returns the time until a short amount for `cost` has come in, if nothing changes but by itself.
    fn refusal(&self, short: i128, cost: Units, now: Moment) -> Decision {
        let flow = self.feed.supply.flow();
        let after = |nanos: u128| {
            let behind = u128::from(self.level.at.nanos_since(now));
            Decision::After(span(nanos.saturating_add(behind)))
        };
        let never = Decision::Never(Reason::RateIsZero);
        let then = self.feed.then.and_then(|(turn, then)| {
            let left = turn.nanos_since(now.max(self.level.at));
            let comes = flow.in_nanos(left);
            (comes < short).then_some((left, comes, then.flow()))
        });
        let Some((left, comes, to)) = then else {
            return flow.nanos_for(short).map_or(never, after);
        };
        let there = flow.full - self.level.missing + comes;
        let short = to.in_drops(cost) - in_drops_of(&to, &flow, there);
        let more = to.nanos_for(short.max(0));
        more.map_or(never, |more| after(u128::from(left).saturating_add(more)))
    }
}

/// Returns the smallest missing amount while this supplies the bucket and a request for `cost` waits. A rest cannot
/// be spent at rate 0, and a supply without limit is not saved up.
#[inline]
fn least(flow: &Flow, cost: Units) -> i128 {
    if flow.drops == 0 {
        return flow.full;
    }
    (flow.full - flow.in_drops(cost)).min(0)
}

/// Converts drops of one flow to those of another, rounded down. The result is below 0 if a clock is a little behind
/// another one by which units were taken.
fn in_drops_of(to: &Flow, flow: &Flow, drops: i128) -> i128 {
    if to.part == flow.part || drops == 0 {
        return drops;
    }
    let parts = (u128::from(to.part), u128::from(flow.part));
    if drops < 0 {
        let owed = scaled_up(drops.unsigned_abs(), parts.0, parts.1);
        return i128::try_from(owed).map_or(i128::MIN, |owed| -owed);
    }
    let (drops, _) = times_over(drops.unsigned_abs(), parts.0, parts.1);
    i128::try_from(drops).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(nanos: i64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn limited(burst: u64, rate: &str) -> Supply {
        Supply::Limited(TokenBucket::new(burst, rate.parse().unwrap()).unwrap())
    }

    fn always(supply: Supply) -> Feed {
        Feed { supply, then: None }
    }

    const SECOND: i64 = 1_000_000_000;

    #[track_caller]
    fn waits(bucket: &FedBucket, cost: u64, now: i64, nanos: i64) {
        let wait = Decision::After(Duration::from_nanos(nanos.unsigned_abs()));
        assert_eq!(bucket.peek(cost.into(), at(now)), wait);
    }

    #[test]
    fn a_fed_bucket_begins_empty_and_a_change_adds_nothing() {
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(always(limited(10, "3/s")), at(0));
        waits(&bucket, 1, 0, 333_333_334);
        assert!(bucket.take(2.into(), at(SECOND)).is_allowed());
        // One is left: it stays one at any later rate.
        for (burst, rate) in [(1_000, "1000/s"), (10, "7/h"), (1, "1/s"), (20, "4999/day")] {
            bucket.feed(always(limited(burst, rate)), at(SECOND));
            assert!(bucket.peek(1.into(), at(SECOND)).is_allowed());
            assert!(!bucket.peek(2.into(), at(SECOND)).is_allowed());
        }
    }

    #[test]
    fn nothing_and_no_limit_empty_it() {
        for supply in [limited(5, "0/s"), Supply::Unlimited] {
            let mut bucket = FedBucket::new(at(0));
            bucket.feed(always(limited(5, "5/s")), at(0));
            bucket.feed(always(supply), at(SECOND));
            assert_eq!(
                bucket.take(1.into(), at(SECOND)).is_allowed(),
                supply == Supply::Unlimited
            );
            bucket.feed(always(limited(5, "5/s")), at(2 * SECOND));
            waits(&bucket, 1, 2 * SECOND, SECOND / 5);
        }
    }

    #[test]
    fn a_cost_above_the_burst_waits_until_it_has_come_in() {
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(always(limited(1, "10/s")), at(0));
        waits(&bucket, 30, 0, 3 * SECOND);
        assert!(!bucket.take(30.into(), at(3 * SECOND - 1)).is_allowed());
        assert!(bucket.take(30.into(), at(3 * SECOND)).is_allowed());
    }

    #[test]
    fn the_end_is_obeyed_and_counted_in_though_nobody_says_so() {
        let feed = |then| Feed {
            supply: limited(10, "2/s"),
            then: Some((at(4 * SECOND), then)),
        };
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(feed(limited(10, "1/3s")), at(0));
        waits(&bucket, 8, 0, 4 * SECOND);
        waits(&bucket, 9, 0, 7 * SECOND);
        assert!(bucket.take(9.into(), at(7 * SECOND)).is_allowed());
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(feed(Supply::NOTHING), at(0));
        let never = Decision::Never(Reason::RateIsZero);
        assert_eq!(bucket.peek(9.into(), at(0)), never);
        assert_eq!(bucket.take(1.into(), at(4 * SECOND)), never);
        // A request that waits across the end keeps the units from before it, although the burst is smaller.
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(feed(limited(1, "1/s")), at(0));
        assert!(bucket.take(6.into(), at(3 * SECOND)).is_allowed());
        waits(&bucket, 6, 3 * SECOND, 5 * SECOND);
        assert!(!bucket.take(6.into(), at(8 * SECOND - 1)).is_allowed());
        assert!(bucket.take(6.into(), at(8 * SECOND)).is_allowed());
        let mut bucket = FedBucket::new(at(0));
        bucket.feed(feed(Supply::Unlimited), at(0));
        waits(&bucket, 9, 0, 4 * SECOND);
    }
}
