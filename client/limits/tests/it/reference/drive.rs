//! Random operations on an algorithm and on its reference.

use doorward_limits::{Allowed, Decision, Limiter, Moment, Units};

use crate::reference::dumb::Dumb;
use crate::reference::ratio::Ratio;
use crate::rule::{Build, Rule, UNIT};

/// Default number of operations.
const OPERATIONS: u64 = 150_000;

fn operations() -> u64 {
    let operations = std::env::var("DOORWARD_LIMITS_OPERATIONS");
    operations.map_or(OPERATIONS, |it| it.parse().unwrap())
}

/// Number of operations after which another limiter begins, so that fractions stay within the promised bits.
const LIFE: u64 = 250;

/// Random numbers from a seed.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

const SECOND: u64 = 1_000_000_000;

/// Uneven rates, each as an amount and a period.
const RATES: &[(u128, u64)] = &[
    (10, SECOND),
    (1, SECOND),
    (3, SECOND),
    (7, 3_600 * SECOND),
    (4_999, 86_400 * SECOND),
    (100_000, SECOND),
    (1, 3),
    (10, 60 * SECOND),
];

const WINDOWS: &[u64] = &[2, 7, 333_333_333, 1_000_000_000, 60_000_000_000];

/// A run of random operations.
#[derive(Debug)]
pub(crate) struct Run {
    chance: Chance,
    now: i128,
    /// Instants of the answers.
    told: i128,
    /// Latest instant.
    ahead: i128,
    /// Instant of the latest change.
    latest: i128,
    rule: Rule,
    /// Whether half of the limit is a soft one.
    is_soft: bool,
}

impl Run {
    pub(crate) fn new(seed: u64, is_soft: bool) -> Self {
        let mut run = Self {
            chance: Chance(seed),
            now: 0,
            told: 0,
            ahead: 0,
            latest: 0,
            is_soft,
            rule: Rule {
                limit: 0,
                rate: (UNIT, SECOND),
                window: 1,
                wait: 0,
                more: 0,
            },
        };
        run.begin();
        run
    }

    /// Starts another limiter.
    fn begin(&mut self) {
        let (amount, period) = self.chance.of(RATES);
        self.rule = Rule {
            limit: self.limit(),
            rate: (amount * UNIT, period),
            window: self.chance.of(WINDOWS),
            wait: self.chance.of(&[0, 1, 2_000_000_000, 90_000_000_000]),
            more: 0,
        };
        let start = self
            .chance
            .of(&[0, 1_767_225_600_000_000_000, -5_000_000_000_000, 12_345]);
        // The soft limit is a half, now and after each change.
        self.rule.more = self.rule.limit / 2;
        (self.now, self.told) = (start, start);
        (self.ahead, self.latest) = (i128::MIN, i128::MIN);
    }

    fn limit(&mut self) -> u128 {
        u128::from(self.chance.of(&[1_u64, 2, 3, 7, 10, 12, 17, 19, 100])) * UNIT
    }

    /// Returns the approximate time scale.
    fn pace(&self) -> u64 {
        let fills = self.rule.limit.max(UNIT) * u128::from(self.rule.rate.1) / self.rule.rate.0;
        let pace = fills.clamp(2, u128::from(self.rule.window) * 2);
        u64::try_from(pace).unwrap()
    }

    fn tick(&mut self) {
        let window = i128::from(self.rule.window);
        self.now += match self.chance.below(12) {
            0..=2 => 0,
            3 => 1,
            4 | 5 => (self.told - self.now).max(0),
            6 => (self.told - self.now - 1).max(0),
            7 => window - self.now.rem_euclid(window),
            8 if self.chance.one_in(4) => -i128::from(self.chance.below(self.pace())),
            8 | 9 => i128::from(self.chance.below(self.pace())),
            10 => i128::from(self.pace() / 10),
            _ => i128::from(self.chance.below(self.pace()) / 8),
        };
        // A larger step back than a minute is another matter (`clock_steps`).
        self.now = self.now.max(self.ahead.saturating_sub(60_000_000_000));
        self.ahead = self.ahead.max(self.now);
    }

    fn cost(&mut self) -> u128 {
        let units = self.rule.limit / UNIT;
        match self.chance.below(16) {
            0 => 0,
            1..=8 => UNIT,
            9 => u128::from(self.chance.next()) % (self.rule.limit + UNIT),
            10 => self.rule.limit + u128::from(self.chance.below(2)),
            _ => (u128::from(self.chance.next()) % (units + 1)) * UNIT,
        }
    }

    /// Returns the time of a reference.
    fn time<D: Dumb>(&self, now: i128) -> i128 {
        if D::IS_LATEST {
            now.max(self.latest)
        } else {
            now
        }
    }

    /// Changes a reference.
    fn update<D: Dumb>(&mut self, reference: &mut D, change: impl Fn(&mut D, i128)) {
        change(reference, self.time::<D>(self.now));
        self.latest = self.latest.max(self.now);
    }

