//! Any algorithm with numeric settings, so that one law applies to all.

use std::time::Duration;

use doorward_limits::{
    Algorithm, Ban, Decision, FixedWindow, Gcra, LeakyMeter, LeakyQueue, Limiter, Moment, Rate,
    SlidingCounter, SlidingLog, SoftHard, Standing, TokenBucket, Units, WarmUp,
};
use proptest::prelude::*;

/// Settings of limits: each algorithm takes those that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    /// Parts of a unit.
    pub(crate) limit: u128,
    /// An amount in parts of a unit, and its nanoseconds.
    pub(crate) rate: (u128, u64),
    pub(crate) window: u64,
    pub(crate) wait: u64,
}

pub(crate) const UNIT: u128 = 1_000_000_000;

const SECOND: u64 = 1_000_000_000;

impl Setting {
    fn flow(&self) -> Rate {
        let (amount, nanos) = self.rate;
        Rate::new(Units::from_parts(amount), Duration::from_nanos(nanos)).unwrap()
    }

    fn windowed(&self) -> Rate {
        Rate::new(self.limit(), Duration::from_nanos(self.window)).unwrap()
    }

    pub(crate) fn limit(&self) -> Units {
        Units::from_parts(self.limit)
    }

    fn wait(&self) -> Duration {
        Duration::from_nanos(self.wait)
    }
}

/// Returns settings that meet each other's boundaries.
pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let limits = prop::sample::select(vec![1_u128, 2, 3, 7, 10, 12, 19, 100]);
    let rates = vec![
        (10, SECOND),
        (1, SECOND),
        (3, SECOND),
        (7, 3_600 * SECOND),
        (4_999, 86_400 * SECOND),
        (100_000, SECOND),
    ];
    let rates = prop::sample::select(rates);
    let windows = prop::sample::select(vec![2, 333_333_333, SECOND, 60 * SECOND]);
    let waits = prop::sample::select(vec![0, 1, 2 * SECOND]);
    (limits, rates, windows, waits).prop_map(|(limit, rate, window, wait)| Setting {
        limit: limit * UNIT,
        rate: (rate.0 * UNIT, rate.1),
        window,
        wait,
    })
}

/// A limit of one of the algorithms.
pub(crate) trait Subject {
    fn kind(&self) -> Kind;
    fn boxed(&self) -> Box<dyn Subject>;
    fn take(&mut self, cost: Units, now: Moment) -> Decision;
    fn peek(&self, cost: Units, now: Moment) -> Decision;
    fn standing(&self, now: Moment) -> Standing;
    fn charge(&mut self, cost: Units, now: Moment);
    fn refund(&mut self, cost: Units, now: Moment);
    fn set_limit(&mut self, setting: &Setting, now: Moment);
    fn is_fresh(&self, now: Moment) -> bool;
    /// Returns the whole state as text.
    fn memory(&self) -> String;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TokenBucket,
    Gcra,
    LeakyMeter,
    LeakyQueue,
    FixedWindow,
    SlidingLog,
    SlidingCounter,
    Ban,
    SoftHard,
    WarmUp,
}

pub(crate) const KINDS: [Kind; 10] = [
    Kind::TokenBucket,
    Kind::Gcra,
    Kind::LeakyMeter,
    Kind::LeakyQueue,
    Kind::FixedWindow,
    Kind::SlidingLog,
    Kind::SlidingCounter,
    Kind::Ban,
    Kind::SoftHard,
    Kind::WarmUp,
];

struct Of<A: Algorithm> {
    kind: Kind,
    limiter: Limiter<A>,
    build: fn(&Setting) -> Option<A>,
}

