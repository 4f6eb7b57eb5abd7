//! Random operations on an algorithm and on its reference.

use std::time::Duration;

use doorward_limits::{Algorithm, Decision, Limiter, Moment, Rate, Units};

use crate::reference::dumb::{Dumb, Rule, UNIT};
use crate::reference::ratio::Ratio;

/// Default number of operations.
const OPERATIONS: u64 = 1_000_000;

pub(crate) fn operations() -> u64 {
    let operations = std::env::var("DOORWARD_LIMITS_OPERATIONS");
    operations.map_or(OPERATIONS, |it| it.parse().unwrap())
}

/// Number of operations after which another limiter begins, so that fractions stay within the promised bits.
const LIFE: u64 = 250;

pub(crate) fn limited(rule: &Rule) -> Units {
    Units::from_parts(rule.limit)
}

pub(crate) fn flowing(rule: &Rule) -> Rate {
    let (amount, nanos) = rule.rate;
    let nanos = u64::try_from(nanos).unwrap();
    Rate::new(Units::from_parts(amount), Duration::from_nanos(nanos)).unwrap()
}

pub(crate) fn windowed(rule: &Rule) -> Rate {
    let window = u64::try_from(rule.window).unwrap();
    Rate::new(limited(rule), Duration::from_nanos(window)).unwrap()
}

pub(crate) fn wait(rule: &Rule) -> Duration {
    Duration::from_nanos(u64::try_from(rule.wait).unwrap())
}

/// Random numbers from a seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

const SECOND: u128 = 1_000_000_000;

/// Uneven rates, each as an amount and a period.
const RATES: &[(u128, u128)] = &[
    (10, SECOND),
    (1, SECOND),
    (3, SECOND),
    (7, 3_600 * SECOND),
    (4_999, 86_400 * SECOND),
    (100_000, SECOND),
    (1, 3),
    (10, 60 * SECOND),
];

const WINDOWS: &[i128] = &[2, 7, 333_333_333, 1_000_000_000, 60_000_000_000];

/// A run of random operations.
pub(crate) struct Run {
    chance: Chance,
    now: i128,
    /// Instants of the answers.
    told: i128,
    rule: Rule,
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut run = Self {
            chance: Chance(seed),
            now: 0,
            told: 0,
            rule: Rule {
                limit: 0,
                rate: (UNIT, SECOND),
                window: 1,
                wait: 0,
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
            wait: i128::from(self.chance.of(&[0, 1, 2_000_000_000, 90_000_000_000_u64])),
        };
        let start = self
            .chance
            .of(&[0, 1_767_225_600_000_000_000, -5_000_000_000_000, 12_345]);
        (self.now, self.told) = (start, start);
    }

    fn limit(&mut self) -> u128 {
        u128::from(self.chance.of(&[1_u64, 2, 3, 7, 10, 12, 17, 19, 100])) * UNIT
    }

    /// Returns the approximate time scale.
    fn pace(&self) -> u64 {
        let fills = self.rule.limit.max(UNIT) * self.rule.rate.1 / self.rule.rate.0;
        u64::try_from(fills.min(self.rule.window.unsigned_abs() * 2))
            .unwrap()
            .max(2)
    }

