//! The guide's first program, outside this repository: it builds by path with default features and without protoc,
//! brings few crates, and shares a resource. `tests/release.rs` has the other checks of the guide.

use std::collections::BTreeSet;

use doorward_tests::outside::{cargo, check_shares, first_program, lock, root, run};
use doorward_tests::processes::stdout;

/// Largest number of crates that the library may bring to a program.
const CRATES_MAX: usize = 81;

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
    let tree = run(cargo(folder.path()).args([
        "tree",
        "--offline",
        "--edges=normal",
        "--prefix=none",
        "--target=x86_64-unknown-linux-gnu",
        "--package=doorward-client",
    ]));
    let tree = stdout(&tree);
    let crates: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    assert!(crates.len() <= CRATES_MAX, "{}: {crates:#?}", crates.len());
    for unwanted in ["etcd-client ", "clap ", "axum ", "ratatui "] {
        let found = crates.iter().find(|it| it.starts_with(unwanted));
        assert_eq!(found, None);
    }
    check_shares(name);
}
