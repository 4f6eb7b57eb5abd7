//! Ban: who does it too often is shut out for long.
//!
//! More than `threshold` in the interval that began with its first request is an offence: refused from then on until
//! the end of the interval and the length of the ban. 2,000 pass, the 2,001st bans. Nothing prolongs it, and neither a
//! refund nor another limit lifts it. For brute force: failed log-ins are charged, and a peek asks before the next.
//!
//! Attempts count, also those that another limit refuses ([`Algorithm::attempt`]).

use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::SettingsError;
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::rest::Rest;
use crate::units::Units;
use crate::window::{length, nanos_until};

/// So many in an interval, or a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    threshold: Units,
    /// In nanoseconds.
    interval: u64,
    /// In nanoseconds; longer than time lasts if it is more.
    ban: u128,
}

/// What one key has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanState {
    phase: Phase,
    /// The latest change.
    at: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing counts.
    Idle,
    /// An interval has begun.
    Counting {
        since: Moment,
        /// Parts of a unit that are left of the threshold.
        left: u128,
        rest: Rest,
    },
    /// More than the threshold.
    Banned { until: i128 },
}

impl Ban {
    /// More than the rate's amount in one of its periods leads to a ban of that length.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar: an interval begins with a request.
    pub const fn new(rate: Rate, ban: Duration) -> Result<Self, SettingsError> {
        match length(rate) {
            Ok(interval) => Ok(Self {
                threshold: rate.amount(),
                interval: interval.get(),
                ban: ban.as_nanos(),
            }),
            Err(error) => Err(error),
        }
    }

    /// When an interval ends.
    const fn end(&self, since: Moment) -> i128 {
        since.nanos() as i128 + self.interval as i128
    }

    /// Until when an offence bans that happens in the interval that began then.
    fn ban_end(&self, since: Moment) -> i128 {
        let ban = i128::try_from(self.ban).unwrap_or(i128::MAX);
        self.end(since).saturating_add(ban)
    }

    /// The phase that is right now.
    fn phase<'a>(&self, state: &'a BanState, now: Moment) -> &'a Phase {
        let now = i128::from(now.max(state.at).nanos());
        match &state.phase {
            Phase::Counting { since, .. } if self.end(*since) <= now => &Phase::Idle,
            Phase::Banned { until } if *until <= now => &Phase::Idle,
            phase => phase,
        }
    }

    /// What counts so much leads to.
    fn counted(&self, state: &BanState, cost: Units, now: Moment) -> Phase {
        let (since, left, rest) = match self.phase(state, now) {
            Phase::Idle => (now.max(state.at), self.threshold.parts(), Rest::NONE),
            Phase::Counting { since, left, rest } => (*since, *left, rest.clone()),
            banned @ Phase::Banned { .. } => return banned.clone(),
        };
        match left.checked_sub(cost.parts()) {
            Some(left) => Phase::Counting { since, left, rest },
            None => Phase::Banned {
                until: self.ban_end(since),
            },
        }
    }

    fn stands(&self, phase: &Phase, now: Moment) -> Standing {
        let (left, end) = match phase {
            Phase::Idle => (self.threshold.parts(), None),
            Phase::Counting { since, left, .. } => (*left, Some(self.end(*since))),
            Phase::Banned { until } => (0, Some(*until)),
        };
        Standing {
            remaining: Units::from_parts(left),
            reset: end.map_or(Duration::ZERO, |end| span(nanos_until(end, now))),
        }
    }

    fn answer(&self, phase: &Phase, now: Moment) -> Decision {
        match phase {
            Phase::Banned { until } => Decision::After(span(nanos_until(*until, now))),
            phase => Decision::Allowed(self.stands(phase, now).allowed()),
        }
    }

    fn count(&self, state: &mut BanState, cost: Units, now: Moment) {
        if cost > Units::ZERO && !matches!(self.phase(state, now), Phase::Banned { .. }) {
            state.phase = self.counted(state, cost, now);
            state.at = state.at.max(now);
        }
    }
}

impl Algorithm for Ban {
    type State = BanState;

    fn limit(&self) -> Units {
        self.threshold
    }

    fn fresh(&self) -> BanState {
        BanState {
            phase: Phase::Idle,
            at: Moment::FIRST,
        }
    }

    fn take(&self, state: &mut BanState, cost: Units, now: Moment) -> Decision {
        self.count(state, cost, now);
        self.answer(self.phase(state, now), now)
    }

    fn peek(&self, state: &BanState, cost: Units, now: Moment) -> Decision {
        if cost == Units::ZERO {
            return self.answer(self.phase(state, now), now);
        }
        self.answer(&self.counted(state, cost, now), now)
    }

    fn attempt(&self, state: &mut BanState, cost: Units, now: Moment) {
        self.count(state, cost, now);
    }

    fn standing(&self, state: &BanState, now: Moment) -> Standing {
        self.stands(self.phase(state, now), now)
    }

    fn charge(&self, state: &mut BanState, cost: Units, now: Moment) {
        self.count(state, cost, now);
    }

    fn refund(&self, state: &mut BanState, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        state.phase = self.phase(state, now).clone();
        state.at = state.at.max(now);
        if let Phase::Counting { left, rest, .. } = &mut state.phase {
            *left = left.saturating_add(cost.parts());
            if *left >= self.threshold.parts() {
                *left = self.threshold.parts();
                rest.clear();
            }
        }
    }

    fn change(&self, next: &Self, state: &mut BanState, now: Moment) {
        state.phase = self.phase(state, now).clone();
        state.at = state.at.max(now);
        if let Phase::Counting { left, rest, .. } = &mut state.phase {
            let (threshold, next) = (self.threshold.parts(), next.threshold.parts());
            *left = rest.scale(*left, next, threshold).min(next);
        }
    }

    fn is_fresh(&self, state: &BanState, now: Moment) -> bool {
        matches!(self.phase(state, now), Phase::Idle)
    }
}
