//! Changes in meaning, template by template. Pure.
//!
//! Templates are distinguished by their glob. Where order or presence changes, other templates may take resources than
//! before: the [plan](super::plan) says so of those in use.

use std::collections::{BTreeMap, BTreeSet};

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::{Algorithm, SafeCapacity, Shrink, Template, Templates};
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
            lines.push(ChangeLine::new(
                '-',
                format!("{glob:?} removed: {}", described(template)),
            ));
            continue;
        };
        let mut fields = fields(template, now);
        if moved.contains(glob) {
            fields.push(format!(
                "moved from place {} to {}",
                place + 1,
                new_place + 1
            ));
        }
        if !fields.is_empty() {
            lines.push(ChangeLine::new(
                '~',
                format!("{glob:?} {}", fields.join("; ")),
            ));
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
    places
        .map(|(place, template)| {
            let template: &Template = template;
            (template.identifier_glob.as_str(), (place, template))
        })
        .collect()
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
    gone.filter_map(|op| before.get(op.old_range()))
        .flatten()
        .copied()
        .collect()
}

/// A template as a whole, in a few words.
fn described(template: &Template) -> String {
    let Algorithm {
        kind,
        lease_length,
        refresh_interval,
        ..
    } = *template.algorithm;
    format!(
        "{kind}, capacity {}, lease_length {}, refresh_interval {}",
        number(template.capacity.get()),
        span(lease_length),
        span(refresh_interval)
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
    let exact_span = |span| humantime::format_duration(span).to_string();
    let values = [
        ("capacity", exact(template.capacity.get())),
        ("safe_capacity", safe(template.safe_capacity)),
        ("wants_max", most(bounds.wants_max.map(Amount::get))),
        (
            "subclients_max",
            most(bounds.subclients_max.map(Subclients::get)),
        ),
        ("share_floor", most(template.share_floor.map(Amount::get))),
        ("kind", algorithm.kind.to_string()),
        ("lease_length", exact_span(algorithm.lease_length)),
        ("refresh_interval", exact_span(algorithm.refresh_interval)),
        (
            "learning_mode_duration",
            exact_span(algorithm.learning_mode_duration),
        ),
        ("shrink", shrink(algorithm.shrink)),
        ("decay_factor", exact(algorithm.decay_factor)),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value));
    let shares = algorithm.min_shares.iter();
    let shares = shares.map(|(priority, share)| (format!("min_share.{priority}"), exact(*share)));
    values.into_iter().chain(shares).collect()
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

fn shrink(shrink: Shrink) -> String {
    match shrink {
        Shrink::Acknowledged => "acknowledged".to_owned(),
        Shrink::Immediate => "immediate".to_owned(),
    }
}

#[cfg(test)]
mod tests;
