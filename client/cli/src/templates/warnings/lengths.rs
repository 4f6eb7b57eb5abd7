//! Lengths that are ten times those in force, or a tenth: usually a wrong unit.
//!
//! Templates are compared by their glob, and by the template that an id takes before and after. The ids are those in
//! use, and one for each glob. So every warning is true, but some changes may be missed.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Algorithm, Field, Templates};

use super::{InForceBefore, TemplateWarning, WarningKind};
use crate::granted::number;
use crate::templates::sample;
use doorward_pages::numbers::typed_span as span;

/// Factor that needs a warning.
const FACTOR: u32 = 10;

/// Lengths, as far as they are compared.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    lease: Duration,
    refresh: Duration,
    /// Absent: it does not learn.
    learning: Option<Duration>,
}

impl Lengths {
    fn of(algorithm: &Algorithm) -> Self {
        Self {
            lease: algorithm.lease_length,
            refresh: algorithm.refresh_interval,
            learning: algorithm
                .learns()
                .then_some(algorithm.learning_mode_duration),
        }
    }
}

pub(super) fn findings(new: &Templates, before: &InForceBefore<'_>) -> Vec<TemplateWarning> {
    let places: BTreeMap<&str, usize> = new
        .iter()
        .enumerate()
        .map(|(place, template)| (template.identifier_glob.as_str(), place))
        .collect();
    let mut found = FoundLengths {
        new,
        in_order: new.iter().map(|it| Lengths::of(&it.algorithm)).collect(),
        places: &places,
        worst: BTreeMap::new(),
    };
    if let Some(old) = before.templates {
        for template in old.iter() {
            if let Some(place) = places.get(template.identifier_glob.as_str()) {
                found.compare(*place, Lengths::of(&template.algorithm), "in force");
            }
        }
        found.by_ids(old, before);
    }
    let found = found.worst.into_iter();
    let findings = found.map(|((index, field), (_, kind, message))| {
        TemplateWarning::new(kind, index, field, message)
    });
    findings.collect()
}

/// Findings so far.
struct FoundLengths<'a> {
    new: &'a Templates,
    in_order: Vec<Lengths>,
    /// Of the new templates, by their globs.
    places: &'a BTreeMap<&'a str, usize>,
    /// By template and field: how many times as long, or as short.
    worst: BTreeMap<(usize, Field), (f64, WarningKind, String)>,
}

impl FoundLengths<'_> {
    /// Ids that take another template than before.
    fn by_ids(&mut self, old: &Templates, before: &InForceBefore<'_>) {
        let in_use = before.in_use.iter().map(|it| it.root.resource_id.clone());
        let globs = old.iter().chain(self.new.iter());
        let made_up = globs.map(|it| sample::filled(&it.identifier_glob, "x"));
        let mut looks: usize = 0;
        for id in in_use.chain(made_up) {
            looks += old.len() + self.new.len();
            if looks > sample::LOOKS_MAX {
                return;
            }
            let Ok(resource) = ResourceId::new(&id) else {
                continue;
            };
            if let Some(was) = old.find(&resource) {
                let whose = format!("that ids such as {id} have in force");
                self.by_id(&id, Lengths::of(&was.algorithm), &whose);
            }
        }
    }

    fn by_id(&mut self, id: &str, was: Lengths, whose: &str) {
        let taken = ResourceId::new(id).ok().and_then(|id| self.new.find(&id));
        let place = taken.and_then(|it| self.places.get(it.identifier_glob.as_str()));
        if let Some(place) = place {
            self.compare(*place, was, whose);
        }
    }

    fn compare(&mut self, place: usize, was: Lengths, whose: &str) {
        let Some(is) = self.in_order.get(place).copied() else {
            return;
        };
        self.field(
            place,
            Field::RefreshInterval,
            (was.refresh, is.refresh),
            whose,
        );
        self.field(place, Field::LeaseLength, (was.lease, is.lease), whose);
        if let (Some(was), Some(learning)) = (was.learning, is.learning)
            // If it is no longer than leases, it follows from them; less of it is an operator's choice.
            && learning > is.lease
            && learning > was
        {
            let field = Field::LearningModeDuration;
            self.field(place, field, (was, learning), whose);
        }
    }

    fn field(&mut self, place: usize, field: Field, (was, is): (Duration, Duration), whose: &str) {
        let ratio = is.as_secs_f64() / was.as_secs_f64();
        let (was_said, is_said) = (span(was), span(is));
        let (kind, times, said) = if is >= was * FACTOR {
            let times = number((ratio * 10.0).floor() / 10.0);
            let said = format!("{times} times the {was_said} {whose}: {}", if_longer(field));
            (WarningKind::Longer, ratio, said)
        } else if is * FACTOR <= was {
            let said = format!(
                "a tenth of the {was_said} {whose}, or less: {}",
                if_shorter(field)
            );
            (WarningKind::MuchShorter, ratio.recip(), said)
        } else {
            return;
        };
        let worst = self.worst.entry((place, field));
        let message = (times, kind, format!("is {is_said}, {said}"));
        let worst = worst.or_insert_with(|| message.clone());
        if worst.0 < times {
            *worst = message;
        }
    }
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
