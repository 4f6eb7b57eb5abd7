//! Algorithms that count in windows, by their definitions: fixed windows, logs, counters, bans.
//!
//! They never see a time before their latest change.

use std::collections::BTreeMap;

use crate::reference::dumb::{Dumb, scaled};
use crate::reference::ratio::Ratio;
use crate::rule::{Rule, UNIT};

/// A limit in each window.
pub(crate) struct Windows {
    rule: Rule,
    window: i128,
    used: Ratio,
}

impl Windows {
    pub(crate) fn new(rule: Rule) -> Self {
        let (window, used) = (i128::MIN, Ratio::zero());
        Self { rule, window, used }
    }

    fn used(&self, now: i128) -> Ratio {
        if self.window == now.div_euclid(self.rule.window.into()) {
            self.used.clone()
        } else {
            Ratio::zero()
        }
    }

    fn set(&mut self, used: Ratio, now: i128) {
        self.window = now.div_euclid(self.rule.window.into());
        self.used = used.max(Ratio::zero());
    }
}

impl Dumb for Windows {
    const IS_LATEST: bool = true;

    fn there(&self, now: i128) -> Ratio {
        &self.rule.ratio_limit() - &self.used(now)
    }

    /// Holds at the end of each window.
    fn is_all_there(&self, now: i128) -> bool {
        now.rem_euclid(self.rule.window.into()) == 0
    }

    fn is_fresh(&self, now: i128) -> bool {
        self.used(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        self.set(&self.used(now) + &Ratio::new(cost, 1), now);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.set(&self.used(now) - &Ratio::new(cost, 1), now);
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        self.set(&rule.ratio_limit() - &there.down_to(1), now);
        self.rule = rule;
    }
}

/// The sum within (now − window, now].
pub(crate) struct Log {
    rule: Rule,
    entries: Vec<(i128, Ratio)>,
}

impl Log {
    pub(crate) fn new(rule: Rule) -> Self {
        let entries = Vec::new();
        Self { rule, entries }
    }

    fn sum(&self, now: i128) -> Ratio {
        let counts = self.entries.iter();
        let counts = counts.filter(|(t, _)| t + i128::from(self.rule.window) > now);
        counts.fold(Ratio::zero(), |sum, (_, cost)| &sum + cost)
    }

    fn update(&mut self, now: i128) {
        let window = i128::from(self.rule.window);
        self.entries.retain(|(t, _)| t + window > now);
    }
}

impl Dumb for Log {
    const IS_LATEST: bool = true;

    fn there(&self, now: i128) -> Ratio {
        &self.rule.ratio_limit() - &self.sum(now)
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.sum(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        self.update(now);
        self.entries.push((now, Ratio::new(cost, 1)));
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
        self.update(now);
        let sum = self.sum(now);
        let there = scaled(&self.there(now), self.rule.limit, rule.limit);
        let to = &rule.ratio_limit() - &there;
        if sum > Ratio::zero() {
            // Each sum of the latest entries is rounded up.
            let (mut before, mut after) = (Ratio::zero(), Ratio::zero());
            for (_, cost) in self.entries.iter_mut().rev() {
                before = &before + &*cost;
                let scaled = (&before * &to).over(&sum).up();
                *cost = &scaled - &after;
                after = scaled;
            }
        } else if to > Ratio::zero() {
            self.entries.push((now, to));
        }
        self.rule = rule;
    }
}

/// ⌊current + previous·(1 − position)⌋.
pub(crate) struct Counter {
    rule: Rule,
    counts: BTreeMap<i128, Ratio>,
}

impl Counter {
    pub(crate) fn new(rule: Rule) -> Self {
        let counts = BTreeMap::new();
        Self { rule, counts }
    }

    fn count(&self, window: i128) -> Ratio {
        self.counts
            .get(&window)
            .cloned()
            .unwrap_or_else(Ratio::zero)
    }

    fn window(&self, now: i128) -> i128 {
        now.div_euclid(self.rule.window.into())
    }

