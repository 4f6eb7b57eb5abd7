//! Applies each mutation of `tests/mutations.toml` to a copy of the repository, and demands that its test fails.
//!
//! The copy and its build are kept below `target/mutate`, so every build is incremental. A mutation is caught if its
//! code compiles and its test fails in time. Before that, the same test must pass without a mutation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use doorward_tests::mutations::{self, Mutation};
use tokio::time::Instant;

/// Seconds that one test may take.
const TEST_SECONDS_MAX: &str = "300";

/// Settings of cargo for short builds: the tests are small, and need no optimised code.
const SETTINGS: [&str; 5] = [
    "profile.dev.debug=0",
    "profile.dev.package.doorward-engine.opt-level=0",
    "profile.dev.package.doorward-session.opt-level=0",
    "profile.dev.package.doorward-simulator.opt-level=0",
    "profile.dev.package.doorward-time.opt-level=0",
];

/// Exit code of `timeout` when the time is over.
const TIMED_OUT: i32 = 124;

const USAGE: &str = "usage: tests/mutate [--list] [--changed REVISION] [NAME...]

Applies the named mutations of tests/mutations.toml, by default all of them, and demands that their tests fail.
  --changed REVISION  only mutations whose `file` differs from this revision; a changed test selects nothing
  --list              print the names, and test nothing";

/// Result of a test. A mutation is caught if it is `Failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// The filter matches no test.
    NoTest,
    TimedOut,
    /// The code does not compile, or the test program ended without a result.
    Broken,
}

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            println!("{problem:#}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let (mut names, mut changed, mut is_list) = (BTreeSet::new(), None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => is_list = true,
            "--help" => {
                println!("{USAGE}");
                return Ok(true);
            }
            "--changed" => changed = Some(arguments.next().context(USAGE)?),
            option if option.starts_with('-') => bail!(USAGE),
            _ => {
                names.insert(argument);
            }
        }
    }
    let root = mutations::root();
    let mut chosen = mutations::read()?;
    let known: BTreeSet<String> = chosen.iter().map(|it| it.name.clone()).collect();
    if let Some(unknown) = names.difference(&known).next() {
        bail!("tests/mutations.toml has no mutation {unknown}");
    }
    chosen.retain(|it| names.is_empty() || names.contains(&it.name));
    if let Some(revision) = changed {
        let files = git(&root, &format!("diff --name-only -z {revision}"))?;
        chosen.retain(|it| files.contains(&it.file));
    }
    // The tests of one package are built one after the other.
    chosen.sort_by(|a, b| a.package().cmp(b.package()));
    if is_list {
        chosen.iter().for_each(|it| println!("{}", it.name));
        return Ok(true);
    }
    Copy::of(&root)?.test_all(&chosen)
}

/// A copy of the repository, with a build of its own.
struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    /// Brings the copy up to date. Unchanged files keep their times, so cargo does not build them again.
    fn of(root: &Path) -> Result<Self> {
        let copy = Self {
            tree: root.join("target/mutate/tree"),
            build: root.join("target/mutate/build"),
        };
        let files = git(root, "ls-files -z --cached --others --exclude-standard")?;
        for file in &files {
            let to = copy.tree.join(file);
            // A deleted file is listed until its deletion is staged.
            let Ok(bytes) = fs::read(root.join(file)) else {
                fs::remove_file(to).ok();
                continue;
            };
            if fs::read(&to).ok().as_ref() != Some(&bytes) {
                fs::create_dir_all(to.parent().unwrap_or(&copy.tree))?;
                fs::copy(root.join(file), to)?;
            }
        }
        remove_others(&copy.tree, &copy.tree, &files)?;
        Ok(copy)
    }

    /// Tests all mutations. Returns whether each is caught.
    fn test_all(&self, chosen: &[Mutation]) -> Result<bool> {
        let (start, mut missed) = (Instant::now(), Vec::new());
        let tests: BTreeSet<&str> = chosen.iter().map(|it| it.test.as_str()).collect();
        for test in tests {
            let (outcome, output) = self.test(test)?;
            if outcome != Outcome::Passed {
                println!("{output}");
                bail!("without a mutation: {outcome:?}: cargo test {test}");
            }
            println!("passes without a mutation: cargo test {test}");
        }
        for (index, mutation) in chosen.iter().enumerate() {
            let begun = Instant::now();
            let (outcome, output) = self.test_one(mutation)?;
            let name = &mutation.name;
            let mut result = "caught".to_owned();
            if outcome != Outcome::Failed {
                println!("{output}");
                result = format!("NOT CAUGHT ({outcome:?})");
                missed.push(name);
            }
            let (place, all) = (index + 1, chosen.len());
            let seconds = begun.elapsed().as_secs_f64();
            println!("{place:>3} of {all}: {result} in {seconds:.1} s: {name}");
        }
        let (caught, all) = (chosen.len() - missed.len(), chosen.len());
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        println!("{caught} of {all} mutations caught in {minutes:.1} minutes");
        missed.iter().for_each(|it| println!("not caught: {it}"));
        Ok(missed.is_empty())
    }

    fn test_one(&self, mutation: &Mutation) -> Result<(Outcome, String)> {
        let path = self.tree.join(&mutation.file);
        let text = fs::read_to_string(&path).with_context(|| mutation.file.clone())?;
        fs::write(&path, mutation.apply(&text)?)?;
        let tested = self.test(&mutation.test);
        fs::write(&path, text)?;
        tested
    }

    /// Builds and runs a test.
    fn test(&self, test: &str) -> Result<(Outcome, String)> {
        let mut build = Command::new("cargo");
        build.args(["test", "--no-run"]);
        let (code, output) = self.output(build, test)?;
        if code != Some(0) {
            return Ok((Outcome::Broken, output));
        }
        let mut command = Command::new("timeout");
        command.args([TEST_SECONDS_MAX, "cargo", "test"]);
        let (code, output) = self.output(command, test)?;
        let outcome = match code {
            Some(0) if output.contains("test result: ok. 0 passed") => Outcome::NoTest,
            Some(0) => Outcome::Passed,
            Some(TIMED_OUT) => Outcome::TimedOut,
            _ if output.contains("test result: FAILED") => Outcome::Failed,
            _ => Outcome::Broken,
        };
        Ok((outcome, output))
    }

    /// Returns the exit code of a command in the copy, and all its output.
    fn output(&self, mut command: Command, test: &str) -> Result<(Option<i32>, String)> {
        command.args(["--locked", "--quiet"]);
        command.args(SETTINGS.iter().flat_map(|it| ["--config", it]));
        command.args(test.split_whitespace());
        command.current_dir(&self.tree).stdin(Stdio::null());
        // Warnings of changed code are no errors, and each build is incremental.
        command
            .env_remove("RUSTFLAGS")
            .env("CARGO_INCREMENTAL", "1");
        command.env("CARGO_TARGET_DIR", &self.build);
        let output = command.output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    }
}

/// Removes files of the copy that the repository does not have.
fn remove_others(folder: &Path, tree: &Path, files: &BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(tree).unwrap_or(&path).to_string_lossy();
        if path.is_dir() {
            remove_others(&path, tree, files)?;
        } else if !files.contains(name.as_ref()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Returns the files that git names, separated by zero bytes.
fn git(root: &Path, arguments: &str) -> Result<BTreeSet<String>> {
    let output = Command::new("git")
        .args(arguments.split(' '))
        .current_dir(root)
        .output();
    let output = output?;
    if !output.status.success() {
        bail!("git: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .split('\0')
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect())
}
