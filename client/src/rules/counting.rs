//! The algorithms that a rule can name, as one type: counters of all rules have the same shape.
//!
//! If a rule changes to another limit or algorithm, the available part keeps its ratio to the limit.

use doorward_limits::{
    Algorithm, Decision, FixedWindow, LeakyQueue, Moment, SlidingCounter, SlidingLog, Standing,
    TokenBucket, Units,
};

/// Settings of a rule's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// An amount in each window of the clock.
    FixedWindow(FixedWindow),
    /// A rate with a burst.
    TokenBucket(TokenBucket),
    /// An even stream.
    LeakyQueue(LeakyQueue),
    /// An amount in every window, exactly.
    SlidingLog(SlidingLog),
    /// An amount in every window, estimated.
    SlidingCounter(SlidingCounter),
}

/// State of one key. Rare and large states have a box, so that the others take less memory.
#[derive(Clone, Debug, PartialEq)]
pub enum CountingState {
    /// Of a fixed window.
    FixedWindow(<FixedWindow as Algorithm>::State),
    /// Of a token bucket.
    TokenBucket(<TokenBucket as Algorithm>::State),
    /// Of a leaky queue.
    LeakyQueue(<LeakyQueue as Algorithm>::State),
    /// Of a sliding log.
    SlidingLog(Box<<SlidingLog as Algorithm>::State>),
    /// Of a sliding counter.
    SlidingCounter(Box<<SlidingCounter as Algorithm>::State>),
}

/// Calls a method of the algorithm.
macro_rules! each {
    ($settings:expr, $it:ident => $result:expr) => {
        match $settings {
            Counting::FixedWindow($it) => $result,
            Counting::TokenBucket($it) => $result,
            Counting::LeakyQueue($it) => $result,
            Counting::SlidingLog($it) => $result,
            Counting::SlidingCounter($it) => $result,
        }
    };
}

/// Calls a method of the algorithm with its state. A state of another algorithm cannot occur, and counts as fresh.
macro_rules! each_state {
    ($settings:expr, $given:expr, $it:ident, $state:ident => $result:expr, $otherwise:expr) => {
        match ($settings, $given) {
            (Counting::FixedWindow($it), CountingState::FixedWindow($state)) => $result,
            (Counting::TokenBucket($it), CountingState::TokenBucket($state)) => $result,
            (Counting::LeakyQueue($it), CountingState::LeakyQueue($state)) => $result,
            (Counting::SlidingLog($it), CountingState::SlidingLog($state)) => $result,
            (Counting::SlidingCounter($it), CountingState::SlidingCounter($state)) => $result,
            _ => {
                debug_assert!(false, "a state of another algorithm");
                $otherwise
            }
        }
    };
}

impl Algorithm for Counting {
    type State = CountingState;

    fn limit(&self) -> Units {
        each!(self, it => it.limit())
    }

    fn fills(&self) -> u64 {
        each!(self, it => it.fills())
    }

    fn fresh(&self) -> CountingState {
        match self {
            Self::FixedWindow(it) => CountingState::FixedWindow(it.fresh()),
            Self::TokenBucket(it) => CountingState::TokenBucket(it.fresh()),
            Self::LeakyQueue(it) => CountingState::LeakyQueue(it.fresh()),
            Self::SlidingLog(it) => CountingState::SlidingLog(Box::new(it.fresh())),
            Self::SlidingCounter(it) => CountingState::SlidingCounter(Box::new(it.fresh())),
        }
    }

    fn take(&self, state: &mut CountingState, cost: Units, now: Moment) -> Decision {
        each_state!(self, state, it, state => it.take(state, cost, now), self.take(&mut self.fresh(), cost, now))
    }

    fn standing(&self, state: &CountingState, now: Moment) -> Standing {
        each_state!(self, state, it, state => it.standing(state, now), self.standing(&self.fresh(), now))
    }

    fn charge(&self, state: &mut CountingState, cost: Units, now: Moment) {
        each_state!(self, state, it, state => it.charge(state, cost, now), ());
    }

    fn refund(&self, state: &mut CountingState, cost: Units, now: Moment) {
        each_state!(self, state, it, state => it.refund(state, cost, now), ());
    }

    fn change(&self, next: &Self, state: &mut CountingState, now: Moment) {
        if self != next {
            *state = self.converted(next, state, now);
        }
    }

    fn is_fresh(&self, state: &CountingState, now: Moment) -> bool {
        each_state!(self, state, it, state => it.is_fresh(state, now), true)
    }
}

impl Counting {
    /// Returns the state of another limit with the same ratio in use, which counts as if it had just come.
    fn converted(&self, next: &Self, state: &CountingState, now: Moment) -> CountingState {
        let standing = self.standing(state, now);
        let (limit, next_limit) = (self.limit().as_f64(), next.limit().as_f64());
        let used = self.limit().saturating_sub(standing.remaining).as_f64();
        let ratio = if limit > 0.0 { used / limit } else { 1.0 };
        let mut converted = next.fresh();
        let used = Units::at_least(ratio * next_limit).unwrap_or(next.limit());
        next.charge(
            &mut converted,
            used.min(next.limit()).saturating_add(standing.debt),
            now,
        );
        converted
    }
}
