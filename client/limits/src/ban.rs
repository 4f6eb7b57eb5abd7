//! Ban: a caller that exceeds a threshold is refused for a long time.
//!
//! An interval begins with the first request. More than `threshold` in one interval is an offence. From then on, all
//! requests are refused until the end of the interval plus the length of the ban. With a threshold of 2,000, the
//! 2,001st request bans. Nothing prolongs a ban, and neither a refund nor another limit lifts it. Use it against brute
//! force: charge failed log-ins, and peek before the next one.
//!
//! Attempts count, even those that another limit refuses ([`Algorithm::attempt`]).

use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::units::Units;
use crate::wide::scaled;
use crate::window::nanos_until;

/// A threshold per interval, and the ban after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Threshold in each interval.
    rate: Rate,
    /// In nanoseconds; a length beyond the range of time lasts for ever.
    ban: u128,
}

/// State of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanState {
    phase: Phase,
    /// Time of the latest change.
    at: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// No request counts.
    Idle,
    /// An interval has begun.
    Counting {
        since: Moment,
        /// Remaining parts of a unit below the threshold.
        left: u128,
    },
    /// The threshold was exceeded.
    Banned { until: i128 },
}

impl Ban {
    /// Creates a ban of length `ban`, after more than the rate's amount in one of its periods.
    pub const fn new(rate: Rate, ban: Duration) -> Self {
        Self {
            rate,
            ban: ban.as_nanos(),
        }
    }

    /// Returns the end of an interval that began at `since`.
    const fn end(&self, since: Moment) -> i128 {
        since.nanos() as i128 + self.rate.period().get() as i128
    }

    /// Returns the phase at this time.
    fn phase<'a>(&self, state: &'a BanState, now: Moment) -> &'a Phase {
        let now = i128::from(now.max(state.at).nanos());
        match &state.phase {
            Phase::Counting { since, .. } if self.end(*since) <= now => &Phase::Idle,
            Phase::Banned { until } if *until <= now => &Phase::Idle,
            phase => phase,
        }
    }

    /// Returns the phase after `cost` is counted.
    fn counted(&self, state: &BanState, cost: Units, now: Moment) -> Phase {
        let (since, left) = match self.phase(state, now) {
            Phase::Idle => (now.max(state.at), self.limit().parts()),
            Phase::Counting { since, left } => (*since, *left),
            banned @ Phase::Banned { .. } => return banned.clone(),
        };
        match left.checked_sub(cost.parts()) {
            Some(left) => Phase::Counting { since, left },
            None => {
                let ban = i128::try_from(self.ban).unwrap_or(i128::MAX);
                let until = self.end(since).saturating_add(ban);
                Phase::Banned { until }
            }
        }
    }

    fn stands(&self, phase: &Phase, now: Moment) -> Standing {
        let (left, end) = match phase {
            Phase::Idle => (self.limit().parts(), None),
            Phase::Counting { since, left } => (*left, Some(self.end(*since))),
            Phase::Banned { until } => (0, Some(*until)),
        };
        let reset = end.map_or(Duration::ZERO, |end| span(nanos_until(end, now)));
        Standing::new(Units::from_parts(left), reset)
    }

    fn answer(&self, phase: &Phase, now: Moment) -> Decision {
        match phase {
            Phase::Banned { until } => Decision::After(span(nanos_until(*until, now))),
            phase => Decision::Allowed(self.stands(phase, now).allowed()),
        }
    }
}

impl Algorithm for Ban {
    type State = BanState;

    fn limit(&self) -> Units {
        self.rate.amount()
    }

    fn fills(&self) -> u64 {
        self.rate.period().get()
    }

    fn fresh(&self) -> BanState {
        BanState {
            phase: Phase::Idle,
            at: Moment::FIRST,
        }
    }

    fn take(&self, state: &mut BanState, cost: Units, now: Moment) -> Decision {
        self.attempt(state, cost, now);
        self.answer(self.phase(state, now), now)
    }

    fn attempt(&self, state: &mut BanState, cost: Units, now: Moment) {
        if cost > Units::ZERO && !matches!(self.phase(state, now), Phase::Banned { .. }) {
            state.phase = self.counted(state, cost, now);
            state.at = state.at.max(now);
        }
    }

    fn standing(&self, state: &BanState, now: Moment) -> Standing {
        self.stands(self.phase(state, now), now)
    }

    fn charge(&self, state: &mut BanState, cost: Units, now: Moment) {
        self.attempt(state, cost, now);
    }

    fn refund(&self, state: &mut BanState, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        state.phase = self.phase(state, now).clone();
        state.at = state.at.max(now);
        if let Phase::Counting { left, .. } = &mut state.phase {
            let back = left.saturating_add(cost.parts());
            *left = back.min(self.limit().parts());
        }
    }

    fn change(&self, next: &Self, state: &mut BanState, now: Moment) {
        state.phase = self.phase(state, now).clone();
        state.at = state.at.max(now);
        if let Phase::Counting { left, .. } = &mut state.phase {
            *left = scaled(*left, next.limit().parts(), self.limit().parts());
        }
    }

    fn is_fresh(&self, state: &BanState, now: Moment) -> bool {
        matches!(self.phase(state, now), Phase::Idle)
    }
}
