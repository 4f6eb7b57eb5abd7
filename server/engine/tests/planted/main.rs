//! Each bug that is planted in the engine makes a test of the engine fail, or a world by chance
//! (`simulator/planted`).
//!
//! The tests are those beside this folder, built once more, all in this program, with the feature that makes bugs
//! possible. The program runs itself: one test for each bug, which must fail, and without any, when it must pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]
#![allow(missing_docs, reason = "a test")]

#[path = "../admission.rs"]
mod admission;
#[path = "../admission_children.rs"]
mod admission_children;
#[path = "../clocks.rs"]
mod clocks;
#[path = "../holder_bounds.rs"]
mod holder_bounds;
#[path = "../learning.rs"]
mod learning;
#[path = "../lies.rs"]
mod lies;
#[path = "../longer_leases.rs"]
mod longer_leases;
#[path = "../masterships.rs"]
mod masterships;
#[path = "../own_lease.rs"]
mod own_lease;
#[path = "../servers.rs"]
mod servers;
#[path = "../stories.rs"]
mod stories;
#[path = "../terms.rs"]
mod terms;
#[path = "../two_servers.rs"]
mod two_servers;
#[path = "../vectors.rs"]
mod vectors;
#[path = "../what_clients_live_through.rs"]
mod what_clients_live_through;
#[path = "../words.rs"]
mod words;

use std::collections::BTreeSet;
use std::process::Command;

use doorward_engine::planted::{Bug, VARIABLE};

/// A bug, and a test that finds it.
const FOUND: &[(Bug, &str)] = &[];

/// Whether a test of this program passes when a bug is planted.
fn passes(test: &str, bug: Option<Bug>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env_remove(VARIABLE);
    if let Some(bug) = bug {
        command.env(VARIABLE, format!("{bug:?}"));
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "there is no test {test}");
    output.status.success()
}

#[test]
fn a_test_finds_every_planted_bug_that_worlds_by_chance_do_not() {
    for (bug, test) in FOUND {
        assert!(!passes(test, Some(*bug)), "{test} does not see {bug:?}");
    }
    let tests: BTreeSet<&str> = FOUND.iter().map(|(_, test)| *test).collect();
    for test in tests {
        assert!(passes(test, None), "{test} fails without a bug");
    }
    for bug in Bug::ALL {
        let is_found = FOUND.iter().any(|(found, _)| *found == bug);
        assert_ne!(is_found, Bug::BY_WORLDS.contains(&bug), "{bug:?}");
    }
}
