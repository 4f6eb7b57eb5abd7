//! Lengths and capacities that are ten times those in force, or a tenth: usually a wrong unit or digit.
//!
//! Templates are compared by their glob, and by the template that a resource in use takes before and after.

use std::collections::BTreeMap;

use doorward_engine::templates::{AlgorithmKind, Field, Template, Templates};

use super::{InForceBefore, Replaced, TemplateWarning, WarningKind};
use doorward_pages::numbers::capacity as number;
use doorward_pages::numbers::typed_span as span;

/// Factor that needs a warning.
const FACTOR: f64 = 10.0;

/// A number of a template, and its text.
type Told = (f64, String);

pub(super) fn findings(new: &Templates, before: &InForceBefore<'_>) -> Vec<TemplateWarning> {
    let mut worst: BTreeMap<(usize, Field), TemplateWarning> = BTreeMap::new();
    for it in before.replaced(new) {
        let whose = match it.id {
            None => "in force".to_owned(),
            Some(id) => format!("that {id} has in force"),
        };
        for (field, was, is) in compared(&it, before.was_in_force) {
            let about = (it.index, field);
            let known = worst.get(&about).map_or(0.0, |known| known.weight);
            if let Some(found) = finding(about, &was, &is, &whose).filter(|it| it.weight > known) {
                worst.insert(about, found);
            }
        }
    }
    worst.into_values().collect()
}

/// Returns the numbers that are compared, before and after.
fn compared(it: &Replaced<'_>, was_in_force: bool) -> Vec<(Field, Told, Told)> {
    let (was, is) = (&*it.old.algorithm, &*it.new.algorithm);
    let mut lengths = vec![
        (
            Field::RefreshInterval,
            was.refresh_interval,
            is.refresh_interval,
        ),
        (Field::LeaseLength, was.lease_length, is.lease_length),
    ];
    let (learned, learns) = (was.learning_mode_duration, is.learning_mode_duration);
    // If it is no longer than leases, it follows from them; less of it is an operator's choice.
    if was.learns() && is.learns() && learns > is.lease_length && learns > learned {
        lengths.push((Field::LearningModeDuration, learned, learns));
    }
    let lengths = lengths.into_iter().map(|(field, was, is)| {
        let [was, is] = [was, is].map(|it| (it.as_secs_f64(), span(it)));
        (field, was, is)
    });
    let capacity = |of: &Template| (of.capacity.get(), number(of.capacity.get()));
    // Zeros have a warning of their own.
    let counts =
        |of: &Template| of.algorithm.kind != AlgorithmKind::NoAlgorithm && of.capacity.get() > 0.0;
    let counts = !was_in_force && counts(it.old) && counts(it.new);
    let capacities = counts.then(|| (Field::Capacity, capacity(it.old), capacity(it.new)));
    lengths.chain(capacities).collect()
}

fn finding(
    about: (usize, Field),
    (was, was_said): &Told,
    (is, is_said): &Told,
    whose: &str,
) -> Option<TemplateWarning> {
    let (_, field) = about;
    let ratio = is / was;
    let is_more = ratio >= FACTOR;
    let weight = if is_more { ratio } else { ratio.recip() };
    if weight.is_nan() || weight < FACTOR {
        return None;
    }
    let kind = match (field, is_more) {
        (Field::Capacity, _) => WarningKind::CapacityFactor,
        (_, true) => WarningKind::Longer,
        (_, false) => WarningKind::MuchShorter,
    };
    let times = number((weight * 10.0).floor() / 10.0);
    let (less, then) = match is_more {
        true => ("", if_more(field)),
        false => (" less than", if_less(field)),
    };
    let message = format!("is {is_said}, {times} times{less} the {was_said} {whose}: {then}");
    let found = TemplateWarning::new(kind, Some(about), message);
    Some(TemplateWarning { weight, ..found })
}

const fn if_more(field: Field) -> &'static str {
    match field {
        Field::Capacity => "is there so much?",
        Field::RefreshInterval => "changes take effect so much later",
        Field::LearningModeDuration => "a restarted server gives newcomers nothing for so long",
        _ => {
            "the lease of a client that dies is lost for so long, and a restarted server learns for so long"
        }
    }
}

const fn if_less(field: Field) -> &'static str {
    match field {
        Field::Capacity => "clients get so much less",
        Field::RefreshInterval => "servers get so many more requests",
        _ => "a client that reaches no server for so long loses its lease",
    }
}