    fn estimate(&self, now: i128) -> Ratio {
        let (window, length) = (self.window(now), i128::from(self.rule.window));
        let left = Ratio::new(length - now.rem_euclid(length), length);
        &self.count(window) + &(&self.count(window - 1) * &left)
    }
}

impl Dumb for Counter {
    const IS_LATEST: bool = true;

    fn there(&self, now: i128) -> Ratio {
        let whole = self.estimate(now).floor() / UNIT * UNIT;
        &self.rule.ratio_limit() - &Ratio::new(whole, 1)
    }

    fn is_all_there(&self, now: i128) -> bool {
        self.estimate(now) == Ratio::zero()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        let window = self.window(now);
        let count = &self.count(window) + &Ratio::new(cost, 1);
        self.counts.insert(window, count);
    }

    fn refund(&mut self, cost: u128, now: i128) {
        let window = self.window(now);
        let mut left = Ratio::new(cost, 1);
        for window in [window, window - 1] {
            let count = self.count(window);
            let back = count.clone().min(left.clone());
            self.counts.insert(window, &count - &back);
            left = &left - &back;
        }
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        let estimate = self.estimate(now);
        let there = &self.rule.ratio_limit() - &estimate;
        let to = &rule.ratio_limit() - &scaled(&there, self.rule.limit, rule.limit);
        if self.rule.limit == 0 && !there.is_negative() {
            self.counts.insert(self.window(now), rule.ratio_limit());
        } else if estimate > Ratio::zero() {
            for count in self.counts.values_mut() {
                *count = (&*count * &to).over(&estimate).up();
            }
        }
        self.rule = rule;
    }
}

/// A ban after more than the threshold in an interval.
pub(crate) struct Offences {
    rule: Rule,
    since: Option<(i128, Ratio)>,
    banned_until: i128,
}

impl Offences {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            since: None,
            banned_until: i128::MIN,
        }
    }

    fn counting(&self, now: i128) -> Option<&(i128, Ratio)> {
        let since = self.since.as_ref();
        since.filter(|(since, _)| now < since + i128::from(self.rule.window))
    }

    fn count(&self, now: i128) -> Ratio {
        self.counting(now)
            .map_or_else(Ratio::zero, |(_, count)| count.clone())
    }
}

impl Dumb for Offences {
    const IS_LATEST: bool = true;

    fn there(&self, now: i128) -> Ratio {
        if now < self.banned_until {
            return Ratio::new(-1, 1);
        }
        &self.rule.ratio_limit() - &self.count(now)
    }

    fn is_all_there(&self, now: i128) -> bool {
        now >= self.banned_until && self.counting(now).is_none()
    }

    fn charge(&mut self, cost: u128, now: i128) {
        if now < self.banned_until {
            return;
        }
        let since = self.counting(now).map_or(now, |(since, _)| *since);
        let count = &self.count(now) + &Ratio::new(cost, 1);
        self.since = None;
        if count > self.rule.ratio_limit() {
            self.banned_until = since + i128::from(self.rule.window) + i128::from(self.rule.wait);
        } else {
            self.since = Some((since, count));
        }
    }

    fn refund(&mut self, cost: u128, now: i128) {
        self.since = self.counting(now).cloned();
        if let Some((_, count)) = &mut self.since {
            *count = (&*count - &Ratio::new(cost, 1)).max(Ratio::zero());
        }
    }

    fn set_limit(&mut self, rule: Rule, now: i128) {
        self.since = self.counting(now).cloned();
        if let Some((_, count)) = &mut self.since {
            let there = &self.rule.ratio_limit() - count;
            let there = scaled(&there, self.rule.limit, rule.limit).down_to(1);
            *count = &rule.ratio_limit() - &there;
        }
        // The end of a ban stays.
        self.rule = rule;
    }

    fn refused(&mut self, cost: u128, now: i128) {
        self.charge(cost, now);
    }

    fn tells_of(&self, now: i128) -> bool {
        now < self.banned_until
    }
}
