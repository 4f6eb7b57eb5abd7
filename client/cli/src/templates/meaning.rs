//! Changes in meaning, template by template. Pure.
//!
//! Templates are distinguished by their glob. Where order or presence changes, other templates may take resources than
//! before: the [plan](super::plan) says so of those in use.

use std::collections::{BTreeMap, BTreeSet};

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::{SafeCapacity, Template, Templates};
use similar::{Algorithm as DiffAlgorithm, DiffTag, capture_diff_slices};

use crate::documents::ChangeLine;
use crate::granted::number;
use doorward_pages::numbers::typed_span as span;

/// Returns the changes from the old templates to the new ones; none if they mean the same.
pub(crate) fn changes(old: &Templates, new: &Templates) -> Vec<ChangeLine> {
    let (old_by_glob, new_by_glob) = (by_glob(old), by_glob(new));
    let moved = moved(old, new);
    let mut lines = Vec::new();
    for (place, template) in old.iter().enumerate() {
        let glob = template.identifier_glob.as_str();
        let Some((new_place, now)) = new_by_glob.get(glob) else {
            let text = format!("{glob:?} removed: {}", described(template));
            lines.push(ChangeLine::new('-', text));
            continue;
        };
        let mut fields = fields(template, now);
        if moved.contains(glob) {
            let (from, to) = (place + 1, new_place + 1);
            fields.push(format!("moved from place {from} to {to}"));
        }
        if !fields.is_empty() {
            let text = format!("{glob:?} {}", fields.join("; "));
            lines.push(ChangeLine::new('~', text));
        }
    }
    for (place, template) in new.iter().enumerate() {
        let glob = template.identifier_glob.as_str();
        if !old_by_glob.contains_key(glob) {
            let described = described(template);
            let text = format!("{glob:?} added at place {}: {described}", place + 1);
            lines.push(ChangeLine::new('+', text));
        }
    }
    lines
}

type ByGlob<'a> = BTreeMap<&'a str, (usize, &'a Template)>;

fn by_glob(templates: &Templates) -> ByGlob<'_> {
    let places = templates.iter().enumerate();
    let by_glob = places.map(|(place, it)| (&*it.identifier_glob, (place, &**it)));
    by_glob.collect()
}

/// The globs of templates that stand before others than they did: as few as explain it.
fn moved<'a>(old: &'a Templates, new: &'a Templates) -> BTreeSet<&'a str> {
    let globs = |templates: &'a Templates, others: &ByGlob<'_>| -> Vec<&'a str> {
        let globs = templates.iter().map(|t| t.identifier_glob.as_str());
        globs.filter(|glob| others.contains_key(glob)).collect()
    };
    let (before, after) = (globs(old, &by_glob(new)), globs(new, &by_glob(old)));
    let ops = capture_diff_slices(DiffAlgorithm::Patience, &before, &after);
    let gone = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    let gone = gone.filter_map(|op| before.get(op.old_range()));
    gone.flatten().copied().collect()
}

/// A template as a whole, in a few words.
fn described(template: &Template) -> String {
    let kind = template.algorithm.kind;
    let capacity = number(template.capacity.get());
    let lease_length = span(template.algorithm.lease_length);
    let refresh_interval = span(template.algorithm.refresh_interval);
    format!(
        "{kind}, capacity {capacity}, lease_length {lease_length}, refresh_interval {refresh_interval}"
    )
}

/// The fields that differ, and how.
fn fields(old: &Template, new: &Template) -> Vec<String> {
    let (was, is) = (values(old), values(new));
    let value = |of: &[(String, String)], name: &str| {
        let found = of.iter().find(|(other, _)| other == name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
    };
    let added = is
        .iter()
        .filter(|(name, _)| was.iter().all(|it| it.0 != *name));
    let names = was.iter().chain(added).map(|(name, _)| name);
    let differing = names.filter_map(|name| {
        let (was, is) = (value(&was, name), value(&is, name));
        (was != is).then(|| format!("{name} {was} → {is}"))
    });
    let described = (old.description != new.description).then(|| "description changed".to_owned());
    differing.chain(described).collect()
}

/// Returns the fields of a template as text.
fn values(template: &Template) -> Vec<(String, String)> {
    let (algorithm, bounds) = (&template.algorithm, template.holder_bounds);
    let subclients_max = bounds.subclients_max.map(Subclients::get);
    let exact_span = |span| humantime::format_duration(span).to_string();
    let values = [
        ("capacity", exact(template.capacity.get())),
        ("safe_capacity", safe(template.safe_capacity)),
        ("wants_max", most(bounds.wants_max.map(Amount::get))),
        ("subclients_max", most(subclients_max)),
        ("share_floor", most(template.share_floor.map(Amount::get))),
        ("kind", algorithm.kind.to_string()),
        ("lease_length", exact_span(algorithm.lease_length)),
        ("refresh_interval", exact_span(algorithm.refresh_interval)),
        (
            "learning_mode_duration",
            exact_span(algorithm.learning_mode_duration),
        ),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value));
    values.into_iter().chain(algorithm.parameters()).collect()
}

/// All digits: two numbers that differ must not look the same.
fn exact(value: f64) -> String {
    value.to_string()
}

fn safe(safe: Option<SafeCapacity>) -> String {
    match safe {
        None => "dynamic".to_owned(),
        Some(SafeCapacity::Unlimited) => "unlimited".to_owned(),
        Some(SafeCapacity::Limited(amount)) => exact(amount.get()),
    }
}

fn most(most: Option<f64>) -> String {
    most.map_or_else(|| "none".to_owned(), exact)
}

#[cfg(test)]
mod tests;
