//! Every algorithm as its definition says it, without a thought for speed: amounts in parts of a unit, as fractions.
//!
//! They say only what is so at a moment. That instants that were told are right is seen by asking again then, and a
//! nanosecond earlier.

use std::collections::BTreeMap;

use crate::ratio::Ratio;

/// Parts of a unit.
pub(crate) const UNIT: u128 = 1_000_000_000;

/// So much, and so much a nanosecond or within so many.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) limit: u128,
    /// For what flows.
    pub(crate) rate: (u128, u128),
    /// For what counts in windows.
    pub(crate) window: i128,
    /// The longest wait of a queue, the length of a ban.
    pub(crate) wait: i128,
}

impl Rule {
    fn limit(&self) -> Ratio {
        Ratio::new(self.limit, 1)
    }

    fn rate(&self) -> Ratio {
        Ratio::new(self.rate.0, self.rate.1)
    }
}

/// What an algorithm is at a moment.
pub(crate) trait Dumb {
    /// What is there; less than nothing in debt.
    fn there(&self, now: i128) -> Ratio;
    /// Whether this passes.
    fn passes(&self, cost: u128, now: i128) -> bool {
        Ratio::new(cost, 1) <= self.there(now)
    }
    /// Whether all is available.
    fn is_all_there(&self, now: i128) -> bool;
    /// Uses so much, or gives it back.
    fn charge(&mut self, cost: u128, now: i128);
    fn refund(&mut self, cost: u128, now: i128);
    fn set_limit(&mut self, rule: Rule, now: i128);
    /// How long who comes now waits.
    fn delay(&self, _now: i128) -> Ratio {
        Ratio::zero()
    }
    /// Whether this would be refused for as long as it was told: a peek does not begin a ban.
    fn tells_of(&self, _cost: u128, _now: i128) -> bool {
        true
    }
    /// A take was refused.
    fn refused(&mut self, _cost: u128, _now: i128) {}
}

/// What is there by another limit: the ratio is kept, or the debt.
fn scaled(there: &Ratio, from: u128, to: u128) -> Ratio {
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
    pub(crate) rule: Rule,
    tokens: Ratio,
    at: Option<i128>,
    is_queue: bool,
}

impl Tokens {
    pub(crate) fn new(rule: Rule, is_queue: bool) -> Self {
        let tokens = rule.limit();
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
        let came = &self.rule.rate() * &Ratio::new(passed, 1);
        (&self.tokens + &came).min(self.rule.limit())
    }

    fn backlog(&self, now: i128) -> Ratio {
        &self.rule.limit() - &self.there_now(now)
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
        self.tokens = (&self.tokens + &Ratio::new(cost, 1)).min(self.rule.limit());
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        self.update(now);
        self.tokens = scaled(&self.tokens, self.rule.limit, rule.limit);
        self.rule = rule;
    }

    fn delay(&self, now: i128) -> Ratio {
        let backlog = self.backlog(now);
        if !self.is_queue || backlog == Ratio::zero() {
            return Ratio::zero();
        }
        let behind = (self.at.unwrap_or(now) - now).max(0);
        let wait = backlog.over(&self.rule.rate()).ceil() + u128::try_from(behind).unwrap();
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
        &self.rule.limit() - &(&self.ahead(now) * &self.rule.rate())
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.ahead(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        let more = Ratio::new(cost, 1).over(&self.rule.rate());
        self.tat = Some(&(&Ratio::new(now, 1) + &self.ahead(now)) + &more);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        let less = Ratio::new(cost, 1).over(&self.rule.rate());
        let ahead = (&self.ahead(now) - &less).max(Ratio::zero());
        self.tat = Some(&Ratio::new(now, 1) + &ahead);
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        let missing = &rule.limit() - &there;
        self.tat = Some(&Ratio::new(now, 1) + &missing.over(&rule.rate()));
        self.rule = rule;
    }
}

/// So many in each window.
pub(crate) struct Windows {
    rule: Rule,
    used: BTreeMap<i128, Ratio>,
    latest: Option<i128>,
}

impl Windows {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            used: BTreeMap::new(),
            latest: None,
        }
    }

    fn window(&self, now: i128) -> i128 {
        self.latest
            .map_or(now, |at| at.max(now))
            .div_euclid(self.rule.window)
    }

    fn used(&self, now: i128) -> Ratio {
        self.used
            .get(&self.window(now))
            .cloned()
            .unwrap_or_else(Ratio::zero)
    }

    fn set(&mut self, used: Ratio, now: i128) {
        let window = self.window(now);
        self.used = BTreeMap::from([(window, used)]);
        self.latest = Some(self.latest.map_or(now, |at| at.max(now)));
    }
}

