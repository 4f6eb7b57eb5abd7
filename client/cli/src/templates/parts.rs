//! Templates as parts of a document, each by its glob.
//!
//! Where order or presence changes, other templates may take resources than before: the [plan](super::plan) says so of
//! those in use.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::{SafeCapacity, Template, Templates};

use crate::documents::parts::{Field, NONE, Part, field, or_none};

pub(crate) fn of(templates: &Templates) -> Vec<Part> {
    let parts = templates.iter();
    let parts = parts.map(|it| (format!("{:?}", it.identifier_glob), fields(it)));
    parts.collect()
}

/// Returns the fields of a template. Numbers have all digits: two that differ must not look the same.
fn fields(template: &Template) -> Vec<Field> {
    let (algorithm, bounds) = (&template.algorithm, template.holder_bounds);
    let safe = match template.safe_capacity {
        None => "dynamic".to_owned(),
        Some(SafeCapacity::Unlimited) => "unlimited".to_owned(),
        Some(SafeCapacity::Limited(amount)) => amount.get().to_string(),
    };
    let span = |span: Duration| humantime::format_duration(span).to_string();
    let lease_length = span(algorithm.lease_length);
    let learning = span(algorithm.learning_mode_duration);
    let amounts = [bounds.wants_max, template.share_floor];
    let [wants_max, share_floor] = amounts.map(|it| or_none(it.map(Amount::get)));
    let subclients_max = bounds.subclients_max.map(Subclients::get);
    let mut fields = vec![
        field("kind", algorithm.kind, ""),
        field("capacity", template.capacity.get(), ""),
        field("safe_capacity", safe, "dynamic"),
        field("wants_max", wants_max, NONE),
        field("subclients_max", or_none(subclients_max), NONE),
        field("share_floor", share_floor, NONE),
        field("lease_length", &lease_length, ""),
        field("refresh_interval", span(algorithm.refresh_interval), ""),
        field("learning_mode_duration", learning, &lease_length),
        field("description", format!("{:?}", template.description), "\"\""),
    ];
    let parameters = algorithm.parameters().into_iter();
    // Their defaults depend on the kind.
    fields.extend(parameters.map(|(name, value)| field(&name, &value, &value)));
    fields
}

#[cfg(test)]
mod tests;
