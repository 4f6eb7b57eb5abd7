//! Parameters of a template by which its capacity is a budget.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_time::budget::AMOUNT_MAX;

use crate::templates::window::{Period, UnixMillis, Window};

/// Time after a turn before unused amounts are carried over, so that holders can say what they used at last.
const CARRIED_AFTER: Duration = Duration::from_secs(60);

/// Part of the capacity that the smallest call can need, if the template does not set `largest_call`.
const LARGEST_CALL_PART: u64 = 64;

/// How a budget is given out.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetTerms {
    /// The windows.
    pub period: Period,
    /// Largest amount of one call. None: a 64th of the capacity.
    pub largest_call: Option<u64>,
    /// Part of the capacity from which on answers say that it is nearly used. None: they never do.
    pub soft_limit: Option<f64>,
    /// Part of the capacity that may be carried over from the window before; at least 0.
    pub carry: f64,
    /// Part of the capacity that is there at the start of a window, and part of the window after which all of it is.
    pub pace: Option<(f64, f64)>,
    /// The parameters as the template has them.
    given: BTreeMap<String, String>,
}

/// Names of the parameters. `decimals` and `unit` are for people: nothing is decided by them.
pub const PARAMETERS: [&str; 8] = [
    "window",
    "offset",
    "largest_call",
    "soft_limit",
    "carry",
    "pace",
    "decimals",
    "unit",
];

/// A parameter that is wrong, and advice.
pub type Problem = (&'static str, String);

impl BudgetTerms {
    /// Parses the parameters of a template: their names and values.
    ///
    /// # Errors
    ///
    /// The names of all parameters that are invalid or missing, each with advice.
    pub fn parse(given: BTreeMap<String, String>) -> Result<Self, Vec<Problem>> {
        let get = |name: &str| given.get(name).map_or("", String::as_str);
        let mut problems = Vec::new();
        if get("window").is_empty() {
            let advice = "window is missing; a budget needs one, such as hour, month or lifetime";
            problems.push(("window", advice.to_owned()));
        }
        let mut number = |name, most: u64| {
            let is_valid = |it: &u64| *it <= most;
            let advice = format!("a whole number of at most {most}");
            let parse = |text: &str| text.parse().ok().filter(is_valid);
            read(&mut problems, (name, get(name)), &advice, parse)
        };
        number("decimals", 15);
        let largest_call = number("largest_call", AMOUNT_MAX);
        let mut part = |name| {
            let advice = "a percentage from 0% to 100%";
            read(&mut problems, (name, get(name)), advice, percent)
        };
        let (soft_limit, carry) = (part("soft_limit"), part("carry"));
        let advice = "the part at the start and the part of the window after which all is there, such as 10% 50%";
        let pace = read(&mut problems, ("pace", get("pace")), advice, |text| {
            let (start, until) = text.split_once(' ')?;
            let until = percent(until).filter(|until| *until > 0.0)?;
            Some((percent(start)?, until))
        });
        if pace.is_some() && get("window") == "lifetime" {
            problems.push(("pace", "a lifetime has no pace; remove it".to_owned()));
        }
        let period = match Period::parse(get("window"), get("offset")) {
            Ok(period) => Some(period),
            Err(_) if get("window").is_empty() => None,
            Err(advice) => {
                let is_offset = advice.starts_with("offset");
                problems.push((if is_offset { "offset" } else { "window" }, advice));
                None
            }
        };
        match period {
            Some(period) if problems.is_empty() => Ok(Self {
                period,
                largest_call,
                soft_limit,
                carry: carry.unwrap_or_default(),
                pace,
                given,
            }),
            _ => Err(problems),
        }
    }

    /// The parameters as the template has them.
    pub fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().map(|(name, value)| (&**name, &**value))
    }

    /// A parameter as the template has it. Empty: it does not have it.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.given.get(name).map_or("", String::as_str)
    }

    /// Largest `least` that counts, of such a capacity.
    pub(crate) fn largest_call(&self, capacity: u64) -> u64 {
        self.largest_call
            .unwrap_or(capacity / LARGEST_CALL_PART)
            .max(1)
    }

    /// Part of the capacity that is there at a time of a window.
    pub(crate) fn paced(&self, capacity: u64, window: Window, at: UnixMillis) -> u64 {
        let Some((start, until)) = self.pace else {
            return capacity;
        };
        let length = (window.end - window.start) as f64 * until;
        let gone = (at - window.start).max(0) as f64 / length;
        (capacity as f64 * (start + (1.0 - start) * gone.min(1.0))) as u64
    }

    /// Amount that is carried over, of what is known to be unused in the window before. None: it is too early for that.
    pub(crate) fn carried(&self, capacity: u64, unused: u64, since_start: i64) -> Option<u64> {
        let is_known = since_start >= i64::try_from(CARRIED_AFTER.as_millis()).unwrap_or(i64::MAX);
        is_known.then(|| unused.min((capacity as f64 * self.carry) as u64))
    }
}

/// Reads a parameter. None: it is not given, or is a problem.
fn read<T>(
    problems: &mut Vec<Problem>,
    (name, text): (&'static str, &str),
    advice: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let value = parse(text);
    if value.is_none() && !text.is_empty() {
        problems.push((name, format!("{name} is {text:?}; give {advice}")));
    }
    value
}

/// Parses a percentage as a part of 1.
fn percent(text: &str) -> Option<f64> {
    let part = text.strip_suffix('%')?.parse::<f64>().ok()? / 100.0;
    (0.0..=1.0).contains(&part).then_some(part)
}
