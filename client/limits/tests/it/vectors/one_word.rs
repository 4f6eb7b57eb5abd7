//! The bucket in one word, driven by a case.

use doorward_limits::{AtomicBucket, Decision, Limit, Moment, Standing, TokenBucket, Units};
use serde_json::Value;

use crate::vectors::driver::{Buildable, Driven, merge};

/// A bucket and its settings.
struct OneWord {
    bucket: AtomicBucket,
    settings: Value,
}

/// Returns the bucket that a case describes, if it is about one.
pub(crate) fn driven(settings: &Value) -> Option<Box<dyn Driven>> {
    let algorithm = settings["algorithm"].as_str();
    algorithm.filter(|it| ["token_bucket", "gcra"].contains(it))?;
    Some(Box::new(OneWord {
        bucket: AtomicBucket::new(TokenBucket::build(settings, None)),
        settings: settings.clone(),
    }))
}

/// Returns whether the clock of a case goes back: then the word shows a little less than the
/// answers.
pub(crate) fn goes_back(case: &Value) -> bool {
    let ops = case["ops"].as_array().unwrap();
    let times: Vec<i64> = ops.iter().filter_map(|op| op["t_ns"].as_i64()).collect();
    !times.is_sorted()
}

impl Limit for OneWord {
    fn take(&mut self, cost: Units, now: Moment) -> Decision {
        self.bucket.take(cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.bucket.peek(cost, now)
    }

    fn attempt(&mut self, _: Units, _: Moment) {}

    fn standing(&self, now: Moment) -> Standing {
        self.bucket.standing(now)
    }

    fn charge(&mut self, cost: Units, now: Moment) {
        self.bucket.charge(cost, now);
    }

    fn refund(&mut self, cost: Units, now: Moment) {
        self.bucket.refund(cost, now);
    }
}

impl Driven for OneWord {
    fn set_limit(&mut self, changes: &Value, now: Moment) {
        merge(&mut self.settings, changes);
        let next = TokenBucket::build(&self.settings, None);
        self.bucket.set_limit(next, now);
    }

    fn stored(&self, _: Moment) -> Option<Units> {
        None
    }

    fn warns(&self, _: Moment) -> Option<bool> {
        None
    }
}
