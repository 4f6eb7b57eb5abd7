//! Test vectors of every algorithm: sequences of operations with the answers of exact rational arithmetic.
//!
//! `testdata/vectors` has a set, with a README of its fields. `DOORWARD_LIMITS_VECTORS` names another folder. Every
//! case is played. A case with amounts of more than nine decimal places is skipped, counted, and printed with its
//! needs; the shipped set has no such case.

mod case;
mod driver;
mod header_case;
mod several_case;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn folder() -> PathBuf {
    std::env::var_os("DOORWARD_LIMITS_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/vectors"),
        PathBuf::from,
    )
}

/// Result of a case.
pub(crate) enum Played {
    /// Number of operations with the expected answer.
    Right(usize),
    /// Differences.
    Wrong(Vec<String>),
    /// The case has values that our types cannot represent.
    Skipped,
}

fn play(file: &str, case: &Value) -> Played {
    match (file, case["config"]["algorithm"].as_str()) {
        ("headers.json", _) => header_case::play(case),
        (_, Some("several")) => several_case::play(case),
        _ => case::play(case),
    }
}

#[test]
fn every_case_is_answered_as_exact_arithmetic_does() {
    let folder = folder();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", folder.display());
    let mut problems = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_str().unwrap();
        let cases: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (mut played, mut operations) = (0, 0);
        let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
        for case in cases.as_array().unwrap() {
            match play(file, case) {
                Played::Right(count) => (played, operations) = (played + 1, operations + count),
                Played::Wrong(found) => {
                    let name = case["name"].as_str().unwrap();
                    problems.push(format!("{file}: {name}\n  {}", found.join("\n  ")));
                }
                Played::Skipped => {
                    let needs = case["needs"].as_str().unwrap_or("finer amounts");
                    *skipped.entry(needs.to_owned()).or_default() += 1;
                }
            }
        }
        println!("{file}: {played} cases, {operations} operations, skipped {skipped:?}");
    }
    assert!(
        problems.is_empty(),
        "{} cases differ:\n{}",
        problems.len(),
        problems.join("\n")
    );
}
