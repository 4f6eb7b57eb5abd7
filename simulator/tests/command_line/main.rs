//! `doorward-sim`: what it prints, what it writes, and the exit codes scripts see.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so"
)]

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use doorward_simulator::library::LIBRARY;
use tempfile::TempDir;

/// Runs it in a folder to its end.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorward-sim"));
    // A command that hangs is a failure, not a hanging test.
    command.timeout(Duration::from_secs(120));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn check(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run_in(folder, arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    // Problems are told where they belong.
    if code == 2 { err } else { out }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

const TEMPLATES: &str = "\
resources:
- identifier_glob: shared
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}
- identifier_glob: others/*
  capacity: 10
  algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}
";

const TRACE: &str = "\
time_s,client,wants
0,a,30
0,b,60
120,a,80
240,b,20
300,a,0
";

#[test]
fn the_smallest_scenario_is_played_and_summed_up() {
    let folder = folder();
    let out = check(folder.path(), &["run", "minimal"], 0);
    assert!(out.starts_with("minimal\n"), "{out}");
    assert!(out.contains("utilisation"), "{out}");
}

#[test]
fn a_report_is_written_with_the_command_that_makes_it_again() {
    let folder = folder();
    let duration = ["--duration", "2m", "--seed", "5"];
    let run = ["run", "minimal"];
    let arguments = [&run[..], &duration, &["--out", "report"]].concat();
    let out = check(folder.path(), &arguments, 0);
    assert!(out.contains("report: report/index.html"), "{out}");
    let page = fs::read_to_string(folder.path().join("report/index.html")).unwrap();
    let command = "doorward-sim run minimal --seed 5 --duration 2m";
    assert!(page.contains(command));
    // It does make it again, and JSON has all of it.
    let json = check(
        folder.path(),
        &[&run[..], &duration, &["--json"]].concat(),
        0,
    );
    let recorded = fs::read_to_string(folder.path().join("report/recording.json")).unwrap();
    assert_eq!(json, recorded);
}

#[test]
fn what_is_wrong_with_a_scenario_is_told_with_its_line() {
    let folder = folder();
    let scenario = "duration: soon\ntemplates: none.yaml\nclients: []\n";
    fs::write(folder.path().join("bad.yaml"), scenario).unwrap();
    let err = check(folder.path(), &["run", "bad.yaml"], 2);
    assert!(err.contains("\nbad.yaml:1:11: duration"), "{err}");
    assert!(err.contains("\nbad.yaml:2:12: templates"), "{err}");
    assert!(err.contains("\nbad.yaml:3:10: clients"), "{err}");
    let err = check(folder.path(), &["run", "none.yaml"], 2);
    assert!(err.contains("none.yaml:1:1: cannot be read"), "{err}");
    let err = check(folder.path(), &["run", "minimum"], 2);
    assert!(err.contains("doorward-sim list"), "{err}");
}

#[test]
fn a_limit_that_is_violated_is_told_by_the_exit_code() {
    let folder = folder();
    let minimal = check(folder.path(), &["show", "minimal"], 0);
    let strict = minimal.replace("{overshoot: 0}", "{starvation: 1s, utilisation: 1}");
    assert_ne!(strict, minimal);
    let strict = strict.replace("wants: 20", "wants: {walk: {start: 20}}");
    fs::write(folder.path().join("strict.yaml"), strict).unwrap();
    let out = check(folder.path(), &["run", "strict.yaml"], 1);
    assert!(out.contains("VIOLATED"), "{out}");
}

#[test]
fn the_library_is_listed_and_shown() {
    let folder = folder();
    let out = check(folder.path(), &["list"], 0);
    assert_eq!(out.lines().count(), LIBRARY.len());
    for (line, entry) in out.lines().zip(LIBRARY) {
        assert!(line.starts_with(entry.name), "{line}");
        let shown = check(folder.path(), &["show", entry.name], 0);
        assert_eq!(shown, entry.text);
    }
    check(folder.path(), &["show", "none"], 2);
    let script = check(folder.path(), &["completions", "bash"], 0);
    assert!(script.contains("doorward-sim"));
}

#[test]
fn a_trace_is_replayed_with_all_and_with_half_and_the_two_are_compared() {
    let folder = folder();
    fs::write(folder.path().join("templates.yaml"), TEMPLATES).unwrap();
    fs::write(folder.path().join("demand.csv"), TRACE).unwrap();
    let replay = [
        "replay",
        "--trace",
        "demand.csv",
        "--templates",
        "templates.yaml",
        "--tree",
        "2x2",
    ];
    let out = check(folder.path(), &[&replay[..], &["--out", "now"]].concat(), 0);
    assert!(out.contains("7 nodes in 3 levels, 2 clients"), "{out}");
    let half = ["--capacity-factor", "0.5", "--out", "half"];
    check(folder.path(), &[&replay[..], &half].concat(), 0);
    let page = fs::read_to_string(folder.path().join("half/index.html")).unwrap();
    let command = "doorward-sim replay --trace demand.csv --templates templates.yaml --tree 2x2 \
                   --capacity-factor 0.5 --seed 1";
    assert!(page.contains(command));
    let both = ["compare", "now", "half/recording.json"];
    let out = check(
        folder.path(),
        &[&both[..], &["--out", "both.html"]].concat(),
        0,
    );
    assert!(out.contains("utilisation"), "{out}");
    assert!(folder.path().join("both.html").exists());
    check(folder.path(), &["compare", "now", "none"], 2);
}

#[test]
fn a_replay_that_makes_no_sense_says_what_to_give() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("globs.yaml", &TEMPLATES.replace(": shared", ": some/*"));
    write("two.yaml", &TEMPLATES.replace("others/*", "second"));
    write("demand.csv", TRACE);
    write("wrong.csv", "time_s,client,wants\n0,a,much\n");
    write("tree.yaml", "tree: {root: {children: 5}}\n");
    write("templates.yaml", TEMPLATES);
    let replay = |trace: &str, templates: &str, more: &[&str]| {
        let arguments = ["replay", "--trace", trace, "--templates", templates];
        check(folder.path(), &[&arguments[..], more].concat(), 2)
    };
    let err = replay("demand.csv", "globs.yaml", &[]);
    assert!(err.contains("--resource ID"), "{err}");
    let err = replay("demand.csv", "two.yaml", &[]);
    assert!(err.contains("shared, second"), "{err}");
    let err = replay("demand.csv", "two.yaml", &["--resource", "third"]);
    assert!(
        err.contains("no template in two.yaml matches third"),
        "{err}"
    );
    let err = replay("wrong.csv", "templates.yaml", &[]);
    assert!(err.contains("wrong.csv:2:"), "{err}");
    let err = replay("demand.csv", "templates.yaml", &["--tree", "tree.yaml"]);
    assert!(err.contains("tree.yaml:1:"), "{err}");
    let err = replay("demand.csv", "templates.yaml", &["--speed", "1000"]);
    assert!(err.contains("--speed"), "{err}");
}

#[test]
fn seeds_are_played() {
    let folder = folder();
    let out = check(folder.path(), &["fuzz", "--seeds", "5"], 0);
    assert!(out.contains("5 seeds from 0 hold"), "{out}");
    let out = check(folder.path(), &["fuzz", "--seed", "3", "--shrink"], 0);
    assert!(out.starts_with("fuzz-3\n"), "{out}");
}
