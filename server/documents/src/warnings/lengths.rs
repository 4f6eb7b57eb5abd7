//! Lengths that are ten times those in force, or a tenth: usually a wrong unit.
//!
//! Templates are compared by their glob, and by the template that a resource in use takes before and after.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::templates::{Algorithm, Field, Templates};

use super::{InForceBefore, Replaced, TemplateWarning, WarningKind};
use doorward_pages::numbers::capacity as number;
use doorward_pages::numbers::typed_span as span;

/// Factor that needs a warning.
const FACTOR: u32 = 10;

/// The fields of [`lengths`].
const FIELDS: [Field; 3] = [
    Field::RefreshInterval,
    Field::LeaseLength,
    Field::LearningModeDuration,
];

fn lengths(of: &Algorithm) -> [Duration; 3] {
    [
        of.refresh_interval,
        of.lease_length,
        of.learning_mode_duration,
    ]
}

pub(super) fn findings(new: &Templates, before: &InForceBefore<'_>) -> Vec<TemplateWarning> {
    let mut worst: BTreeMap<(usize, Field), TemplateWarning> = BTreeMap::new();
    for Replaced {
        index,
        new,
        old,
        id,
    } in before.replaced(new)
    {
        let in_force = || "in force".to_owned();
        let whose = id.map_or_else(in_force, |id| format!("that {id} has in force"));
        let (was, is) = (&*old.algorithm, &*new.algorithm);
        let (learned, learns) = (was.learning_mode_duration, is.learning_mode_duration);
        // If it is no longer than leases, it follows from them; less of it is an operator's choice.
        let counts = was.learns() && is.learns() && learns > is.lease_length && learns > learned;
        for (field, pair) in FIELDS
            .into_iter()
            .zip(lengths(was).into_iter().zip(lengths(is)))
        {
            let about = (index, field);
            let is_worse = |it: &TemplateWarning| {
                let known = worst.get(&about);
                known.is_none_or(|known| known.weight < it.weight)
            };
            if (counts || field != Field::LearningModeDuration)
                && let Some(found) = finding(about, pair, &whose).filter(is_worse)
            {
                worst.insert(about, found);
            }
        }
    }
    worst.into_values().collect()
}

fn finding(
    about: (usize, Field),
    (was, is): (Duration, Duration),
    whose: &str,
) -> Option<TemplateWarning> {
    let (_, field) = about;
    let ratio = is.as_secs_f64() / was.as_secs_f64();
    let (was_said, is_said) = (span(was), span(is));
    let (kind, weight, said) = if is >= was * FACTOR && is > was {
        let times = number((ratio * 10.0).floor() / 10.0);
        let said = format!("{times} times the {was_said} {whose}: {}", if_longer(field));
        (WarningKind::Longer, ratio, said)
    } else if is * FACTOR <= was && is < was {
        let then = if_shorter(field);
        let said = format!("a tenth of the {was_said} {whose}, or less: {then}");
        (WarningKind::MuchShorter, ratio.recip(), said)
    } else {
        return None;
    };
    let found = TemplateWarning::new(kind, Some(about), format!("is {is_said}, {said}"));
    Some(TemplateWarning { weight, ..found })
}

const fn if_longer(field: Field) -> &'static str {
    match field {
        Field::RefreshInterval => "changes take effect so much later",
        Field::LearningModeDuration => "a restarted server gives newcomers nothing for so long",
        _ => {
            "the lease of a client that dies is lost for so long, and a restarted server learns for so long"
        }
    }
}

const fn if_shorter(field: Field) -> &'static str {
    match field {
        Field::RefreshInterval => "servers get so many more requests",
        _ => "a client that reaches no server for so long loses its lease",
    }
}
