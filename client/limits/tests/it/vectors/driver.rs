//! A limit of any algorithm, built from a case's settings.

use std::time::Duration;

use doorward_limits::{
    Algorithm, Ban, FixedWindow, Gcra, InvalidUnits, LeakyMeter, LeakyQueue, Limit, Limiter,
    Moment, Rate, SlidingCounter, SlidingLog, SoftHard, TokenBucket, Units, WarmUp,
};
use serde_json::Value;

/// A limit that a case drives.
pub(crate) trait Driven: Limit {
    /// Changes settings; those that are not named stay.
    fn set_limit(&mut self, changes: &Value, now: Moment);
    /// Returns additional values of the algorithm: stored permits, a warning.
    fn stored(&self, now: Moment) -> Option<Units>;
    fn warns(&self, now: Moment) -> Option<bool>;
}

/// One algorithm and its settings.
struct Driver<A: Algorithm> {
    limiter: Limiter<A>,
    settings: Value,
    build: fn(&Value, Option<&A>) -> A,
    stored: fn(&A, &A::State, Moment) -> Option<Units>,
    warns: fn(&A, &A::State, Moment) -> Option<bool>,
}

impl<A: Algorithm> Limit for Driver<A> {
    fn take(&mut self, cost: Units, now: Moment) -> doorward_limits::Decision {
        self.limiter.take(cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> doorward_limits::Decision {
        self.limiter.peek(cost, now)
    }

    fn attempt(&mut self, cost: Units, now: Moment) {
        self.limiter.attempt(cost, now);
    }

    fn standing(&self, now: Moment) -> doorward_limits::Standing {
        self.limiter.standing(now)
    }

    fn charge(&mut self, cost: Units, now: Moment) {
        self.limiter.charge(cost, now);
    }

    fn refund(&mut self, cost: Units, now: Moment) {
        self.limiter.refund(cost, now);
    }
}

impl<A: Algorithm> Driven for Driver<A> {
    fn set_limit(&mut self, changes: &Value, now: Moment) {
        self.settings.as_object_mut().unwrap().remove("soft");
        merge(&mut self.settings, changes);
        let next = (self.build)(&self.settings, Some(self.limiter.algorithm()));
        self.limiter.set_limit(next, now);
    }

    fn stored(&self, now: Moment) -> Option<Units> {
        (self.stored)(self.limiter.algorithm(), self.limiter.state(), now)
    }

    fn warns(&self, now: Moment) -> Option<bool> {
        (self.warns)(self.limiter.algorithm(), self.limiter.state(), now)
    }
}

/// Replaces the named settings, or those of the base.
pub(crate) fn merge(settings: &mut Value, changes: &Value) {
    for (name, value) in changes.as_object().unwrap() {
        if ["t_ns", "op", "expect", "rule"].contains(&name.as_str()) {
            continue;
        }
        let place = match settings.get("base") {
            Some(_) if name != "soft" => &mut settings["base"][name],
            _ => &mut settings[name],
        };
        *place = value.clone();
    }
}

pub(crate) fn units(value: &Value) -> Result<Units, InvalidUnits> {
    match value {
        Value::String(text) => text.parse(),
        number => number.to_string().parse(),
    }
}

fn amount(settings: &Value, name: &str) -> Units {
    units(&settings[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn span(settings: &Value, name: &str) -> Duration {
    Duration::from_nanos(settings[name].as_u64().unwrap_or_else(|| panic!("{name}")))
}

fn rate(settings: &Value) -> Rate {
    let rate = &settings["rate"];
    Rate::new(amount(rate, "amount"), span(rate, "per_ns")).unwrap()
}

fn windowed(settings: &Value, amount_name: &str, window: &str) -> Rate {
    Rate::new(amount(settings, amount_name), span(settings, window)).unwrap()
}

fn plain<A: Algorithm + 'static>(
    settings: &Value,
    build: fn(&Value, Option<&A>) -> A,
) -> Box<dyn Driven> {
    with(settings, build, |_, _, _| None, |_, _, _| None)
}

fn with<A: Algorithm + 'static>(
    settings: &Value,
    build: fn(&Value, Option<&A>) -> A,
    stored: fn(&A, &A::State, Moment) -> Option<Units>,
    warns: fn(&A, &A::State, Moment) -> Option<bool>,
) -> Box<dyn Driven> {
    Box::new(Driver {
        limiter: Limiter::new(build(settings, None)),
        settings: settings.clone(),
        build,
        stored,
        warns,
    })
}

fn soft_hard(settings: &Value) -> Box<dyn Driven> {
    fn of<A: Buildable + 'static>(settings: &Value) -> Box<dyn Driven> {
        let build: fn(&Value, Option<&SoftHard<A>>) -> SoftHard<A> = |settings, before| {
            let hard = A::build(&settings["base"], None);
            match before.filter(|_| settings["soft"].is_null()) {
                Some(before) => before.with_hard(hard),
                None => SoftHard::new(hard, amount(settings, "soft")),
            }
        };
        with(
            settings,
            build,
            |_, _, _| None,
            |it, state, now| Some(it.warns(state, now)),
        )
    }
    match settings["base"]["algorithm"].as_str().unwrap() {
        "token_bucket" => of::<TokenBucket>(settings),
        "gcra" => of::<Gcra>(settings),
        "leaky_meter" => of::<LeakyMeter>(settings),
        "leaky_queue" => of::<LeakyQueue>(settings),
        "fixed_window" => of::<FixedWindow>(settings),
        "sliding_log" => of::<SlidingLog>(settings),
        "sliding_counter" => of::<SlidingCounter>(settings),
        "ban" => of::<Ban>(settings),
        other => panic!("no algorithm {other}"),
    }
}

/// An algorithm that is built from its settings.
pub(crate) trait Buildable: Algorithm + Sized {
    fn build(settings: &Value, before: Option<&Self>) -> Self;
}

macro_rules! buildable {
    ($($algorithm:ty: $settings:ident => $build:expr;)*) => {$(
        impl Buildable for $algorithm {
            fn build($settings: &Value, _: Option<&Self>) -> Self {
                $build
            }
        }
    )*};
}

buildable! {
    TokenBucket: it => TokenBucket::new(amount(it, "burst"), rate(it)).unwrap();
    Gcra: it => Gcra::new(amount(it, "burst"), rate(it)).unwrap();
    LeakyMeter: it => LeakyMeter::new(amount(it, "capacity"), rate(it)).unwrap();
    LeakyQueue: it => {
        LeakyQueue::new(amount(it, "capacity"), rate(it), span(it, "max_wait_ns")).unwrap()
    };
    FixedWindow: it => FixedWindow::new(windowed(it, "limit", "window_ns"));
    SlidingLog: it => SlidingLog::new(windowed(it, "limit", "window_ns")).unwrap();
    SlidingCounter: it => SlidingCounter::new(windowed(it, "limit", "window_ns")).unwrap();
    Ban: it => Ban::new(windowed(it, "threshold", "interval_ns"), span(it, "ban_ns")).unwrap();
    WarmUp: it => {
        let factor = amount(it, "cold_factor");
        WarmUp::new(rate(it), span(it, "warmup_ns"), factor, span(it, "max_wait_ns")).unwrap()
    };
}

/// Returns the limit that settings describe.
pub(crate) fn driven(settings: &Value) -> Box<dyn Driven> {
    match settings["algorithm"].as_str().unwrap() {
        "token_bucket" => plain(settings, TokenBucket::build),
        "gcra" => plain(settings, Gcra::build),
        "leaky_meter" => plain(settings, LeakyMeter::build),
        "leaky_queue" => plain(settings, LeakyQueue::build),
        "fixed_window" => plain(settings, FixedWindow::build),
        "sliding_log" => plain(settings, SlidingLog::build),
        "sliding_counter" => plain(settings, SlidingCounter::build),
        "ban" => plain(settings, Ban::build),
        "soft_hard" => soft_hard(settings),
        "warm_up" => with(
            settings,
            WarmUp::build,
            |it: &WarmUp, state, now| Some(it.stored(state, now)),
            |_, _, _| None,
        ),
        other => panic!("no algorithm {other}"),
    }
}
