//! House rules that no lint sees.

mod cycles;
mod deploy;
mod metrics;
mod mutations;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Allowed dependencies of the engine. It uses no clock, network, logging, wire format or YAML, and this list proves
/// it.
const ENGINE_DEPENDENCIES: [&str; 6] = [
    "doorward-time",
    "hashbrown",
    "siphasher",
    "smallvec",
    "smol_str",
    "thiserror",
];

/// Allowed dependencies of sessions: they use neither the engine nor the wire. `serde` names the fields of the values
/// that candidates write to etcd; the bytes are the driver's.
const SESSION_DEPENDENCIES: [&str; 4] = ["doorward-time", "serde", "smol_str", "thiserror"];

/// Crates of this workspace that the door may use. It knows neither methods nor what they serve, so that other servers
/// can use it.
const DOOR_DEPENDENCIES: [&str; 4] = [
    "doorward-clock",
    "doorward-limits",
    "doorward-time",
    "doorward-tls",
];

/// Allowed dependencies of the replica: the two that it composes.
const REPLICA_DEPENDENCIES: [&str; 3] = ["doorward-engine", "doorward-session", "smol_str"];

/// Files that may read the clock of tokio's timers, whose speed programs that set the time may change: for timeouts of
/// calls and backoffs; and rules and fake clients, whose time tests stop. Decisions about leases and masterships use
/// `doorward_clock::Instant`.
const STEERED_CLOCK: [&str; 6] = [
    "client/src/clock.rs",
    "client/src/layer/clock.rs",
    "server/etcd/src/follow.rs",
    "server/etcd/src/documents.rs",
    "server/src/web/documents/planning.rs",
    "server/src/web/tree.rs",
];

/// Largest number of lines of a file. A longer one is about two things. A lint bounds functions.
const FILE_LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns all files of the repository with that extension.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && !name.starts_with(".git") {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the same files, each with its name relative to the root of the repository.
fn named_files(ending: &str) -> impl Iterator<Item = (String, PathBuf)> {
    let root = root();
    files(ending).into_iter().map(move |path| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        (name.to_owned(), path)
    })
}

#[test]
fn every_file_opens_with_its_why() {
    for file in files(".rs") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{}", file.display());
    }
}

#[test]
fn no_file_is_about_two_things() {
    for (name, path) in named_files(".rs") {
        let lines = fs::read_to_string(path).unwrap().lines().count();
        assert!(lines <= FILE_LINES_MAX, "{name} has {lines} lines");
    }
}

fn dependencies(manifest: &str) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(manifest)).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
    let dependencies = dependencies.split("\n[").next().unwrap();
    let names = dependencies
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(ToOwned::to_owned)
        .collect()
}

#[test]
fn engine_sessions_and_replica_depend_on_nothing_that_touches_the_world() {
    for (manifest, expected) in [
        ("server/engine/Cargo.toml", &ENGINE_DEPENDENCIES[..]),
        ("server/session/Cargo.toml", &SESSION_DEPENDENCIES),
        ("server/replica/Cargo.toml", &REPLICA_DEPENDENCIES),
        ("server/time/Cargo.toml", &["thiserror"]),
    ] {
        assert_eq!(dependencies(manifest), expected, "{manifest}");
    }
}

#[test]
fn the_door_knows_nothing_of_what_is_served() {
    let mut names = dependencies("server/door/Cargo.toml");
    names.retain(|name| name.starts_with("doorward-"));
    assert_eq!(names, DOOR_DEPENDENCIES);
}

#[test]
fn every_algorithm_has_a_heading() {
    let docs = fs::read_to_string(root().join("docs/algorithms.md")).unwrap();
    for kind in [
        "NO_ALGORITHM",
        "STATIC",
        "PROPORTIONAL_SHARE",
        "FAIR_SHARE",
        "PRIORITY_BANDS",
        "BUDGET",
    ] {
        assert!(docs.contains(&format!("\n### {kind}\n")), "{kind}");
    }
}

#[test]
fn every_link_in_the_docs_leads_somewhere() {
    for file in files(".md") {
        let text = fs::read_to_string(&file).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.contains("://") {
                continue;
            }
            assert!(
                leads_somewhere(&file, link),
                "{} links to {link}",
                file.display()
            );
        }
    }
}

/// Returns whether a link of a file leads to a file and a heading that exist.
fn leads_somewhere(file: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => file.to_owned(),
        path => file.parent().unwrap().join(path),
    };
    let Ok(text) = fs::read_to_string(&target) else {
        return target.exists() && anchor.is_empty();
    };
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    anchor.is_empty()
        || headings.any(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            heading
                .replace(' ', "-")
                .replace([',', '.', ':', '\'', '`'], "")
                == anchor
        })
}

/// A call that walks all leases of a resource, in one look that every request waits for.
const WALK: &str = "node.child_snapshots(";

#[test]
fn no_server_walks_all_resources_while_requests_wait() {
    for (name, path) in named_files(".rs") {
        if !name.starts_with("server/src/") || name.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let shipped = source::bare(text.split("#[cfg(test)]").next().unwrap());
        assert!(!shipped.contains(WALK), "{name}");
    }
}

#[test]
fn only_timeouts_and_backoffs_go_by_the_clock_that_may_be_steered() {
    let root = root();
    for file in files(".rs") {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let folders = [
            "server/src",
            "server/door/src",
            "server/etcd/src",
            "client/src",
            "client/cli/src",
        ];
        if !folders.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let is_steered = text.contains("tokio::time::Instant");
        assert_eq!(is_steered, STEERED_CLOCK.contains(&name), "{name}");
    }
}
