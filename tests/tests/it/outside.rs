//! Programs outside this repository: the guide's first program builds by path and by git, with default features and
//! without protoc, and shares a resource. The guide's commands install the programs.
//!
//! Dependencies are those of the workspace's lock, and nothing is fetched. Builds go to the workspace's target folder,
//! which already has most crates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use doorward_tests::processes::{Server, stderr, stdout};
use tempfile::TempDir;

/// Largest number of crates that the library may bring to a program.
const CRATES_MAX: usize = 80;

/// The guide's dependency on the library.
const DEPENDENCY: &str = "{ git = \"https://github.com/doorward/doorward\" }";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns the workspace's target folder: tests are in target/PROFILE/deps.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

fn guide() -> String {
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
fn command(program: &str, folder: &Path) -> Command {
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

fn cargo(folder: &Path) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = command(&cargo, folder);
    command.env("CARGO_TARGET_DIR", target());
    command
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Creates a crate of the guide's first program, with dependencies of the workspace's versions.
fn first_program(name: &str, dependency: &str, lock: &str) -> TempDir {
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
fn check_shares(name: &str) {
    let server = Server::start(&[]);
    let program = target().join("debug").join(name);
    let output = run(Command::new(program).args(["frontend-1", &server.address, "400"]));
    let last = stdout(&output);
    let last = last.lines().last().unwrap();
    assert!(
        last.ends_with("400 requests, 80 a second allowed"),
        "{last}"
    );
}

fn lock() -> String {
    fs::read_to_string(root().join("Cargo.lock")).unwrap()
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

/// Makes the working tree the only commit of a repository, the same one as long as no file changes. Returns its address
/// and that commit.
fn repository() -> (String, String) {
    let folder = target().join("outside").join("repository");
    fs::create_dir_all(&folder).unwrap();
    run(command("git", &folder).args(["init", "--quiet"]));
    let (own, root) = (folder.join(".git"), root());
    let git = |arguments: &[&str]| {
        let mut git = command("git", &root);
        git.args(["--git-dir".as_ref(), own.as_os_str()])
            .args(["--work-tree".as_ref(), root.as_os_str()]);
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "a test")
                .env(format!("GIT_{who}_EMAIL"), "test@example.com")
                .env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        let output = run(git.args(arguments));
        stdout(&output).trim().to_owned()
    };
    git(&["add", "--all"]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", "-m", "The working tree", &tree]);
    git(&["update-ref", "HEAD", &commit]);
    (format!("file://{}", folder.display()), commit)
}

#[test]
fn the_first_program_builds_by_git_and_shares() {
    let name = "frontend-by-git";
    let (address, commit) = repository();
    // Cargo looks for no other versions if all are locked, so it need not ask crates.io.
    let source = format!("source = \"git+{address}?rev={commit}#{commit}\"");
    let packages = lock();
    let packages = packages.split("[[package]]").map(|package| {
        let version = "\nversion = \"0.1.0\"\n";
        if package.contains("\nname = \"doorward") && !package.contains("\nsource = ") {
            package.replace(version, &format!("{version}{source}\n"))
        } else {
            package.to_owned()
        }
    });
    let lock = packages.collect::<Vec<_>>().join("[[package]]");
    let dependency = format!("{{ git = \"{address}\", rev = \"{commit}\" }}");
    let folder = first_program(name, &dependency, &lock);
    let nowhere = folder.path().join("no-protoc");
    run(cargo(folder.path())
        .args(["build", "--quiet"])
        .env("PROTOC", nowhere));
    check_shares(name);
}

#[test]
fn the_programs_are_installed_by_the_lines_of_the_guide() {
    let folder = tempfile::tempdir().unwrap();
    let guide = guide();
    let lines: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("cargo install --locked"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        run(cargo(&root())
            .args(line.replace("--profile dist", "--debug").split(' ').skip(1))
            .args(["--quiet", "--offline", "--root"])
            .arg(folder.path()));
    }
    for program in ["doorward-server", "doorward"] {
        let installed = folder.path().join("bin").join(program);
        let output = run(Command::new(installed).arg("--version"));
        assert!(stdout(&output).starts_with(program), "{}", stdout(&output));
    }
}
