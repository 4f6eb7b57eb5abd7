//! The limit of a descriptor, and its bans.

use std::time::Duration;

use doorward_limits::{
    Algorithm as _, FixedWindow, LeakyQueue, Rate, SettingsError, SlidingCounter, SlidingLog,
    SoftHard, TokenBucket, Units,
};

use doorward_yaml::{PlacedValue, Value};

use super::Reader;
use super::scalar::duration;
use crate::rules::counting::Counting;
use crate::rules::guarded::{Bans, Guarded};
use crate::rules::rule::{Algorithm, Counted, Limit, MAX_WAIT};

/// Units of envoyproxy/ratelimit, in seconds.
const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

/// Fields that say a rate.
const RATE_FIELDS: [&str; 3] = ["unit", "requests_per_unit", "rate"];

/// Longest ban of `growing: true`.
const BAN_MAX: Duration = Duration::from_secs(86_400);

/// Largest amount of a `sliding_log`, which keeps 8 bytes for each request.
const LOG_MAX: u64 = 100_000;

impl<'a> Reader<'a> {
    /// Returns the limit; `None` with a problem. `max_wait`: as it is written.
    pub(super) fn limit(
        &mut self,
        form: &'a PlacedValue,
        (cost, max_wait): (u64, Option<Duration>),
        bans: Option<Bans>,
    ) -> Option<Limit> {
        let line = form.place.line;
        let is_said = self
            .scalar(form, "unlimited")
            .is_some_and(|(text, _)| text != "false");
        let is_unlimited = self.truth(form, "unlimited");
        let mut rate = RATE_FIELDS.iter();
        if is_said && !is_unlimited && rate.all(|it| self.scalar(form, it).is_none()) {
            return None;
        }
        if is_unlimited {
            self.unlimited_alone(form, bans.is_some());
            return Some(Limit::Unlimited);
        }
        let rate = self.rate(form);
        let algorithm: Algorithm = self.word(form, "algorithm").unwrap_or_default();
        let burst = self.amount(form, "burst");
        let soft_limit = self.amount(form, "soft_limit");
        let rate = rate?;
        if !matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyQueue) {
            let why = "needs algorithm: token_bucket or leaky_queue; windows have none";
            self.refuse(form, &["burst"], why);
        }
        if algorithm == Algorithm::SlidingLog && rate.amount() > Units::whole(LOG_MAX) {
            let message = format!(
                "algorithm: sliding_log keeps each request, {LOG_MAX} at most; write sliding_counter"
            );
            self.problem(line, message);
            return None;
        }
        if algorithm == Algorithm::LeakyQueue && max_wait.is_none() {
            self.check_turns(rate, burst, line);
        }
        let limit = match counting(algorithm, rate, burst, max_wait.unwrap_or(MAX_WAIT)) {
            Ok(limit) => limit,
            Err(error) => {
                self.problem(line, format!("rate_limit: {error}"));
                return None;
            }
        };
        let most = limit.limit();
        if rate.amount() > Units::ZERO && most < Units::whole(cost) {
            let message = format!(
                "rate_limit: {most} at once is less than the cost of {cost}, so no request passes; write a larger amount or burst, or a smaller cost"
            );
            self.problem(line, message);
        }
        self.check_soft(form, soft_limit, most);
        let hard = Guarded { limit, bans };
        let soft = soft_limit.unwrap_or(most);
        let settings = SoftHard::new(hard, soft);
        Some(Limit::Counted(Box::new(Counted {
            rate,
            algorithm,
            soft_limit,
            settings,
        })))
    }

    /// Refuses fields of a limit beside `unlimited: true`.
    fn unlimited_alone(&mut self, form: &'a PlacedValue, has_ban: bool) {
        let beside = "stands beside unlimited; remove one of the two";
        self.refuse(form, &RATE_FIELDS, beside);
        self.refuse(form, &["algorithm", "burst", "soft_limit"], beside);
        if has_ban {
            self.problem(form.place.line, format!("ban: {beside}"));
        }
    }

    /// Refuses a soft limit that is not below the limit.
    fn check_soft(&mut self, form: &'a PlacedValue, soft_limit: Option<Units>, most: Units) {
        if let (Some((_, line)), Some(soft)) = (self.scalar(form, "soft_limit"), soft_limit)
            && soft >= most
        {
            let remedy = match most {
                Units::ZERO => "remove it, since nothing is below 0".to_owned(),
                most => format!("write less than {most}"),
            };
            let message = format!("soft_limit: {soft} is not below the limit; {remedy}");
            self.problem(line, message);
        }
    }

    /// Refuses a queue whose requests would wait longer than the default of `max_wait`, so that it refuses them.
    fn check_turns(&mut self, rate: Rate, burst: Option<Units>, line: u64) {
        let turns = burst.map_or(Units::ONE, |burst| burst.saturating_sub(Units::ONE));
        let Some(turn) = turn(rate) else { return };
        let wait = turns.as_f64() * turn / 1e6;
        if wait > MAX_WAIT.as_secs_f64() * 1e3 {
            let wait = humantime::format_duration(Duration::from_millis(wait.ceil() as u64));
            let message = format!(
                "max_wait: is missing; a request of this queue may wait for {wait}, and by default for 5ms only; write it"
            );
            self.problem(line, message);
        }
    }

    /// Returns the rate of `rate`, or of `unit` and `requests_per_unit`.
    fn rate(&mut self, form: &'a PlacedValue) -> Option<Rate> {
        let units = ["unit", "requests_per_unit"];
        if self.scalar(form, "rate").is_some() {
            if units.iter().any(|it| self.scalar(form, it).is_some()) {
                let why = "stands beside unit or requests_per_unit; remove one of the two";
                self.refuse(form, &["rate"], why);
            }
            let what = "a rate such as 10/min or 2000/20min";
            return self.parsed(form, "rate", what, |text| text.parse().ok());
        }
        let what = "second, minute, hour, day, week, month or year";
        let unit = self.parsed(form, "unit", what, seconds);
        let what = "a whole number from 0 to 4294967295";
        let amount: Option<u32> = self.number(form, "requests_per_unit", what, |_| true);
        self.require(form, &units, "or a rate such as 10/min");
        Rate::new(Units::whole(amount?.into()), Duration::from_secs(unit?)).ok()
    }

    /// Returns the bans; `None` with a problem.
    pub(super) fn bans(&mut self, form: &'a PlacedValue) -> Option<Bans> {
        const EXAMPLE: &str = "ban: {threshold: 20, interval: 1min, length: 10min}";
        let line = form.place.line;
        if matches!(form.value, Value::Null) {
            self.problem(line, format!("ban: is empty; write it, as in {EXAMPLE}"));
            return None;
        }
        let what = "a whole number of attempts above 0";
        let threshold: Option<u32> =
            self.number(form, "threshold", what, |threshold| *threshold > 0);
        let what = "a duration above 0, such as 1min";
        let rate = self.parsed(form, "interval", what, |text| {
            Rate::new(Units::whole(threshold.unwrap_or(1).into()), duration(text)?).ok()
        });
        let length = self.duration(form, "length");
        let fields = ["threshold", "interval", "length"];
        self.require(form, &fields, &format!("as in {EXAMPLE}"));
        let longest = match self.scalar(form, "growing") {
            None => length?,
            Some(("true" | "false", _)) => match self.truth(form, "growing") {
                true => BAN_MAX,
                false => length?,
            },
            Some((_, line)) => {
                let longest = self.duration(form, "growing")?;
                if length.is_some_and(|length| longest < length) {
                    let message = "growing: is shorter than length; write a longer duration";
                    self.problem(line, message.to_owned());
                }
                longest
            }
        };
        threshold?;
        Some(Bans::new(rate?, length?, longest))
    }
}

