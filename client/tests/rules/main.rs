//! Rules from outside: documents, matches, clients and decisions.
//!
//! The vectors are those of `vectors/`, or of the folder `DOORWARD_RULES_VECTORS`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy takes only functions with #[test] as tests"
)]

mod botnet;
mod changes;
mod decisions;
mod documents;
mod fields;
mod newcomers;
mod schema;
mod service;
mod story;
mod tallies;
mod undo;
mod values;
mod vectors;
mod who;

use std::path::PathBuf;

use serde_json::Value;

/// Returns the vectors of a file.
fn cases(file: &str) -> Vec<Value> {
    let folder = std::env::var_os("DOORWARD_RULES_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rules/vectors"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}