    pub(crate) fn check<A: Build, D: Dumb>(mut self, dumb: impl Fn(Rule) -> D) {
        let mut limiter = Limiter::new(A::build(&self.rule).unwrap());
        let mut reference = dumb(self.rule);
        for operation in 0..operations() {
            if operation % LIFE == 0 {
                self.begin();
                limiter = Limiter::new(A::build(&self.rule).unwrap());
                reference = dumb(self.rule);
            }
            self.tick();
            let now = Moment::from_nanos(i64::try_from(self.now).unwrap());
            let cost = self.cost();
            let units = Units::from_parts(cost);
            match self.chance.below(40) {
                0 if cost > 0 => {
                    limiter.charge(units, now);
                    self.update(&mut reference, |it, now| it.charge(cost, now));
                }
                1 | 2 if cost > 0 => {
                    limiter.refund(units, now);
                    self.update(&mut reference, |it, now| it.refund(cost, now));
                }
                3 if self.chance.one_in(2) => self.change(&mut limiter, &mut reference),
                4 | 5 => {
                    let decision = limiter.peek(units, now);
                    self.compare(&reference, decision, cost);
                    self.compare_instants(&reference, decision, cost);
                }
                _ => {
                    let decision = limiter.take(units, now);
                    self.compare(&reference, decision, cost);
                    match decision {
                        Decision::Allowed(_) if cost > 0 => {
                            self.update(&mut reference, |it, now| it.charge(cost, now));
                        }
                        Decision::After(_) if cost > 0 => {
                            reference.refused(cost, self.time::<D>(self.now));
                        }
                        _ => {}
                    }
                    if let Decision::Allowed(allowed) = decision {
                        let standing = limiter.standing(now);
                        let told = (allowed.remaining, allowed.reset);
                        assert_eq!(told, (standing.remaining, standing.reset));
                        self.compare_warning(allowed);
                    }
                    self.compare_instants(&reference, decision, cost);
                }
            }
            self.compare_standing(&limiter, &reference, now);
        }
    }

    fn change<D: Dumb>(&mut self, limiter: &mut Limiter<impl Build>, reference: &mut D) {
        let now = Moment::from_nanos(i64::try_from(self.now).unwrap());
        self.rule.more = 0;
        if self.chance.one_in(2) {
            self.rule.limit = self.limit();
        }
        if self.chance.one_in(8) {
            self.rule.limit = 0;
        }
        if self.chance.one_in(3) {
            let (amount, period) = self.chance.of(RATES);
            self.rule.rate = (amount * UNIT, period);
        }
        limiter.set_limit(limiter.algorithm().next(&self.rule).unwrap(), now);
        let rule = self.rule;
        self.update(reference, |it, now| it.set_limit(rule, now));
    }

    fn compare<D: Dumb>(&self, reference: &D, decision: Decision, cost: u128) {
        let passes = reference.passes(cost, self.time::<D>(self.now));
        assert_eq!(decision.is_allowed(), passes, "{cost} of {self:?}");
        match decision {
            Decision::Allowed(allowed) => {
                let delay = Ratio::new(allowed.delay.as_nanos(), 1);
                assert_eq!(delay, reference.delay(self.time::<D>(self.now)));
            }
            Decision::Never(_) => assert!(cost > self.rule.limit),
            Decision::After(_) => {}
        }
    }

    /// A limit with a soft one warns if more than half is in use.
    fn compare_warning(&self, allowed: Allowed) {
        let used = self.rule.limit - allowed.remaining.parts();
        let warns = self.is_soft && used > self.rule.limit / 2;
        assert_eq!(allowed.warn, warns, "{allowed:?} of {self:?}");
    }

    /// Checks that the request passes at the promised instant, and not a nanosecond earlier.
    fn compare_instants<D: Dumb>(&mut self, reference: &D, decision: Decision, cost: u128) {
        let Decision::After(wait) = decision else {
            return;
        };
        let then = self.now + i128::try_from(wait.as_nanos()).unwrap();
        self.told = then;
        if !reference.tells_of(self.time::<D>(self.now)) {
            return;
        }
        // More than a ban lets pass at once would lead to the next one.
        let passes = cost > self.rule.limit || reference.passes(cost, self.time::<D>(then));
        assert!(passes, "{wait:?} is too short for {cost} of {self:?}");
        let passes = reference.passes(cost, self.time::<D>(then - 1));
        assert!(!passes, "{wait:?} is too long for {cost} of {self:?}");
    }

    fn compare_standing<D: Dumb>(&self, limiter: &Limiter<impl Build>, reference: &D, now: Moment) {
        let standing = limiter.standing(now);
        let there = reference.there(self.time::<D>(self.now));
        let there = there.max(Ratio::zero()).floor();
        assert_eq!(standing.remaining.parts(), there, "{self:?}");
        let reset = i128::try_from(standing.reset.as_nanos()).unwrap();
        let is_all_there = |now| reference.is_all_there(self.time::<D>(now));
        assert!(
            is_all_there(self.now + reset),
            "not after {reset}: {self:?}"
        );
        let too_long = reset > 0 && is_all_there(self.now + reset - 1);
        assert!(!too_long, "{reset} is too long for {self:?}");
        let is_fresh = reference.is_fresh(self.time::<D>(self.now));
        assert_eq!(limiter.is_fresh(now), is_fresh, "{self:?}");
    }
}
