//! Changes in meaning, template by template. Pure.
//!
//! Templates are distinguished by their glob. Where order or presence changes, other templates may take resources than
//! before: the [plan](super::plan) says so of those in use.

use std::collections::{BTreeMap, BTreeSet};

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::{
    Algorithm, HolderBounds, SafeCapacity, Shrink, Template, Templates,
};
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
    let mut fields = Vec::new();
    let mut field = |name: &str, old: String, new: String| {
        if old != new {
            fields.push(format!("{name} {old} → {new}"));
        }
    };
    let (was, is) = (&old.algorithm, &new.algorithm);
    field(
        "capacity",
        exact(old.capacity.get()),
        exact(new.capacity.get()),
    );
    field(
        "safe_capacity",
        safe(old.safe_capacity),
        safe(new.safe_capacity),
    );
    let (was_bounds, is_bounds) = (old.holder_bounds, new.holder_bounds);
    field("wants_max", wants_max(was_bounds), wants_max(is_bounds));
    field(
        "subclients_max",
        subclients_max(was_bounds),
        subclients_max(is_bounds),
    );
    let floor = |it: &Template| most(it.share_floor.map(Amount::get));
    field("share_floor", floor(old), floor(new));
    field("kind", was.kind.to_string(), is.kind.to_string());
    for (name, was, is) in [
        ("lease_length", was.lease_length, is.lease_length),
        (
            "refresh_interval",
            was.refresh_interval,
            is.refresh_interval,
        ),
        (
            "learning_mode_duration",
            was.learning_mode_duration,
            is.learning_mode_duration,
        ),
    ] {
        let exact = |span| humantime::format_duration(span).to_string();
        field(name, exact(was), exact(is));
    }
    field("shrink", shrink(was.shrink), shrink(is.shrink));
    field(
        "decay_factor",
        exact(was.decay_factor),
        exact(is.decay_factor),
    );
    let priorities: BTreeSet<&i64> = was.min_shares.keys().chain(is.min_shares.keys()).collect();
    for priority in priorities {
        let share = |shares: &BTreeMap<i64, f64>| {
            let share = shares.get(priority);
            share.map_or_else(|| "none".to_owned(), |share| exact(*share))
        };
        let name = format!("min_share.{priority}");
        field(&name, share(&was.min_shares), share(&is.min_shares));
    }
    if old.description != new.description {
        fields.push("description changed".to_owned());
    }
    fields
}

/// All digits: two numbers that differ must not look the same.
fn exact(value: f64) -> String {
    value.to_string()
}

pub(crate) fn safe(safe: Option<SafeCapacity>) -> String {
    match safe {
        None => "dynamic".to_owned(),
        Some(SafeCapacity::Unlimited) => "unlimited".to_owned(),
        Some(SafeCapacity::Limited(amount)) => exact(amount.get()),
    }
}

pub(crate) fn wants_max(bounds: HolderBounds) -> String {
    most(bounds.wants_max.map(Amount::get))
}

pub(crate) fn subclients_max(bounds: HolderBounds) -> String {
    most(bounds.subclients_max.map(Subclients::get))
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
