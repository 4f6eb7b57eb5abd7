//! Missing amount of one bucket: the state that token bucket, meter and queue share.

use crate::decision::{Decision, Standing};
use crate::flow::{Flow, Short};
use crate::moment::Moment;
use crate::rest::Rest;
use crate::units::Units;

/// Missing amount, and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// In drops ([`crate::flow`]).
    missing: i128,
    at: Moment,
    rest: Rest,
}

/// Missing amount now, and the delay of the clock behind the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) missing: i128,
    pub(crate) behind: u64,
}

impl Level {
    /// A full bucket.
    pub(crate) const FULL: Self = Self {
        missing: 0,
        at: Moment::FIRST,
        rest: Rest::NONE,
    };

    /// Returns an empty bucket.
    pub(crate) const fn empty(flow: &Flow, now: Moment) -> Self {
        Self {
            missing: flow.full(),
            at: now,
            rest: Rest::NONE,
        }
    }

    /// Returns a bucket with this missing amount at a time.
    pub(crate) const fn missing_at(missing: i128, at: Moment) -> Self {
        Self {
            missing,
            at,
            rest: Rest::NONE,
        }
    }

    /// Returns the missing amount at the last change, and its time.
    pub(crate) const fn as_set(&self) -> (i128, Moment) {
        (self.missing, self.at)
    }

    #[inline]
    pub(crate) fn read(&self, flow: &Flow, now: Moment) -> Reading {
        Reading {
            missing: flow.after(self.missing, now.nanos_since(self.at)),
            behind: self.at.nanos_since(now),
        }
    }

    /// Sets the missing amount, which was `before` until now.
    #[inline]
    pub(crate) fn set(&mut self, before: Reading, missing: i128, now: Moment) {
        self.missing = missing;
        self.at = self.at.max(now);
        if before.missing == 0 || missing == 0 {
            self.rest.clear();
        }
    }

    /// Returns the answer that a take would get.
    #[inline]
    pub(crate) fn peek(&self, flow: &Flow, cost: Units, now: Moment) -> Decision {
        let reading = self.read(flow, now);
        answer(flow, flow.take(reading.missing, cost), reading.behind)
    }

    #[inline]
    pub(crate) fn take(&mut self, flow: &Flow, cost: Units, now: Moment) -> Decision {
        let reading = self.read(flow, now);
        let taken = flow.take(reading.missing, cost);
        if let (Ok(missing), 1..) = (taken, cost.parts()) {
            self.set(reading, missing, now);
        }
        answer(flow, taken, reading.behind)
    }

    #[inline]
    pub(crate) fn standing(&self, flow: &Flow, now: Moment) -> Standing {
        let reading = self.read(flow, now);
        flow.standing(reading.missing, reading.behind)
    }

    pub(crate) fn charge(&mut self, flow: &Flow, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let reading = self.read(flow, now);
            self.set(reading, flow.charge(reading.missing, cost), now);
        }
    }

    pub(crate) fn refund(&mut self, flow: &Flow, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let reading = self.read(flow, now);
            self.set(reading, flow.refund(reading.missing, cost), now);
        }
    }

    pub(crate) fn change(&mut self, flow: &Flow, next: &Flow, now: Moment) {
        let reading = self.read(flow, now);
        self.set(reading, reading.missing, now);
        self.missing = flow.change(next, reading.missing, &mut self.rest);
    }

    pub(crate) fn is_full(&self, flow: &Flow, now: Moment) -> bool {
        self.read(flow, now).missing == 0
    }
}

/// Returns the decision for the result of a take.
#[inline]
fn answer(flow: &Flow, taken: Result<i128, Short>, behind: u64) -> Decision {
    match taken {
        Ok(missing) => Decision::Allowed(flow.standing(missing, behind).allowed()),
        Err(short) => flow.refusal(short, behind),
    }
}
