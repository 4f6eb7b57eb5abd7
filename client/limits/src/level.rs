//! Missing amount of one bucket: the state that token bucket, meter and queue share.

use crate::decision::{Decision, Standing};
use crate::flow::Flow;
use crate::moment::Moment;
use crate::units::Units;

/// Missing amount, and its time. Aligned to 8 bytes, so that maps of keys waste none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(8))]
pub(crate) struct Level {
    /// In drops ([`crate::flow`]).
    pub(crate) missing: i128,
    pub(crate) at: Moment,
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
    };

    /// Returns an empty bucket.
    pub(crate) const fn empty(flow: &Flow, now: Moment) -> Self {
        Self {
            missing: flow.full,
            at: now,
        }
    }

    #[inline]
    pub(crate) fn read(&self, flow: &Flow, now: Moment) -> Reading {
        Reading {
            missing: flow.after(self.missing, now.nanos_since(self.at)),
            behind: self.at.nanos_since(now),
        }
    }

    /// Returns the missing amount; below 0 if more has come in than there was room for.
    #[inline(always)]
    pub(crate) const fn missing(&self, flow: &Flow, now: Moment) -> i128 {
        self.missing - flow.in_nanos(now.nanos_since(self.at))
    }

    /// Sets the missing amount.
    #[inline]
    pub(crate) fn set(&mut self, missing: i128, now: Moment) {
        self.missing = missing;
        if now > self.at {
            self.at = now;
        }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, flow: &Flow, cost: Units, now: Moment) -> Decision {
        let taken = flow.take(self.missing(flow, now), cost);
        if let (Ok(missing), 1..) = (taken, cost.parts()) {
            self.set(missing, now);
        }
        let behind = self.at.nanos_since(now);
        match taken {
            Ok(missing) => Decision::Allowed(flow.standing(missing, behind).allowed()),
            Err(short) => flow.refusal(short, behind),
        }
    }

    #[inline]
    pub(crate) fn standing(&self, flow: &Flow, now: Moment) -> Standing {
        let reading = self.read(flow, now);
        flow.standing(reading.missing, reading.behind)
    }

    pub(crate) fn charge(&mut self, flow: &Flow, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let reading = self.read(flow, now);
            self.set(flow.charge(reading.missing, cost), now);
        }
    }

    pub(crate) fn refund(&mut self, flow: &Flow, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let reading = self.read(flow, now);
            self.set(flow.refund(reading.missing, cost), now);
        }
    }

    pub(crate) fn change(&mut self, flow: &Flow, next: &Flow, now: Moment) {
        let reading = self.read(flow, now);
        self.set(flow.change(next, reading.missing), now);
    }

    pub(crate) fn is_full(&self, flow: &Flow, now: Moment) -> bool {
        self.read(flow, now).missing == 0
    }
}
