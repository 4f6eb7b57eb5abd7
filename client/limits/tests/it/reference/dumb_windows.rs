//! Algorithms that count in windows, by their definitions: fixed windows, logs, counters, bans.

use std::collections::BTreeMap;

use crate::reference::dumb::{Dumb, Rule, UNIT, scaled};
use crate::reference::ratio::Ratio;

/// A limit in each window.
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

    /// Holds at the end of each window.
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

/// A ban after more than the threshold in an interval.
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
