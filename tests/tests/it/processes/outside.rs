//! The guide's first program, outside this repository: it builds by path with default features and without protoc,
//! brings few crates, and shares a resource. `tests/release.rs` has the other checks of the guide.

use std::collections::BTreeSet;
use std::path::Path;

use doorward_tests::outside::{cargo, check_shares, first_program, lock, root, run};
use doorward_tests::processes::stdout;

/// Largest number of crates that the library may bring to a program.
const CRATES_MAX: usize = 83;

/// The same for a service of axum with local limits. With the defaults of axum and all of tokio, it compiles 98.
const LOCAL_CRATES_MAX: usize = 90;

/// Returns the crates that the library brings to a program.
fn crates(folder: &Path) -> BTreeSet<String> {
    let tree = run(cargo(folder).args([
        "tree",
        "--offline",
        "--edges=normal",
        "--prefix=none",
        "--target=x86_64-unknown-linux-gnu",
        "--package=doorward",
    ]));
    let lines = stdout(&tree);
    let names = lines.lines().map(|line| line.trim_end_matches(" (*)"));
    names.map(ToOwned::to_owned).collect()
}

#[test]
fn a_service_that_shares_nothing_compiles_neither_tonic_nor_the_protocol() {
    let features = "default-features = false, features = [\"axum\"]";
    let dependency = format!("{{ path = {:?}, {features} }}", root().join("client"));
    let folder = first_program("api-by-path", &dependency, &lock());
    let crates = crates(folder.path());
    assert!(
        crates.len() <= LOCAL_CRATES_MAX,
        "{}: {crates:#?}",
        crates.len()
    );
    for unwanted in ["tonic", "prost", "protox", "schemars", "doorward-proto"] {
        let found = crates.iter().find(|it| it.starts_with(unwanted));
        assert_eq!(found, None);
    }
}

#[test]
fn the_first_program_builds_by_path_with_few_crates_and_shares() {
    let name = "frontend-by-path";
    let dependency = format!("{{ path = {:?} }}", root().join("client"));
    let folder = first_program(name, &dependency, &lock());
    // A build that calls protoc fails.
    let nowhere = folder.path().join("no-protoc");
    run(cargo(folder.path())
        .args(["build", "--quiet", "--offline"])
        .env("PROTOC", nowhere));
    let crates = crates(folder.path());
    assert!(crates.len() <= CRATES_MAX, "{}: {crates:#?}", crates.len());
    for unwanted in ["etcd-client ", "clap ", "axum ", "ratatui "] {
        let found = crates.iter().find(|it| it.starts_with(unwanted));
        assert_eq!(found, None);
    }
    check_shares(name);
}