impl<A: Algorithm + Clone + 'static> Subject for Of<A> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn boxed(&self) -> Box<dyn Subject> {
        Box::new(Self {
            kind: self.kind,
            limiter: self.limiter.clone(),
            build: self.build,
        })
    }

    fn take(&mut self, cost: Units, now: Moment) -> Decision {
        self.limiter.take(cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.limiter.peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.limiter.standing(now)
    }

    fn charge(&mut self, cost: Units, now: Moment) {
        self.limiter.charge(cost, now);
    }

    fn refund(&mut self, cost: Units, now: Moment) {
        self.limiter.refund(cost, now);
    }

    fn set_limit(&mut self, setting: &Setting, now: Moment) {
        if let Some(next) = (self.build)(setting) {
            self.limiter.set_limit(next, now);
        }
    }

    fn is_fresh(&self, now: Moment) -> bool {
        self.limiter.is_fresh(now)
    }

    fn memory(&self) -> String {
        format!("{:?}", self.limiter.state())
    }
}

/// Creates a fresh limit.
pub(crate) fn subject(kind: Kind, setting: &Setting) -> Box<dyn Subject> {
    try_subject(kind, setting).unwrap()
}

/// Creates a fresh limit; none if such a one cannot be counted.
pub(crate) fn try_subject(kind: Kind, setting: &Setting) -> Option<Box<dyn Subject>> {
    fn of<A: Algorithm + Clone + 'static>(
        kind: Kind,
        setting: &Setting,
        build: fn(&Setting) -> Option<A>,
    ) -> Option<Box<dyn Subject>> {
        let limiter = Limiter::new(build(setting)?);
        Some(Box::new(Of {
            kind,
            limiter,
            build,
        }))
    }
    match kind {
        Kind::TokenBucket => of(kind, setting, |it| {
            TokenBucket::new(it.limit(), it.flow()).ok()
        }),
        Kind::Gcra => of(kind, setting, |it| Gcra::new(it.limit(), it.flow()).ok()),
        Kind::LeakyMeter => of(kind, setting, |it| {
            LeakyMeter::new(it.limit(), it.flow()).ok()
        }),
        Kind::LeakyQueue => of(kind, setting, |it| {
            LeakyQueue::new(it.limit(), it.flow(), it.wait()).ok()
        }),
        Kind::FixedWindow => of(kind, setting, |it| Some(FixedWindow::new(it.windowed()))),
        Kind::SlidingLog => of(kind, setting, |it| SlidingLog::new(it.windowed()).ok()),
        Kind::SlidingCounter => of(kind, setting, |it| SlidingCounter::new(it.windowed()).ok()),
        Kind::Ban => of(kind, setting, |it| Ban::new(it.windowed(), it.wait()).ok()),
        Kind::SoftHard => of(kind, setting, |it| {
            let hard = TokenBucket::new(it.limit(), it.flow()).ok()?;
            Some(SoftHard::new(hard, Units::from_parts(it.limit / 2)))
        }),
        Kind::WarmUp => of(kind, setting, |it| {
            let warm_up = Duration::from_nanos(it.window);
            WarmUp::new(it.flow(), warm_up, Units::whole(3), it.wait()).ok()
        }),
    }
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    /// Wait in 24ths of a setting's pace, plus nanoseconds.
    pub(crate) wait: (i8, i8),
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Take(u128),
    Charge(u128),
    Refund(u128),
    SetLimit(u128),
}

pub(crate) fn cost() -> impl Strategy<Value = u128> {
    prop_oneof![
        4 => (0..14_u128).prop_map(|it| it * UNIT),
        1 => 0..14 * UNIT,
    ]
}

/// Returns a history; time goes back if `back` allows it.
pub(crate) fn history(back: i8) -> impl Strategy<Value = Vec<Op>> {
    let what = prop_oneof![
        8 => cost().prop_map(What::Take),
        1 => cost().prop_map(What::Charge),
        1 => cost().prop_map(What::Refund),
        1 => prop::sample::select(vec![1_u128, 3, 7, 10, 17, 20]).prop_map(What::SetLimit),
    ];
    let nanos = prop_oneof![3 => Just(0), 1 => 0..2_i8];
    let op = ((back..13_i8, nanos), what);
    prop::collection::vec(op.prop_map(|(wait, what)| Op { wait, what }), 0..24)
}

