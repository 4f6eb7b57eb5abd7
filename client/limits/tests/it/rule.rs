//! Settings in numbers, by which any algorithm is built.

use std::time::Duration;

use doorward_limits::{
    Algorithm, Ban, FixedWindow, Gcra, LeakyQueue, Limit, Moment, Rate, Shared, SlidingCounter,
    SlidingLog, SoftHard, TokenBucket, Units, WarmUp,
};

/// Parts of a unit.
pub(crate) const UNIT: u128 = 1_000_000_000;

/// Settings of a limit: each algorithm takes those that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    /// In parts of a unit.
    pub(crate) limit: u128,
    /// An amount in parts of a unit, and its nanoseconds.
    pub(crate) rate: (u128, u64),
    /// Window, for algorithms that count in windows; length of a warm-up.
    pub(crate) window: u64,
    /// Longest wait of a queue, or length of a ban.
    pub(crate) wait: u64,
    /// Cold factor of a warm-up, or a soft limit; 0 keeps the soft limit's ratio.
    pub(crate) more: u128,
}

impl Rule {
    fn limit(&self) -> Units {
        Units::from_parts(self.limit)
    }

    fn flow(&self) -> Rate {
        let (amount, nanos) = self.rate;
        Rate::new(Units::from_parts(amount), Duration::from_nanos(nanos)).unwrap()
    }

    fn windowed(&self) -> Rate {
        Rate::new(self.limit(), Duration::from_nanos(self.window)).unwrap()
    }

    fn wait(&self) -> Duration {
        Duration::from_nanos(self.wait)
    }
}

/// An algorithm by a rule.
pub(crate) trait Build: Algorithm<State: Send> + Clone + Send + Sized {
    /// Returns none if exact numbers do not fit.
    fn build(rule: &Rule) -> Option<Self>;

    /// Returns the algorithm that follows by another rule.
    fn next(&self, rule: &Rule) -> Option<Self> {
        Self::build(rule)
    }

    fn stored(&self, _state: &Self::State, _now: Moment) -> Option<Units> {
        None
    }

    fn warns(&self, _state: &Self::State, _now: Moment) -> Option<bool> {
        None
    }
}

macro_rules! build {
    ($($algorithm:ty: $rule:ident => $build:expr;)*) => {$(
        impl Build for $algorithm {
            fn build($rule: &Rule) -> Option<Self> {
                $build
            }
        }
    )*};
}

build! {
    TokenBucket: it => Self::new(it.limit(), it.flow()).ok();
    Gcra: it => Self::new(it.limit(), it.flow()).ok();
    LeakyQueue: it => Self::new(it.limit(), it.flow(), it.wait()).ok();
    FixedWindow: it => Some(Self::new(it.windowed()));
    SlidingLog: it => Some(Self::new(it.windowed()));
    SlidingCounter: it => Some(Self::new(it.windowed()));
    Ban: it => Some(Self::new(it.windowed(), it.wait()));
}

impl Build for WarmUp {
    fn build(rule: &Rule) -> Option<Self> {
        let (warm_up, factor) = (Duration::from_nanos(rule.window), rule.more);
        Self::new(rule.flow(), warm_up, Units::from_parts(factor), rule.wait()).ok()
    }

    fn stored(&self, state: &Self::State, now: Moment) -> Option<Units> {
        Some(Self::stored(self, state, now))
    }
}

impl<A: Build> Build for SoftHard<A> {
    fn build(rule: &Rule) -> Option<Self> {
        Some(Self::new(A::build(rule)?, Units::from_parts(rule.more)))
    }

    fn next(&self, rule: &Rule) -> Option<Self> {
        match rule.more {
            0 => Some(self.with_hard(A::build(rule)?)),
            _ => Self::build(rule),
        }
    }

    fn warns(&self, state: &Self::State, now: Moment) -> Option<bool> {
        Some(Self::warns(self, state, now))
    }
}

/// A limit of any algorithm.
pub(crate) trait Subject: Limit {
    fn set_limit(&mut self, rule: &Rule, now: Moment);
    fn is_fresh(&self, now: Moment) -> bool;
    fn stored(&self, now: Moment) -> Option<Units>;
    fn warns(&self, now: Moment) -> Option<bool>;
}

impl<A: Build> Subject for Shared<A> {
    fn set_limit(&mut self, rule: &Rule, now: Moment) {
        self.with(|limit| {
            if let Some(next) = limit.algorithm().next(rule) {
                limit.set_limit(next, now);
            }
        });
    }

    fn is_fresh(&self, now: Moment) -> bool {
        self.with(|limit| limit.is_fresh(now))
    }

    fn stored(&self, now: Moment) -> Option<Units> {
        self.with(|limit| limit.algorithm().stored(limit.state(), now))
    }

    fn warns(&self, now: Moment) -> Option<bool> {
        self.with(|limit| limit.algorithm().warns(limit.state(), now))
    }
}

/// Creates a fresh limit.
pub(crate) type Create = fn(&Rule) -> Option<Box<dyn Subject>>;

fn of<A: Build + 'static>(rule: &Rule) -> Option<Box<dyn Subject>> {
    Some(Box::new(Shared::new(A::build(rule)?)))
}

/// Every algorithm, and the same with a soft limit.
pub(crate) const ALL: [(&str, Create, Create); 9] = [
    (
        "token_bucket",
        of::<TokenBucket>,
        of::<SoftHard<TokenBucket>>,
    ),
    ("gcra", of::<Gcra>, of::<SoftHard<Gcra>>),
    // As a meter, a leaky bucket gives the answers of a token bucket.
    (
        "leaky_meter",
        of::<TokenBucket>,
        of::<SoftHard<TokenBucket>>,
    ),
    ("leaky_queue", of::<LeakyQueue>, of::<SoftHard<LeakyQueue>>),
    (
        "fixed_window",
        of::<FixedWindow>,
        of::<SoftHard<FixedWindow>>,
    ),
    ("sliding_log", of::<SlidingLog>, of::<SoftHard<SlidingLog>>),
    (
        "sliding_counter",
        of::<SlidingCounter>,
        of::<SoftHard<SlidingCounter>>,
    ),
    ("ban", of::<Ban>, of::<SoftHard<Ban>>),
    ("warm_up", of::<WarmUp>, of::<SoftHard<WarmUp>>),
];