/// Returns the nanoseconds from one request of a queue to the next. None: nothing passes.
pub(crate) fn turn(rate: Rate) -> Option<f64> {
    let period = rate.period().get() as f64;
    (rate.amount() > Units::ZERO).then(|| period / rate.amount().as_f64())
}

/// Returns the settings of an algorithm. The default burst is the amount of one second.
fn counting(
    algorithm: Algorithm,
    rate: Rate,
    burst: Option<Units>,
    max_wait: Duration,
) -> Result<Counting, SettingsError> {
    let burst = burst.unwrap_or(rate.in_a_second());
    Ok(match algorithm {
        Algorithm::FixedWindow => Counting::FixedWindow(FixedWindow::new(rate)),
        Algorithm::TokenBucket => Counting::TokenBucket(TokenBucket::new(burst, rate)?),
        Algorithm::LeakyQueue => Counting::LeakyQueue(LeakyQueue::new(burst, rate, max_wait)?),
        Algorithm::SlidingLog => Counting::SlidingLog(SlidingLog::new(rate)),
        Algorithm::SlidingCounter => Counting::SlidingCounter(SlidingCounter::new(rate)),
    })
}

fn seconds(unit: &str) -> Option<u64> {
    let mut units = UNITS.iter();
    let found = units.find(|(name, _)| name.eq_ignore_ascii_case(unit));
    found.map(|(_, seconds)| *seconds)
}
