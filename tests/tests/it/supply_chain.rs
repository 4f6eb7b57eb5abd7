//! Crates of the programs: every one comes from crates.io or this repository, has a licence that lets us ship it, and
//! is there once, or twice for a reason.
//!
//! The test reads `cargo tree`, for all platforms. So it ignores crates that are only in `Cargo.lock`, and in no
//! program, build script or test. The lock tells the sources of crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Licences whose crates we may ship within programs under MIT or Apache-2.0: they require only their text beside it.
const LICENCES: [&str; 11] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates with several versions: their number, and the crates that keep the older ones.
const SEVERAL: [(&str, usize, &str); 11] = [
    ("base64", 2, "tonic has 0.22"),
    ("foldhash", 2, "hashbrown 0.15 has 0.1"),
    ("getrandom", 3, "ring has 0.2; bolero, in tests alone, 0.3"),
    (
        "hashbrown",
        4,
        "petgraph of prost-build, in build scripts alone, has 0.15; governor, in a bench alone, 0.16, and its dashmap 0.14",
    ),
    ("r-efi", 2, "getrandom 0.3 has 5, on UEFI alone"),
    ("rand", 2, "opentelemetry_sdk has 0.9"),
    ("rand_core", 2, "rand 0.9 has 0.9"),
    ("syn", 2, "half of all derive macros have 2"),
    (
        "unicode-width",
        2,
        "miette of protox, in build scripts alone, has 0.1",
    ),
    ("windows-sys", 2, "ring has 0.52"),
    (
        "winnow",
        2,
        "the derive macro of bolero, in tests alone, has 0.5",
    ),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A crate in a build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    licence: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns all crates in any build of the workspace, on any platform, with OpenTelemetry.
fn crates() -> BTreeSet<Crate> {
    let tree = |offline: &[&str]| {
        Command::new(env!("CARGO"))
            .current_dir(root())
            .args(["tree", "--locked", "--workspace", "--target", "all"])
            .args(["--edges", "normal,build,dev", "--prefix", "none"])
            .args(["--features", "doorward-server/otel"])
            .args(["--format", "{p}|{l}"])
            .args(offline)
            .output()
            .unwrap()
    };
    let mut output = tree(&["--offline"]);
    if !output.status.success() {
        // Crates of other platforms may have to be fetched.
        output = tree(&[]);
    }
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (package, licence) = line.split_once('|').unwrap();
            let mut words = package.split(' ');
            Crate {
                name: words.next().unwrap().to_owned(),
                version: words.next().unwrap().to_owned(),
                licence: licence.trim_end_matches(" (*)").to_owned(),
            }
        })
        .collect()
}

/// Returns whether we may choose licences that are on the list. `A/B` is an old form of `A OR B`. Brackets are ignored,
/// so every part beside an AND needs a licence of the list: that is never too lenient.
fn may_be_shipped(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    let mut parts = expression.split(" AND ");
    parts.all(|part| {
        part.split(" OR ")
            .any(|licence| LICENCES.contains(&licence.trim()))
    })
}

#[test]
fn every_crate_comes_from_crates_io_or_this_repository() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut found = 0;
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let lines = package.lines();
            let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            values.next().map(|value| value.trim_end_matches('"'))
        };
        let name = value("name").unwrap();
        match value("source") {
            None => assert!(
                name == "doorward" || name.starts_with("doorward-"),
                "{name} is none of ours"
            ),
            Some(source) => {
                assert_eq!(source, CRATES_IO, "{name}");
                assert!(value("checksum").is_some(), "{name} has no checksum");
            }
        }
        found += 1;
    }
    assert!(found > 100, "only {found} packages were read");
}

#[test]
fn every_licence_is_one_that_lets_us_ship_the_crate() {
    let wrong: Vec<Crate> = crates()
        .into_iter()
        .filter(|one| !may_be_shipped(&one.licence))
        .collect();
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\nDo without the crate, or add its licence to LICENCES if it asks for no more than those."
    );
}

#[test]
fn no_crate_is_there_twice_without_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Crate { name, version, .. } in crates() {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    for (name, versions) in &versions {
        let known = SEVERAL.iter().find(|(known, ..)| known == name);
        assert_eq!(
            known.map_or(1, |(_, count, _)| *count),
            versions.len(),
            "{name} is there as {versions:?}: bring them together, or say in SEVERAL who keeps the older one"
        );
    }
    for (known, ..) in SEVERAL {
        let is_there = versions.contains_key(known);
        assert!(is_there, "{known} is there once: take it out of SEVERAL");
    }
}
