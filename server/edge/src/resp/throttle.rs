//! The command `THROTTLE`, with the numbers and the answer of redis-cell.
//!
//! The answer is five integers: whether the request is limited (0 or 1), the limit, what remains of it, the seconds
//! until the same request passes (-1 if it has passed, or never does), and the seconds until all of the limit is
//! available again (-1 if it never is). Seconds are rounded up. A negative quantity gives back, at most what the same
//! caller took and the key does not have back yet.
//!
//! As in redis-cell, the state of a key is the time at which all is available again, so a command with other numbers
//! goes on from the same state. An interval is exact to 10⁻⁹ ns, where redis-cell has whole nanoseconds.
//! At most what comes in 31 days is there at once, so no key is used up for longer.
//! redis-cell rounds seconds down if less than a millisecond is over, so that a client would come back too early.

use std::num::NonZeroU64;
use std::time::Duration;

use doorward::rules::{Decision, Why};
use doorward_limits::{
    Algorithm, FixedWindow, Gcra, GcraState, Key, Keyed, Keys, Moment, Rate, Units,
};

use crate::asker::Asker;

/// Parts in a second: a unit is a nanosecond.
const SECOND: u128 = 1_000_000_000 * Units::ONE.parts();

/// Longest time that a key is used up, in seconds.
const SECONDS_MAX: u64 = 31 * 86_400;

/// A day, in nanoseconds.
const DAY: NonZeroU64 = NonZeroU64::new(86_400_000_000_000).unwrap();

/// Part of the keys that an identity brings in a day, once half of the room is taken.
const PART: usize = 8;

/// Largest number of identities whose new keys are counted apart.
const IDENTITIES_MAX: usize = 10_000;

/// Seconds until the next attempt at a shared limit that has no lease, or a lease of nothing, and of a key that finds no
/// room.
const RETRY: i64 = 1;

/// The answer.
pub(super) type Answer = [i64; 5];

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttle<'a> {
    pub(super) key: &'a [u8],
    pub(super) numbers: Numbers,
    /// Units to take; 0 only looks, and a negative number gives back. None: those of the rule, or else 1.
    pub(super) quantity: Option<i64>,
}

/// The limit in a command: `count` units in `period` seconds, neither of which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Units beyond the first one that may be taken at once.
    pub(super) max_burst: u64,
    pub(super) count: u64,
    pub(super) period: u64,
}

/// States of the keys that no rule matches.
pub(super) struct Buckets {
    hash: Keys,
    keys: Keyed<Gcra>,
    /// Amounts that callers took of the keys.
    taken: Keyed<Gcra>,
    /// Numbers of new keys, by identity.
    newcomers: Keyed<FixedWindow>,
}

impl Buckets {
    /// Creates states for at most `keys_max` keys. The seed of their hash should be random.
    pub(super) fn new(keys_max: usize, seed: [u64; 2]) -> Self {
        let no_room = span_of(Units::ZERO);
        // A unit is a nanosecond.
        let longest = span_of(Units::whole(SECONDS_MAX * 1_000_000_000));
        let amount = Units::whole((keys_max / PART).max(1) as u64);
        let newcomers = FixedWindow::new(Rate::per(amount, DAY));
        Self {
            hash: Keys::new(seed),
            keys: Keyed::new(longest, keys_max).with_overflow(no_room),
            taken: Keyed::new(longest, keys_max).with_overflow(no_room),
            newcomers: Keyed::new(newcomers, IDENTITIES_MAX),
        }
    }

    /// Decides a command by its own numbers.
    pub(super) fn take(&self, command: &Throttle<'_>, caller: &Asker, now: Moment) -> Answer {
        let cost = Units::from_parts(command.cost());
        let of_caller = self.hash.key().text(command.key).text(caller.name());
        let of_caller = of_caller.finish();
        let mut back = Units::ZERO;
        if command.gives_back() {
            back = self.taken.update(of_caller, now, |span, state, now| {
                let back = cost.min(missing(span, state, now));
                span.refund(state, back, now);
                back
            });
        }
        let key = self.hash.key().text(command.key).finish();
        let limit = number(command.numbers.max_burst.saturating_add(1));
        let refused = |wait| [1, limit, 0, wait, wait];
        if let Some(wait) = self.newcomer_wait(&self.keys, key, caller, now) {
            return refused(number(wait.as_secs().saturating_add(1)));
        }
        let answer = self.keys.update(key, now, |span, state, now| {
            span.refund(state, back, now);
            let has_room = span.limit() > Units::ZERO;
            has_room.then(|| command.take(span, state, now))
        });
        let answer = answer.unwrap_or_else(|| refused(RETRY));
        let is_taken = answer[0] == 0 && !command.gives_back();
        let wait = || self.newcomer_wait(&self.taken, of_caller, caller, now);
        if is_taken && wait().is_none() {
            self.taken.charge(of_caller, cost, now);
        }
        answer
    }

