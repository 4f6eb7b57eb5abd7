//! The YAML parser, with bounds of its own, and its messages in the words of a document.

use std::collections::BTreeMap;

use serde_saphyr::options::DuplicateKeyPolicy;

use crate::rules::document::DOCUMENT_BYTES_MAX;
use crate::rules::form::DocumentForm;
use crate::rules::reader::unknown::{self, AtLine, Unknown};

/// Most levels of maps and lists: 15 levels of descriptors, which fit the stack of a thread also without optimisation.
const DEPTH_MAX: usize = 32;

/// Most maps, lists and scalars: more than a document of the largest size has in practice.
const NODES_MAX: usize = 4_000_000;

/// Most maps, lists and scalars that anchors name, and that aliases repeat: a document of some bytes must not become
/// gigabytes.
const REPEATED_MAX: usize = 100_000;

/// Starts of the parser's messages, and the problem in the words of a document.
const SAID: [(&str, &str); 9] = [
    (
        "expected string scalar",
        "a single value belongs here, not a list or map",
    ),
    ("expected mapping start", "write fields, as in key: user"),
    (
        "expected sequence start",
        "a list belongs here; begin each entry with a dash",
    ),
    (
        "multiple YAML documents",
        "the file has several documents; write one file for each domain",
    ),
    ("alias replay limit exceeded", TOO_MANY_ALIASES),
    ("budget breached: RecordedAnchor", TOO_MANY_ALIASES),
    ("budget breached: ScalarBytes", TOO_MANY_ALIASES),
    ("budget breached: Depth", "too many levels; write fewer"),
    (
        "budget breached",
        "the document is too large; write several domains",
    ),
];

const TOO_MANY_ALIASES: &str = "aliases repeat too much; write the values out";

/// Parses a document, and finds its unknown fields.
pub(super) fn parse(text: &str) -> Result<(DocumentForm, Vec<Unknown>), AtLine> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message = format!(
            "the document is larger than {DOCUMENT_BYTES_MAX} bytes; write several domains"
        );
        return Err((1, message));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_recorded_anchor_events: REPEATED_MAX,
            max_total_scalar_bytes: 2 * text.len() + REPEATED_MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    let form = serde_saphyr::from_str_with_options(text, options.clone());
    let parsed = form.and_then(|form| Ok((form, unknown::fields(text, options)?)));
    parsed.map_err(|error| {
        let line = error.location().map_or(1, |place| place.line().max(1));
        let message = error.render();
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = message
            .split_once(" at line ")
            .map_or(message, |(start, _)| start);
        (line, advice(message).unwrap_or_else(|| message.to_owned()))
    })
}

/// Returns the domain that a line of the text names, also if the text is no valid document.
pub fn domain_of(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("domain:"))?;
    let mut fields = serde_saphyr::from_str::<BTreeMap<String, String>>(line).ok()?;
    fields.remove("domain").filter(|domain| !domain.is_empty())
}

/// Returns a better message for a known one of the parser: with the field and a remedy.
fn advice(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let (field, _) = rest.split_once(", set DuplicateKeyPolicy")?;
        return Some(format!("{field}: is there twice; remove one of the two"));
    }
    let said = SAID.iter().find(|(start, _)| message.starts_with(start));
    said.map(|(_, said)| (*said).to_owned())
}