/// Returns the approximate time until everything is available.
pub(crate) fn pace(setting: &Setting) -> i64 {
    let fills = setting.limit * u128::from(setting.rate.1) / setting.rate.0;
    i64::try_from(fills.min(u128::from(setting.window)))
        .unwrap()
        .max(1)
}

/// Plays a history from a time on. Returns the time after it, the settings, and the answers.
pub(crate) fn play(
    subject: &mut dyn Subject,
    setting: &Setting,
    history: &[Op],
    start: i64,
) -> (i64, Setting, Vec<Decision>) {
    let (mut now, mut current, mut answers) = (start, *setting, Vec::new());
    for op in history {
        now += pace(setting) * i64::from(op.wait.0.max(-6)) / 24 + i64::from(op.wait.1);
        let at = Moment::from_nanos(now);
        match op.what {
            What::Take(cost) => answers.push(subject.take(Units::from_parts(cost), at)),
            What::Charge(cost) => subject.charge(Units::from_parts(cost), at),
            What::Refund(cost) => subject.refund(Units::from_parts(cost), at),
            What::SetLimit(limit) => {
                current.limit = limit * UNIT;
                subject.set_limit(&current, at);
            }
        }
    }
    (now, current, answers)
}

/// Compares as [`assert_same`], but allows rounding of windows, at most one part for each change once their counts no
/// longer fit (`grains.rs`). Then the other one never allows more.
pub(crate) fn assert_restored(
    one: &dyn Subject,
    other: &dyn Subject,
    setting: &Setting,
    now: i64,
    changes: usize,
) {
    let kind = one.kind();
    let is_exact = |wait| one.standing(now_in(now, wait)) == other.standing(now_in(now, wait));
    let rounds = matches!(kind, Kind::SlidingCounter | Kind::SlidingLog);
    if !rounds || waits(setting).into_iter().all(is_exact) {
        return assert_same(one, other, setting, now);
    }
    for wait in waits(setting) {
        let at = now_in(now, wait);
        let (exact, rounded) = (one.standing(at), other.standing(at));
        let lost = exact
            .remaining
            .parts()
            .checked_sub(rounded.remaining.parts());
        let most = u128::try_from(changes).unwrap();
        assert!(
            lost.is_some_and(|lost| lost <= most),
            "{kind:?} after {wait}: {rounded:?}, expected {exact:?}"
        );
        assert_eq!(exact.reset, rounded.reset, "{kind:?} after {wait}");
        for cost in [0, 1, UNIT, 3 * UNIT, setting.limit] {
            let cost = Units::from_parts(cost);
            let (exact, rounded) = (one.peek(cost, at), other.peek(cost, at));
            assert!(
                exact.is_allowed() || !rounded.is_allowed(),
                "{kind:?}: {cost} after {wait}"
            );
        }
    }
}

fn waits(setting: &Setting) -> [i64; 7] {
    let pace = pace(setting);
    [0, 1, pace / 7, pace / 3, pace, 2 * pace + 1, 5 * pace]
}

fn now_in(now: i64, wait: i64) -> Moment {
    Moment::from_nanos(now + wait)
}

/// Checks that two limits give equal answers, now and later.
pub(crate) fn assert_same(one: &dyn Subject, other: &dyn Subject, setting: &Setting, now: i64) {
    for wait in waits(setting) {
        let at = now_in(now, wait);
        let kind = one.kind();
        assert_eq!(
            one.standing(at),
            other.standing(at),
            "{kind:?} after {wait}"
        );
        for cost in [0, 1, UNIT, 3 * UNIT, setting.limit] {
            let cost = Units::from_parts(cost);
            let (one, other) = (one.peek(cost, at), other.peek(cost, at));
            assert_eq!(one, other, "{kind:?}: {cost} after {wait}");
        }
    }
}
