//! Crates of the programs: every one comes from crates.io or this repository, has a licence that lets us ship it, is
//! there once, or twice for a reason, and has no known weakness.
//!
//! `tests/advisories.toml` has what the RustSec database knows of each crate in `Cargo.lock`, since a build may have no
//! network. Update it from a clone of https://github.com/rustsec/advisory-db:
//!
//! ```sh
//! UPDATE_ADVISORIES=../advisory-db cargo test -p doorward-tests --test it supply_chain
//! ```
//!
//! The test reads `cargo tree`, for all platforms. So it ignores crates that are only in `Cargo.lock`, and in no
//! program, build script or test. The lock tells the sources of crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

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
    ("cpufeatures", 2, "sha2 has 0.2"),
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
];

/// Advisories that do not matter here, and why.
const HARMLESS: [(&str, &str); 0] = [];

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

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: Version,
    source: Option<String>,
    checksum: Option<String>,
}

/// Returns the packages of `Cargo.lock`.
fn locked() -> Vec<Package> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    basic_toml::from_str::<Lock>(&lock).unwrap().package
}

#[test]
fn every_crate_comes_from_crates_io_or_this_repository() {
    let packages = locked();
    for Package {
        name,
        source,
        checksum,
        ..
    } in &packages
    {
        match source {
            None => assert!(
                name == "doorward" || name.starts_with("doorward-"),
                "{name} is none of ours"
            ),
            Some(source) => {
                assert_eq!(source, CRATES_IO, "{name}");
                assert!(checksum.is_some(), "{name} has no checksum");
            }
        }
    }
    assert!(
        packages.len() > 100,
        "only {} packages were read",
        packages.len()
    );
}

/// Advisories of our crates.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    /// Date of its last change.
    date: String,
    /// Crates that were looked up, also those without an advisory.
    crates: BTreeSet<String>,
    advisory: Vec<Advisory>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Advisory {
    id: String,
    package: String,
    /// Versions without the weakness.
    unaffected: Vec<VersionReq>,
}

/// An advisory as the database has it.
#[derive(Debug, Deserialize)]
struct Page {
    advisory: Head,
    versions: Versions,
}

#[derive(Debug, Deserialize)]
struct Head {
    id: String,
    package: String,
    withdrawn: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Versions {
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

/// Returns what a clone of the database knows of these crates.
fn looked_up(database: &Path, crates: BTreeSet<String>) -> Known {
    let changed = Command::new("git")
        .args(["log", "-1", "--format=%cs"])
        .current_dir(database)
        .output()
        .unwrap();
    let mut advisory = Vec::new();
    for name in &crates {
        let Ok(folder) = fs::read_dir(database.join("crates").join(name)) else {
            continue;
        };
        for file in folder {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let head = text.split("```").nth(1).unwrap();
            let page: Page = basic_toml::from_str(head.trim_start_matches("toml")).unwrap();
            if page.advisory.withdrawn.is_none() {
                advisory.push(Advisory {
                    id: page.advisory.id,
                    package: page.advisory.package,
                    unaffected: [page.versions.patched, page.versions.unaffected].concat(),
                });
            }
        }
    }
    advisory.sort_by(|one, other| one.id.cmp(&other.id));
    let date = String::from_utf8(changed.stdout).unwrap().trim().to_owned();
    Known {
        date,
        crates,
        advisory,
    }
}

#[test]
fn no_crate_has_a_known_weakness() {
    let packages: Vec<Package> = locked()
        .into_iter()
        .filter(|it| it.source.is_some())
        .collect();
    let crates: BTreeSet<String> = packages.iter().map(|it| it.name.clone()).collect();
    let file = root().join("tests/advisories.toml");
    if let Some(database) = std::env::var_os("UPDATE_ADVISORIES") {
        let known = looked_up(&root().join(database), crates.clone());
        fs::write(&file, basic_toml::to_string(&known).unwrap()).unwrap();
    }
    let known: Known = basic_toml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let new: Vec<&String> = crates.difference(&known.crates).collect();
    assert!(
        new.is_empty(),
        "{new:?} are not in tests/advisories.toml, of {}: update it (see above)",
        known.date
    );
    assert!(known.advisory.len() > 10, "few advisories were read");
    let is_weak = |(package, advisory): &(&Package, &Advisory)| {
        let is_harmless = HARMLESS.iter().any(|(id, _)| *id == advisory.id);
        let is_unaffected = advisory
            .unaffected
            .iter()
            .any(|it| it.matches(&package.version));
        package.name == advisory.package && !is_unaffected && !is_harmless
    };
    let pairs = packages
        .iter()
        .flat_map(|it| known.advisory.iter().map(move |one| (it, one)));
    let weak: Vec<(&Package, &Advisory)> = pairs.filter(is_weak).collect();
    assert!(
        weak.is_empty(),
        "{weak:#?}\nUpdate the crate, or say in HARMLESS why it does not matter."
    );
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