    /// Counts a new key of an identity in a crowded map. Returns the time until it may bring it; `None`: now.
    fn newcomer_wait(
        &self,
        map: &Keyed<Gcra>,
        key: Key,
        caller: &Asker,
        now: Moment,
    ) -> Option<Duration> {
        if !map.is_crowded_for(key) {
            return None;
        }
        let identity = self.hash.key().text(caller.identity()).finish();
        let taken = self.newcomers.take(identity, Units::ONE, now);
        taken.retry_after()
    }
}

/// Returns the part of a bucket that is not there.
fn missing(span: &Gcra, state: &GcraState, now: Moment) -> Units {
    let remaining = span.standing(state, now).remaining;
    span.limit().saturating_sub(remaining)
}

/// Returns a bucket of nanoseconds, which come in as time passes: its state is a time.
fn span_of(size: Units) -> Gcra {
    match Gcra::new(size, Rate::per_second(Units::from_parts(SECOND))) {
        Ok(span) => span,
        Err(error) => unreachable!("a whole number comes in each nanosecond: {error}"),
    }
}

impl Throttle<'_> {
    pub(super) const fn gives_back(&self) -> bool {
        matches!(self.quantity, Some(..0))
    }

    /// Returns the time between two units, rounded down, so that the seconds of 3 units at 3 a second are 1.
    fn interval(&self) -> u128 {
        let Numbers { count, period, .. } = self.numbers;
        let interval = u128::from(period) * SECOND / u128::from(count.max(1));
        interval.clamp(1, Units::MAX.parts())
    }

    /// Returns the time of the quantity in parts, also of a negative one.
    fn cost(&self) -> u128 {
        let quantity = self.quantity.unwrap_or(1).unsigned_abs();
        self.interval().saturating_mul(u128::from(quantity))
    }

    fn take(&self, span: &Gcra, state: &mut GcraState, now: Moment) -> Answer {
        let whole = span.limit().parts();
        let missing = missing(span, state, now).parts();
        let limit = self.numbers.max_burst.saturating_add(1);
        let interval = self.interval();
        let burst = interval.saturating_mul(u128::from(limit)).min(whole);
        let cost = match self.gives_back() {
            true => 0,
            false => self.cost(),
        };
        let wanted = missing.saturating_add(cost);
        let is_allowed = wanted <= burst;
        let missing = if is_allowed {
            span.charge(state, Units::from_parts(cost), now);
            wanted
        } else {
            missing
        };
        let retry = match is_allowed || cost > burst {
            true => -1,
            false => seconds(wanted - burst),
        };
        let remaining = number(burst.saturating_sub(missing) / interval);
        let (limited, reset) = (i64::from(!is_allowed), seconds(missing));
        [limited, number(limit), remaining, retry, reset]
    }

    /// Returns the answer of a rule. None: no rule matches. Where a rule has no numbers, those of the command stand in.
    pub(super) fn answer_by_rule(&self, decision: &Decision) -> Option<Answer> {
        if decision.why == Why::NoRule {
            return None;
        }
        let is_allowed = decision.is_allowed;
        let limit = decision.limit().map(Units::floor);
        let limit = limit.unwrap_or_else(|| self.numbers.max_burst.saturating_add(1));
        let remaining = decision.remaining();
        let remaining = remaining.unwrap_or(if is_allowed { limit } else { 0 });
        let whole_seconds = |span: Duration| number(span.as_nanos().div_ceil(1_000_000_000));
        let rule = decision.rule();
        let is_shared = rule.is_some_and(|rule| rule.scope.is_shared());
        let retry = match decision.retry_after() {
            Some(span) => whole_seconds(span),
            None if is_shared && !is_allowed => RETRY,
            None => -1,
        };
        let is_counted = decision.status().is_some_and(|it| it.answer.is_some());
        let never = if is_counted || !is_allowed { -1 } else { 0 };
        let reset = decision.reset().map_or(never, whole_seconds);
        let (limited, remaining) = (i64::from(!is_allowed), number(remaining));
        Some([limited, number(limit), remaining, retry, reset])
    }
}

fn seconds(parts: u128) -> i64 {
    number(parts.div_ceil(SECOND))
}

fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
