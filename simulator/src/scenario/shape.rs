//! What values of a scenario file look like: how each is read, and what a table says it is.

use std::time::Duration;

use doorward_documents::form::At;
use doorward_documents::placed_value::Value;
use doorward_engine::id::ResourceId;

use crate::scenario::declared::{Record, Words};
use crate::scenario::fault::Span;
use crate::scenario::read::Reader;

/// The longest time in a scenario: a year.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The shortest time between two steps of anything: what is faster would do nothing but step.
pub(super) const STEP_MIN: Duration = Duration::from_millis(1);

/// How a value is read.
pub(crate) struct Shape<T> {
    /// What it is, for a table.
    pub(crate) is: String,
    read: ReadValue<T>,
}

type ReadValue<T> = Box<dyn Fn(&At<'_>, &mut Reader<'_>) -> Option<T>>;

impl<T> Shape<T> {
    pub(super) fn new(
        is: impl Into<String>,
        read: impl Fn(&At<'_>, &mut Reader<'_>) -> Option<T> + 'static,
    ) -> Self {
        let (is, read) = (is.into(), Box::new(read));
        Self { is, read }
    }

    /// Reads a value. None: it is noted what is wrong.
    pub(super) fn read(&self, at: &At<'_>, reader: &mut Reader<'_>) -> Option<T> {
        (self.read)(at, reader)
    }
}

pub(super) fn text() -> Shape<String> {
    Shape::new("text", |at, r| at.text(&mut r.problems))
}

/// A finite number between two, both included.
pub(super) fn number(least: f64, most: f64) -> Shape<f64> {
    Shape::new(format!("{least} … {most}"), move |at, r| {
        at.number(least, most, &mut r.problems)
    })
}

/// A probability, or another part of a whole.
pub(super) fn part() -> Shape<f64> {
    Shape {
        is: "part".to_owned(),
        ..number(0.0, 1.0)
    }
}

/// What may be wanted, or had.
pub(super) fn amount() -> Shape<f64> {
    Shape::new("amount", |at, r| at.amount(&mut r.problems))
}

/// A whole number between two, both included.
pub(super) fn whole<T: TryFrom<i128> + 'static>(least: i128, most: i128) -> Shape<T> {
    Shape::new(format!("{least} … {most}"), move |at, r| {
        let number = at.whole(least, most, &mut r.problems)?;
        T::try_from(number).ok()
    })
}

/// How many: from 1 to `most`.
pub(super) fn count<T: TryFrom<i128> + 'static>(most: usize) -> Shape<T> {
    whole(1, i128::try_from(most).unwrap_or(i128::MAX))
}

/// Any whole number; `what` says what it means.
pub(super) fn integer(what: &'static str) -> Shape<i64> {
    Shape::new("whole number", move |at, r| {
        let number = match at.node.value {
            Value::Whole(number) => i64::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            r.problems.refuse(at, &format!("a whole number; {what}"));
        }
        number
    })
}

pub(super) fn truth() -> Shape<bool> {
    Shape::new("`true` or `false`", |at, r| {
        at.word(&[("true", true), ("false", false)], &mut r.problems)
    })
}

/// One of some words.
pub(super) fn word<T: Words>() -> Shape<T> {
    let words: Vec<String> = T::WORDS.iter().map(|(it, _)| format!("`{it}`")).collect();
    Shape::new(words.join(", "), |at, r| at.word(T::WORDS, &mut r.problems))
}

/// A map with fields of its own.
pub(super) fn record<T: Record + 'static>() -> Shape<T> {
    Shape::new(format!("map, as `{}`", T::EXAMPLE), T::read)
}

/// A list of these, as in an example. None, if one of them is wrong; but all are read.
pub(super) fn list_of<T: 'static>(example: &'static str, each: Shape<T>) -> Shape<Vec<T>> {
    Shape::new(format!("list, as `{example}`"), move |at, r| {
        let list = at.list(example, &mut r.problems)?;
        let read: Vec<Option<T>> = list.iter().map(|at| each.read(at, r)).collect();
        read.into_iter().collect()
    })
}

/// Seconds, or written out; up to a year.
pub(super) fn duration() -> Shape<Duration> {
    Shape::new("duration", |at, r| {
        let duration = at.duration(&mut r.problems)?;
        if duration > DURATION_MAX {
            r.problems.refuse(at, "at most 365 days");
            return None;
        }
        Some(duration)
    })
}

/// A duration of at least so much.
pub(super) fn at_least(least: Duration) -> Shape<Duration> {
    let written = humantime::format_duration(least).to_string();
    Shape::new(format!("duration from `{written}`"), move |at, r| {
        let duration = duration().read(at, r)?;
        if duration < least {
            r.problems.refuse(at, &format!("at least {written}"));
            return None;
        }
        Some(duration)
    })
}

/// A duration in which something can happen.
pub(super) fn step() -> Shape<Duration> {
    Shape {
        is: "duration".to_owned(),
        ..at_least(STEP_MIN)
    }
}

/// A duration up to the whole simulation.
pub(super) fn up_to_all() -> Shape<Duration> {
    Shape::new("duration", |at, r| {
        let duration = duration().read(at, r)?;
        if duration > r.end {
            let message = "is longer than the whole simulation; give less";
            r.problems.wrong(at, message);
            return None;
        }
        Some(duration)
    })
}

/// A time while it is played.
pub(super) fn time() -> Shape<Duration> {
    Shape::new("time", |at, r| {
        let time = duration().read(at, r)?;
        if time >= r.end {
            let message = format!(
                "is {}, but the simulation ends after {}; nothing would happen",
                humantime::format_duration(time),
                humantime::format_duration(r.end)
            );
            r.problems.wrong(at, message);
            return None;
        }
        Some(time)
    })
}

/// One duration, or two between which chance decides.
pub(super) fn span() -> Shape<Span> {
    Shape::new("span", |at, r| {
        if !matches!(at.node.value, Value::List(_)) {
            let duration = duration().read(at, r)?;
            return Some((duration, duration));
        }
        match list_of("[10s, 60s]", duration()).read(at, r)?.as_slice() {
            [least, most] if least <= most => Some((*least, *most)),
            [_, _] => {
                let message = "goes backwards; give the shorter one first";
                r.problems.wrong(at, message);
                None
            }
            other => {
                let message = format!(
                    "is a list of {}; give one duration, or the shortest and the longest, as in \
                     [10s, 60s]",
                    other.len()
                );
                r.problems.wrong(at, message);
                None
            }
        }
    })
}

/// The least and the largest of two numbers.
pub(super) fn range(least: f64, most: f64) -> Shape<(f64, f64)> {
    Shape::new("two numbers, the smaller one first", move |at, r| {
        let numbers = list_of("[0.9, 1.1]", number(least, most)).read(at, r)?;
        match numbers.as_slice() {
            [least, most] if least <= most => Some((*least, *most)),
            [_, _] => {
                let message = "goes backwards; give the smaller one first";
                r.problems.wrong(at, message);
                None
            }
            other => {
                let message = format!(
                    "is a list of {}; give the least and the largest, as in [0.9, 1.1]",
                    other.len()
                );
                r.problems.wrong(at, message);
                None
            }
        }
    })
}

pub(super) fn resource() -> Shape<ResourceId> {
    Shape::new("id", |at, r| {
        let id = ResourceId::new(&at.text(&mut r.problems)?);
        id.map_err(|cause| r.problems.wrong(at, cause.to_string()))
            .ok()
    })
}
