//! The limit of a rule, and the ban of callers that keep exceeding it.
//!
//! A ban counts all attempts, whatever their cost, even those that the limit or another rule refuses. Each further ban
//! of a caller is twice as long, up to the longest length. The number of bans is forgotten when the longest length has
//! passed since the end of the last one.

use std::time::Duration;

use doorward_limits::{Algorithm, Ban, BanState, Decision, Moment, Rate, Standing, Units};

use crate::rules::counting::{Counting, CountingState};

/// Bans of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bans {
    /// More attempts than the amount, in a period that begins with an attempt, lead to a ban.
    pub threshold: Rate,
    /// Length of a first ban.
    pub length: Duration,
    /// Length that later bans do not exceed. The same as `length`: all bans are equally long.
    pub longest: Duration,
}

/// A limit, and perhaps bans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The limit.
    pub limit: Counting,
    /// The bans.
    pub bans: Option<Bans>,
}

/// State of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardedState {
    limit: CountingState,
    bans: Option<Box<Offences>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Offences {
    state: BanState,
    /// Number of bans.
    number: u32,
    /// End of the last one.
    until: Moment,
}

impl Bans {
    /// Creates bans that begin with a length, and double with each further one up to the longest.
    pub fn new(threshold: Rate, length: Duration, longest: Duration) -> Self {
        Self {
            threshold,
            length,
            longest: longest.max(length),
        }
    }

    /// Returns the ban after a number of others.
    fn step(&self, number: u32) -> Ban {
        let length = self.length.saturating_mul(2_u32.saturating_pow(number));
        Ban::new(self.threshold, length.min(self.longest))
    }

    fn is_over(&self, offences: &Offences, now: Moment) -> bool {
        offences.number == 0 || now >= offences.until.after(self.longest)
    }

    /// Counts an attempt. Returns the refusal of a banned caller.
    fn count(&self, offences: &mut Offences, now: Moment) -> Option<Decision> {
        if self.is_over(offences, now) {
            offences.number = 0;
        }
        let ban = self.step(offences.number);
        let was_banned = !ban.peek(&offences.state, Units::ZERO, now).is_allowed();
        let decision = ban.take(&mut offences.state, Units::ONE, now);
        if let (false, Decision::After(wait)) = (was_banned, decision) {
            offences.number += 1;
            offences.until = now.after(wait);
        }
        (!decision.is_allowed()).then_some(decision)
    }
}

impl Guarded {
    /// Returns the refusal of a banned caller.
    pub fn ban(&self, state: &GuardedState, now: Moment) -> Option<Decision> {
        let (bans, offences) = (self.bans.as_ref()?, state.bans.as_deref()?);
        let ban = bans.step(offences.number);
        let looked = ban.peek(&offences.state, Units::ZERO, now);
        (!looked.is_allowed()).then_some(looked)
    }

    /// Takes `cost`, available or not, up to a debt. Returns the amount that was taken.
    pub(crate) fn charge_up_to(
        &self,
        debt_max: Units,
        state: &mut GuardedState,
        cost: Units,
        now: Moment,
    ) -> Units {
        let standing = self.limit.standing(&state.limit, now);
        let more = debt_max.saturating_sub(standing.debt);
        let cost = cost.min(standing.remaining.saturating_add(more));
        self.charge(state, cost, now);
        cost
    }

    fn count(&self, state: &mut GuardedState, cost: Units, now: Moment) -> Option<Decision> {
        let bans = self.bans.as_ref()?;
        if cost == Units::ZERO {
            return self.ban(state, now);
        }
        let offences = state.bans.get_or_insert_with(|| {
            Box::new(Offences {
                state: bans.step(0).fresh(),
                number: 0,
                until: Moment::ORIGIN,
            })
        });
        bans.count(offences, now)
    }
}

impl Algorithm for Guarded {
    type State = GuardedState;

    fn limit(&self) -> Units {
        self.limit.limit()
    }

    fn fills(&self) -> u64 {
        let bans = self.bans.as_ref();
        let fills = bans.map_or(0, |bans| bans.step(0).fills());
        self.limit.fills().max(fills)
    }

    fn fresh(&self) -> GuardedState {
        GuardedState {
            limit: self.limit.fresh(),
            bans: None,
        }
    }

    fn take(&self, state: &mut GuardedState, cost: Units, now: Moment) -> Decision {
        let refusal = self.count(state, cost, now);
        refusal.unwrap_or_else(|| self.limit.take(&mut state.limit, cost, now))
    }

    fn attempt(&self, state: &mut GuardedState, cost: Units, now: Moment) {
        self.count(state, cost, now);
    }

    fn standing(&self, state: &GuardedState, now: Moment) -> Standing {
        match self.ban(state, now) {
            Some(Decision::After(reset)) => Standing::new(Units::ZERO, reset),
            _ => self.limit.standing(&state.limit, now),
        }
    }

    fn charge(&self, state: &mut GuardedState, cost: Units, now: Moment) {
        self.limit.charge(&mut state.limit, cost, now);
    }

    fn refund(&self, state: &mut GuardedState, cost: Units, now: Moment) {
        self.limit.refund(&mut state.limit, cost, now);
    }

    fn change(&self, next: &Self, state: &mut GuardedState, now: Moment) {
        self.limit.change(&next.limit, &mut state.limit, now);
        match (&self.bans, &next.bans, &mut state.bans) {
            (Some(bans), Some(next), Some(offences)) => {
                let former = bans.step(offences.number);
                former.change(&next.step(offences.number), &mut offences.state, now);
            }
            (_, None, offences) => *offences = None,
            _ => {}
        }
    }

    fn is_fresh(&self, state: &GuardedState, now: Moment) -> bool {
        let is_over = match (&self.bans, &state.bans) {
            (Some(bans), Some(offences)) => {
                bans.is_over(offences, now) && bans.step(0).is_fresh(&offences.state, now)
            }
            _ => true,
        };
        is_over && self.limit.is_fresh(&state.limit, now)
    }
}
