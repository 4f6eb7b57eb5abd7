//! Every algorithm by its definition, without regard to speed: amounts in parts of a unit, as fractions.
//!
//! The references only describe a moment. Waits are checked by asking again at their end, and a nanosecond earlier.

use crate::reference::ratio::Ratio;
use crate::rule::{Rule, UNIT};

impl Rule {
    pub(crate) fn ratio_limit(&self) -> Ratio {
        Ratio::new(self.limit, 1)
    }

    fn ratio_rate(&self) -> Ratio {
        Ratio::new(self.rate.0, self.rate.1)
    }

    /// Returns the drops in a part of a unit: the reduced rate is whole drops in a nanosecond.
    fn drops(&self) -> u64 {
        let (amount, mut common) = (self.rate.0, u128::from(self.rate.1));
        let (period, mut rest) = (self.rate.1, amount);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        period / u64::try_from(common).unwrap()
    }
}

/// State of an algorithm at a moment.
pub(crate) trait Dumb {
    /// Whether time that goes back counts as the time of the latest change. Other references see the given time.
    const IS_LATEST: bool = false;

    /// Returns the available amount, negative in debt.
    fn there(&self, now: i128) -> Ratio;
    /// Returns whether a cost passes.
    fn passes(&self, cost: u128, now: i128) -> bool {
        Ratio::new(cost, 1) <= self.there(now)
    }
    /// Returns whether everything is available.
    fn is_all_there(&self, now: i128) -> bool;
    /// Returns whether the state can be forgotten.
    fn is_fresh(&self, now: i128) -> bool {
        self.is_all_there(now)
    }
    /// Uses an amount, or gives it back.
    fn charge(&mut self, cost: u128, now: i128);
    fn refund(&mut self, cost: u128, now: i128);
    fn set_limit(&mut self, rule: Rule, now: i128);
    /// Returns the wait of a request that comes now.
    fn delay(&self, _now: i128) -> Ratio {
        Ratio::zero()
    }
    /// Returns whether a refusal is due to the present state: a peek does not begin a ban.
    fn tells_of(&self, _now: i128) -> bool {
        true
    }
    /// Records a refused take.
    fn refused(&mut self, _cost: u128, _now: i128) {}
}

/// Returns the available amount under another limit, which keeps the ratio, or the debt.
pub(crate) fn scaled(there: &Ratio, from: u128, to: u128) -> Ratio {
    if there.is_negative() {
        there.clone()
    } else if from == 0 {
        Ratio::zero()
    } else {
        there * &Ratio::new(to, from)
    }
}

/// tokens = min(burst, tokens + rate·Δt).
pub(crate) struct Tokens {
    rule: Rule,
    tokens: Ratio,
    at: Option<i128>,
    is_queue: bool,
}

impl Tokens {
    pub(crate) fn new(rule: Rule, is_queue: bool) -> Self {
        let tokens = rule.ratio_limit();
        Self {
            rule,
            tokens,
            at: None,
            is_queue,
        }
    }

    fn update(&mut self, now: i128) {
        self.tokens = self.there_now(now);
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
    }

    fn there_now(&self, now: i128) -> Ratio {
        let passed = (now - self.at.unwrap_or(now)).max(0);
        let came = &self.rule.ratio_rate() * &Ratio::new(passed, 1);
        (&self.tokens + &came).min(self.rule.ratio_limit())
    }

    fn backlog(&self, now: i128) -> Ratio {
        &self.rule.ratio_limit() - &self.there_now(now)
    }
}

impl Dumb for Tokens {
    fn there(&self, now: i128) -> Ratio {
        let there = self.there_now(now);
        if self.is_queue && self.delay(now) > Ratio::new(self.rule.wait, 1) {
            return there.min(Ratio::new(-1, UNIT));
        }
        there
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.backlog(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        self.update(now);
        self.tokens = &self.tokens - &Ratio::new(cost, 1);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.update(now);
        self.tokens = (&self.tokens + &Ratio::new(cost, 1)).min(self.rule.ratio_limit());
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        self.update(now);
        let tokens = scaled(&self.tokens, self.rule.limit, rule.limit);
        self.tokens = tokens.down_to(rule.drops());
        self.rule = rule;
    }

    fn delay(&self, now: i128) -> Ratio {
        let backlog = self.backlog(now);
        if !self.is_queue || backlog == Ratio::zero() {
            return Ratio::zero();
        }
        let behind = (self.at.unwrap_or(now) - now).max(0);
        let wait = backlog.over(&self.rule.ratio_rate()).ceil() + u128::try_from(behind).unwrap();
        Ratio::new(wait, 1)
    }
}

/// Allowed iff max(TAT, now) + cost·T − now ≤ burst·T.
pub(crate) struct Arrival {
    rule: Rule,
    tat: Option<Ratio>,
}

impl Arrival {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, tat: None }
    }

    fn ahead(&self, now: i128) -> Ratio {
        let now = Ratio::new(now, 1);
        let tat = self.tat.clone().unwrap_or_else(|| now.clone());
        (&tat - &now).max(Ratio::zero())
    }
}

impl Dumb for Arrival {
    fn there(&self, now: i128) -> Ratio {
        &self.rule.ratio_limit() - &(&self.ahead(now) * &self.rule.ratio_rate())
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.ahead(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        let more = Ratio::new(cost, 1).over(&self.rule.ratio_rate());
        self.tat = Some(&(&Ratio::new(now, 1) + &self.ahead(now)) + &more);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        let less = Ratio::new(cost, 1).over(&self.rule.ratio_rate());
        let ahead = (&self.ahead(now) - &less).max(Ratio::zero());
        self.tat = Some(&Ratio::new(now, 1) + &ahead);
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        let missing = &rule.ratio_limit() - &there.down_to(rule.drops());
        self.tat = Some(&Ratio::new(now, 1) + &missing.over(&rule.ratio_rate()));
        self.rule = rule;
    }
}
