//! Checks before a release, which take minutes: a program of its own, which `cargo test` builds only if asked for. The
//! guide's first program builds by git, and the guide's commands install the programs.

use std::fs;
use std::process::Command;

use doorward_tests::outside::{
    cargo, check_shares, command, first_program, guide, lock, root, run, target,
};
use doorward_tests::processes::stdout;

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
