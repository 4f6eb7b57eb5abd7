//! Programs outside this repository: the guide's first program, and cargo as its reader runs it.
//!
//! Dependencies are those of the workspace's lock, and nothing is fetched. Builds go to the workspace's target folder,
//! which already has most crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::processes::{Server, stderr, stdout};
use tempfile::TempDir;

/// The guide's dependency on the library.
const DEPENDENCY: &str = "{ git = \"https://github.com/doorward/doorward\" }";

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns the workspace's target folder: tests are in target/PROFILE/deps.
pub fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Returns the guide for users of the library.
pub fn guide() -> String {
    fs::read_to_string(root().join("docs/clients.md")).unwrap()
}

/// Returns the first block of a language in the guide.
fn block(language: &str) -> String {
    let guide = guide();
    let start = format!("\n```{language}\n");
    let (_, block) = guide.split_once(&start).unwrap();
    block.split_once("\n```").unwrap().0.to_owned()
}

/// Returns a command without cargo's variables for a test's package, and without a protoc.
pub fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        let is_of_cargo = name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if is_of_cargo || name.starts_with("GIT_") || name == "PROTOC" {
            command.env_remove(&variable);
        }
    }
    command.current_dir(folder);
    command
}

/// Returns cargo as the reader of the guide runs it.
pub fn cargo(folder: &Path) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = command(&cargo, folder);
    command.env("CARGO_TARGET_DIR", target());
    command
}

/// Runs a command, which must succeed.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Creates a crate of the guide's first program, with dependencies of the workspace's versions.
pub fn first_program(name: &str, dependency: &str, lock: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let dependencies = block("toml");
    assert!(dependencies.contains(DEPENDENCY), "{dependencies}");
    let dependencies = dependencies.replace(DEPENDENCY, dependency);
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n\n{dependencies}\n"
    );
    let path = |file: &str| folder.path().join(file);
    fs::write(path("Cargo.toml"), manifest).unwrap();
    fs::write(path("Cargo.lock"), lock).unwrap();
    fs::create_dir(path("src")).unwrap();
    fs::write(path("src/main.rs"), block("rust,no_run")).unwrap();
    folder
}

/// Lets the program share `example/fair` until it has made all its requests.
#[track_caller]
pub fn check_shares(name: &str) {
    let server = Server::start(&[]);
    let program = target().join("debug").join(name);
    let output = run(Command::new(program).args([&server.address, "400"]));
    let last = stdout(&output);
    let last = last.lines().last().unwrap();
    assert!(
        last.ends_with("400 requests, 100 a second allowed"),
        "{last}"
    );
}

/// Returns the workspace's lock.
pub fn lock() -> String {
    fs::read_to_string(root().join("Cargo.lock")).unwrap()
}