    fn tick(&mut self) {
        self.now += match self.chance.below(12) {
            0..=2 => 0,
            3 => 1,
            4 | 5 => (self.told - self.now).max(0),
            6 => (self.told - self.now - 1).max(0),
            7 => self.rule.window - self.now.rem_euclid(self.rule.window),
            8 if self.chance.one_in(4) => -i128::from(self.chance.below(self.pace())),
            8 | 9 => i128::from(self.chance.below(self.pace())),
            10 => i128::from(self.pace() / 10),
            _ => i128::from(self.chance.below(self.pace()) / 8),
        };
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

    pub(crate) fn check<A: Algorithm, D: Dumb>(
        mut self,
        algorithm: impl Fn(&Rule) -> A,
        dumb: impl Fn(Rule) -> D,
    ) {
        let mut limiter = Limiter::new(algorithm(&self.rule));
        let mut reference = dumb(self.rule.clone());
        for operation in 0..operations() {
            if operation % LIFE == 0 {
                self.begin();
                limiter = Limiter::new(algorithm(&self.rule));
                reference = dumb(self.rule.clone());
            }
            self.tick();
            let now = Moment::from_nanos(i64::try_from(self.now).unwrap());
            let cost = self.cost();
            let units = Units::from_parts(cost);
            match self.chance.below(40) {
                0 if cost > 0 => {
                    limiter.charge(units, now);
                    reference.charge(cost, self.now);
                }
                1 | 2 if cost > 0 => {
                    limiter.refund(units, now);
                    reference.refund(cost, self.now);
                }
                3 if self.chance.one_in(2) => self.change(&mut limiter, &mut reference, &algorithm),
                4 | 5 => {
                    let decision = limiter.peek(units, now);
                    self.compare(&reference, decision, cost);
                    self.compare_instants(&reference, decision, cost);
                }
                _ => {
                    let decision = limiter.take(units, now);
                    self.compare(&reference, decision, cost);
                    match decision {
                        Decision::Allowed(_) if cost > 0 => reference.charge(cost, self.now),
                        Decision::After(_) if cost > 0 => reference.refused(cost, self.now),
                        _ => {}
                    }
                    self.compare_instants(&reference, decision, cost);
                }
            }
            self.compare_standing(&limiter, &reference, now);
        }
    }

    fn change<A: Algorithm>(
        &mut self,
        limiter: &mut Limiter<A>,
        reference: &mut impl Dumb,
        algorithm: impl Fn(&Rule) -> A,
    ) {
        let now = Moment::from_nanos(i64::try_from(self.now).unwrap());
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
        limiter.set_limit(algorithm(&self.rule), now);
        reference.set_limit(self.rule.clone(), self.now);
    }

    fn compare(&self, reference: &impl Dumb, decision: Decision, cost: u128) {
        let passes = reference.passes(cost, self.now);
        assert_eq!(
            decision.is_allowed(),
            passes,
            "{cost} of {:?} at {}",
            self.rule,
            self.now
        );
        match decision {
            Decision::Allowed(allowed) => {
                let delay = Ratio::new(allowed.delay.as_nanos(), 1);
                assert_eq!(delay, reference.delay(self.now));
            }
            Decision::Never(_) => assert!(cost > self.rule.limit),
            Decision::After(_) => {}
        }
    }

    /// Checks that the request passes at the promised instant, and not a nanosecond earlier.
    fn compare_instants(&mut self, reference: &impl Dumb, decision: Decision, cost: u128) {
        let Decision::After(wait) = decision else {
            return;
        };
        let then = self.now + i128::try_from(wait.as_nanos()).unwrap();
        self.told = then;
        if !reference.tells_of(cost, self.now) {
            return;
        }
        // More than a ban lets pass at once would lead to the next one.
        let passes = cost > self.rule.limit || reference.passes(cost, then);
        assert!(
            passes,
            "{wait:?} is too short for {cost} of {:?}",
            self.rule
        );
        let passes = reference.passes(cost, then - 1);
        assert!(
            !passes,
            "{wait:?} is too long for {cost} of {:?}",
            self.rule
        );
    }

    fn compare_standing<A: Algorithm>(
        &self,
        limiter: &Limiter<A>,
        reference: &impl Dumb,
        now: Moment,
    ) {
        let standing = limiter.standing(now);
        let there = reference.there(self.now);
        let there = if there.is_negative() {
            0
        } else {
            there.floor()
        };
        assert_eq!(
            standing.remaining.parts(),
            there,
            "of {:?} at {}",
            self.rule,
            self.now
        );
        let reset = i128::try_from(standing.reset.as_nanos()).unwrap();
        let is_all_there = |now| reference.is_all_there(now);
        assert!(
            reset == 0 || is_all_there(self.now + reset),
            "not all is there after {reset}"
        );
        let too_long = reset > 0 && is_all_there(self.now + reset - 1);
        assert!(!too_long, "{reset} is too long for {:?}", self.rule);
        assert!(reset > 0 || is_all_there(self.now), "not all is there");
    }
}