impl Dumb for Windows {
    fn there(&self, now: i128) -> Ratio {
        &self.rule.limit() - &self.used(now)
    }

    /// At the end of each window.
    fn is_all_there(&self, now: i128) -> bool {
        now.rem_euclid(self.rule.window) == 0 && self.latest.is_none_or(|at| at < now)
    }

    fn charge(&mut self, cost: u128, now: i128) {
        self.set(&self.used(now) + &Ratio::new(cost, 1), now);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.set(
            (&self.used(now) - &Ratio::new(cost, 1)).max(Ratio::zero()),
            now,
        );
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        self.set(&rule.limit() - &there, now);
        self.rule = rule;
    }
}

/// The sum within (now − window, now].
pub(crate) struct Log {
    rule: Rule,
    entries: Vec<(i128, Ratio)>,
    latest: Option<i128>,
}

impl Log {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            entries: Vec::new(),
            latest: None,
        }
    }

    fn counts(&self, now: i128) -> impl Iterator<Item = &(i128, Ratio)> {
        let now = self.latest.map_or(now, |at| at.max(now));
        self.entries
            .iter()
            .filter(move |(t, _)| t + self.rule.window > now)
    }

    fn update(&mut self, now: i128) -> i128 {
        self.entries = self.counts(now).cloned().collect();
        let latest = self.latest.map_or(now, |at| at.max(now));
        self.latest = Some(latest);
        latest
    }

    fn sum(&self, now: i128) -> Ratio {
        self.counts(now)
            .fold(Ratio::zero(), |sum, (_, cost)| &sum + cost)
    }
}

impl Dumb for Log {
    fn there(&self, now: i128) -> Ratio {
        &self.rule.limit() - &self.sum(now)
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.sum(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        let at = self.update(now);
        self.entries.push((at, Ratio::new(cost, 1)));
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.update(now);
        let mut left = Ratio::new(cost, 1);
        for (_, cost) in self.entries.iter_mut().rev() {
            let back = cost.clone().min(left.clone());
            *cost = &*cost - &back;
            left = &left - &back;
        }
        self.entries.retain(|(_, cost)| *cost > Ratio::zero());
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let at = self.update(now);
        let sum = self.sum(now);
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        let to = &rule.limit() - &there;
        if sum > Ratio::zero() {
            let factor = to.over(&Ratio::new(1, 1));
            let factor = &factor * &Ratio::new(1, 1).over(&sum);
            for (_, cost) in &mut self.entries {
                *cost = &*cost * &factor;
            }
        } else if to > Ratio::zero() {
            self.entries.push((at, to));
        }
        self.rule = rule;
    }
}

/// ⌊current + previous·(1 − position)⌋.
pub(crate) struct Counter {
    rule: Rule,
    counts: BTreeMap<i128, Ratio>,
    latest: Option<i128>,
}

impl Counter {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            counts: BTreeMap::new(),
            latest: None,
        }
    }

    fn count(&self, window: i128) -> Ratio {
        self.counts
            .get(&window)
            .cloned()
            .unwrap_or_else(Ratio::zero)
    }

    fn latest(&self, now: i128) -> i128 {
        self.latest.map_or(now, |at| at.max(now))
    }

    fn estimate(&self, now: i128) -> Ratio {
        let now = self.latest(now);
        let window = now.div_euclid(self.rule.window);
        let left = self.rule.window - now.rem_euclid(self.rule.window);
        &self.count(window) + &(&self.count(window - 1) * &Ratio::new(left, self.rule.window))
    }

    fn change(&mut self, now: i128, change: impl Fn(&Ratio) -> Ratio) {
        let now = self.latest(now);
        self.latest = Some(now);
        let window = now.div_euclid(self.rule.window);
        let changed = change(&self.count(window));
        self.counts.insert(window, changed);
        self.counts.retain(|it, _| *it >= window - 1);
    }
}

