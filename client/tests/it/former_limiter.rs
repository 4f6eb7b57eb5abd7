//! The limiter without a lock makes the same decisions as its predecessor: a bucket behind a lock, with a reading of a
//! clock for each call.

use std::time::Duration;

use doorward_client::capacity::{Allowance, Capacity, Source};
use doorward_client::limiter::rate::{Burst, LeasedRate, NotNow};
use doorward_client::time::Time;
use doorward_limits::{Decision, FedBucket, Feed, Moment, Rate, Supply, TokenBucket, Units};
use proptest::prelude::*;

/// The previous limiter.
struct Former {
    burst: Burst,
    bucket: FedBucket,
}

impl Former {
    fn supply(&self, capacity: Capacity) -> Supply {
        let Capacity::Limited(rate) = capacity else {
            return Supply::Unlimited;
        };
        let size = self.burst.least + rate * self.burst.span.as_secs_f64();
        let rate = Rate::from_per_second(rate).unwrap();
        Supply::Limited(TokenBucket::new(Units::try_from(size).unwrap(), rate).unwrap())
    }

    fn handle_allowance(&mut self, allowance: Allowance, now: Moment) {
        let then = self.supply(allowance.then);
        let feed = Feed {
            supply: self.supply(allowance.capacity),
            then: allowance.until.map(|until| (moment(until), then)),
        };
        self.bucket.feed(feed, now);
    }

    fn try_acquire(&mut self, cost: f64, now: Moment) -> Result<(), NotNow> {
        match self.bucket.take(Units::at_least(cost).unwrap(), now) {
            Decision::Allowed(_) => Ok(()),
            Decision::After(retry_after) => Err(NotNow::RetryAfter { retry_after }),
            Decision::Never(_) => Err(NotNow::Blocked),
        }
    }
}

fn moment(time: Time) -> Moment {
    Moment::ORIGIN.after(time.since_origin())
}

#[derive(Clone, Debug)]
enum Op {
    /// A lease of an amount for a time, followed by the mode's capacity.
    Lease(Capacity, Option<u64>, Capacity),
    Acquire(f64),
    Look(f64),
    Pass(u64),
}

/// Returns nothing, whole and decimal numbers, shares, or no limit.
fn capacity() -> impl Strategy<Value = Capacity> {
    let numbers = prop_oneof![
        2 => Just(0.0),
        6 => (1..2_000_u32).prop_map(f64::from),
        4 => (1..100_000_u32).prop_map(|it| f64::from(it) / 1_000.0),
        2 => (1..1_000_000_u32).prop_map(|it| f64::from(it) * 100.0),
    ];
    prop_oneof![8 => numbers.prop_map(Capacity::Limited), 1 => Just(Capacity::Unlimited)]
}

fn op() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![5 => Just(1.0), 2 => 0.0..5.0_f64, 1 => 0.0..500.0_f64];
    let span = || prop_oneof![3 => 0..30_000_000_u64, 2 => 0..90_000_000_000_u64];
    prop_oneof![
        2 => (capacity(), prop::option::weighted(0.8, span()), capacity())
            .prop_map(|(now, lasts, then)| Op::Lease(now, lasts, then)),
        10 => cost().prop_map(Op::Acquire),
        1 => cost().prop_map(Op::Look),
        5 => span().prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_is_that_of_the_former_limiter(ops in prop::collection::vec(op(), 1..150)) {
        let burst = Burst::default();
        let limiter = LeasedRate::new(burst, Time::ZERO);
        let mut former = Former { burst, bucket: FedBucket::new(Moment::ORIGIN) };
        let mut now = Time::ZERO;
        for op in ops {
            match op {
                Op::Lease(capacity, lasts, then) => {
                    let until = lasts.map(|lasts| now + Duration::from_nanos(lasts));
                    let allowance = Allowance { capacity, source: Source::Lease, until, then, safe: None };
                    limiter.handle_allowance(allowance, now);
                    former.handle_allowance(allowance, moment(now));
                }
                Op::Acquire(cost) => {
                    let expected = former.try_acquire(cost, moment(now));
                    let answer = limiter.try_acquire_at_once(cost, moment(now));
                    let answer = answer.unwrap_or_else(|| limiter.try_acquire(cost, now));
                    prop_assert_eq!(answer, expected);
                }
                Op::Look(cost) => {
                    let mut look = Former { burst, bucket: former.bucket };
                    prop_assert_eq!(limiter.look(cost, now), look.try_acquire(cost, moment(now)));
                }
                Op::Pass(nanos) => now = now + Duration::from_nanos(nanos),
            }
        }
    }
}
