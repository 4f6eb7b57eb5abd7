//! A token bucket for many threads. A take is one atomic exchange, and a refusal writes nothing.
//!
//! Use it where every request passes one limit. Its answers equal those of [`TokenBucket`], field by field, at any rate
//! and burst. Threads may use their clock readings in any order: as in a token bucket, time that goes back counts as no
//! time.
//!
//! After a large step back of the clock (`timeline.rs`), the level counts from the clock's time on.
//!
//! No thread waits for a lock, unless another one changes the limit or is interrupted within the three stores of a take
//! ([`crate::cell`]). A take is always inlined, so that constant costs and unused parts of an answer cost nothing.

use std::hint;
use std::sync::Mutex;

use crate::cell::{ATTEMPTS, Cell};
use crate::decision::{Decision, Standing};
use crate::flow::Flow;
use crate::level::Level;
use crate::limit::Limit;
use crate::lock::lock;
use crate::moment::Moment;
use crate::timeline::{STEP_MAX, step_max};
use crate::token_bucket::TokenBucket;
use crate::units::Units;

/// A token bucket that threads share.
#[derive(Debug)]
pub struct AtomicBucket {
    cell: Cell,
    /// Locked while one thread holds the bucket.
    holder: Mutex<()>,
}

impl AtomicBucket {
    /// Creates a full bucket.
    pub const fn new(bucket: TokenBucket) -> Self {
        Self {
            cell: Cell::new(bucket.flow, Level::FULL),
            holder: Mutex::new(()),
        }
    }

    /// Takes `cost` if it is available.
    ///
    /// It is inlined, without a closure, so that the answer is made where its result is known. Through a call, all
    /// parts of the answer would be computed and written, although a caller may use only one.
    #[inline(always)]
    pub fn take(&self, cost: Units, now: Moment) -> Decision {
        if let Some(look) = self.cell.look()
            && look.level.at <= now
        {
            let mut level = look.level;
            let decision = level.take(&look.flow, cost, now);
            let is_taken = decision.is_allowed() && cost > Units::ZERO;
            if self.cell.decide(&look, is_taken.then_some(level)) {
                return decision;
            }
        }
        self.take_again(cost, now)
    }

    /// Takes after another thread has written, or has read the clock later.
    #[cold]
    fn take_again(&self, cost: Units, now: Moment) -> Decision {
        self.update(now, |flow, level| level.take(flow, cost, now))
    }

    /// Returns the answer that a take would get. A peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.update(now, |flow, level| {
            let mut looked = *level;
            looked.take(flow, cost, now)
        })
    }

    /// Returns the standing of the bucket, even if it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        self.update(now, |flow, level| level.standing(flow, now))
    }

    /// Takes `cost`, available or not.
    pub fn charge(&self, cost: Units, now: Moment) {
        self.update(now, |flow, level| level.charge(flow, cost, now));
    }

    /// Gives back `cost`. Any amount above full is lost.
    pub fn refund(&self, cost: Units, now: Moment) {
        self.update(now, |flow, level| level.refund(flow, cost, now));
    }

    /// Sets another limit. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&self, next: TokenBucket, now: Moment) {
        self.held(now, |flow, level| {
            level.change(flow, &next.flow, now);
            *flow = next.flow;
        });
    }

    /// Returns whether everything is available.
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.update(now, |flow, level| level.is_full(flow, now))
    }

    /// Does one operation on the level. If the clock was set back, or the cell stays closed, it holds the bucket.
    fn update<R>(&self, now: Moment, operation: impl Fn(&Flow, &mut Level) -> R) -> R {
        for _ in 0..ATTEMPTS {
            let Some(look) = self.cell.look() else {
                hint::spin_loop();
                continue;
            };
            if look.level.at.nanos_since(now) > STEP_MAX {
                break;
            }
            let mut level = look.level;
            let answer = operation(&look.flow, &mut level);
            let next = (level != look.level).then_some(level);
            if self.cell.decide(&look, next) {
                return answer;
            }
        }
        self.held(now, |flow, level| operation(flow, level))
    }

    /// Does one operation while all other threads are kept off.
    fn held<R>(&self, now: Moment, operation: impl FnOnce(&mut Flow, &mut Level) -> R) -> R {
        let _holder = lock(&self.holder);
        let (mut flow, mut level) = self.cell.close();
        if level.at.nanos_since(now) > step_max(flow.fills()) {
            level.at = now;
        }
        let answer = operation(&mut flow, &mut level);
        self.cell.open(&flow, level);
        answer
    }
}

impl Limit for AtomicBucket {
    #[inline(always)]
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.take(cost, now)
    }

    #[inline]
    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.standing(now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.charge(cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.refund(cost, now);
    }

    fn attempt(&self, _cost: Units, _now: Moment) {}
}