impl Dumb for Counter {
    fn there(&self, now: i128) -> Ratio {
        let whole = self.estimate(now).floor() / UNIT * UNIT;
        &self.rule.limit() - &Ratio::new(whole, 1)
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.estimate(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        self.change(now, |count| count + &Ratio::new(cost, 1));
    }

    fn refund(&mut self, cost: u128, now: i128) {
        let window = self.latest(now).div_euclid(self.rule.window);
        let cost = Ratio::new(cost, 1);
        let more = (&cost - &self.count(window)).max(Ratio::zero());
        self.change(now, |count| (count - &cost).max(Ratio::zero()));
        let before = (&self.count(window - 1) - &more).max(Ratio::zero());
        self.counts.insert(window - 1, before);
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        self.change(now, Clone::clone);
        let estimate = self.estimate(now);
        let there = &self.rule.limit() - &estimate;
        let to = &rule.limit() - &scaled(&there, self.rule.limit, rule.limit);
        if self.rule.limit == 0 && !there.is_negative() {
            let limit = rule.limit();
            self.change(now, |_| limit.clone());
        } else if estimate > Ratio::zero() {
            let factor = &to * &Ratio::new(1, 1).over(&estimate);
            for count in self.counts.values_mut() {
                *count = &*count * &factor;
            }
        }
        self.rule = rule;
    }
}

/// More than the threshold in an interval bans.
pub(crate) struct Offences {
    rule: Rule,
    since: Option<(i128, Ratio)>,
    banned_until: Option<i128>,
    latest: Option<i128>,
}

impl Offences {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            since: None,
            banned_until: None,
            latest: None,
        }
    }

    fn banned(&self, now: i128) -> bool {
        let now = self.latest.map_or(now, |at| at.max(now));
        self.banned_until.is_some_and(|until| now < until)
    }

    fn counting(&self, now: i128) -> Option<&(i128, Ratio)> {
        let now = self.latest.map_or(now, |at| at.max(now));
        self.since
            .as_ref()
            .filter(|(since, _)| now < since + self.rule.window)
    }

    fn update(&mut self, now: i128) -> i128 {
        let now = self.latest.map_or(now, |at| at.max(now));
        self.since = self.counting(now).cloned();
        self.banned_until = self.banned_until.filter(|_| self.banned(now));
        self.latest = Some(now);
        now
    }
}

impl Dumb for Offences {
    fn there(&self, now: i128) -> Ratio {
        if self.banned(now) {
            return Ratio::new(-1, 1);
        }
        let count = self
            .counting(now)
            .map_or_else(Ratio::zero, |(_, count)| count.clone());
        &self.rule.limit() - &count
    }

    fn is_all_there(&self, now: i128) -> bool {
        !self.banned(now) && self.counting(now).is_none()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        if self.banned(now) {
            return;
        }
        let now = self.update(now);
        let (since, count) = self.since.take().unwrap_or((now, Ratio::zero()));
        let count = &count + &Ratio::new(cost, 1);
        if count > self.rule.limit() {
            self.banned_until = Some(since + self.rule.window + self.rule.wait);
        } else {
            self.since = Some((since, count));
        }
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.update(now);
        if let Some((_, count)) = &mut self.since {
            *count = (&*count - &Ratio::new(cost, 1)).max(Ratio::zero());
        }
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        self.update(now);
        let there = &self.rule.limit() - self.since.as_ref().map_or(&Ratio::zero(), |it| &it.1);
        if let Some((_, count)) = &mut self.since {
            *count = &rule.limit() - &scaled(&there, self.rule.limit, rule.limit);
        }
        self.rule = rule;
    }

    fn refused(&mut self, cost: u128, now: i128) {
        self.charge(cost, now);
    }

    fn tells_of(&self, _cost: u128, now: i128) -> bool {
        self.banned(now)
    }
}
