//! Tests of `doorward-sim`: its output, its files and its exit codes.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use doorward_simulator::library::LIBRARY;
use tempfile::TempDir;

/// Runs the program in a folder to its end.
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
    // Usage errors go to standard error.
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
    assert!(out.contains("report: report/report.html"), "{out}");
    let page = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    let command = "doorward-sim run minimal --duration 2m --seed 5";
    assert!(page.contains(command));
    // The command gives the same recording.
    let again = [&run[..], &duration, &["--out", "again"]].concat();
    check(folder.path(), &again, 0);
    let recorded = |name: &str| {
        let file = folder.path().join(name).join("recording.json");
        fs::read_to_string(file).unwrap()
    };
    assert_eq!(recorded("again"), recorded("report"));
}

#[test]
fn an_invalid_scenario_is_reported_with_its_place() {
    let folder = folder();
    let scenario = "duration: 5m\ntemplates: none.yaml\nclients: []\n";
    fs::write(folder.path().join("bad.yaml"), scenario).unwrap();
    let err = check(folder.path(), &["run", "bad.yaml"], 2);
    assert!(
        err.contains("bad.yaml: templates: is \"none.yaml\""),
        "{err}"
    );
    let scenario = "duration: 5m\nseeds: 1\n";
    fs::write(folder.path().join("bad.yaml"), scenario).unwrap();
    let err = check(folder.path(), &["run", "bad.yaml"], 2);
    assert!(err.contains("bad.yaml:2:1: unknown field `seeds`"), "{err}");
    let err = check(folder.path(), &["run", "none.yaml"], 2);
    assert!(err.contains("none.yaml: cannot be read"), "{err}");
    let err = check(folder.path(), &["run", "minimum"], 2);
    assert!(err.contains("doorward-sim list"), "{err}");
}

#[test]
fn a_limit_that_is_violated_is_reported_by_the_exit_code() {
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
fn a_shown_scenario_plays_from_another_folder() {
    let folder = folder();
    let shown = check(folder.path(), &["show", "fast-demand"], 0);
    fs::write(folder.path().join("f.yaml"), shown).unwrap();
    let out = check(folder.path(), &["run", "f.yaml"], 0);
    assert!(out.contains("utilisation"), "{out}");
}

#[test]
fn the_library_is_listed_and_shown() {
    let folder = folder();
    let out = check(folder.path(), &["list"], 0);
    assert_eq!(out.lines().count(), LIBRARY.len(), "{out}");
    for (line, entry) in out.lines().zip(LIBRARY) {
        assert!(line.starts_with(entry.name), "{line}");
        let shown = check(folder.path(), &["show", entry.name], 0);
        assert_eq!(shown, entry.text);
    }
    check(folder.path(), &["show", "none"], 2);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_doorward-sim"));
    let output = command.arg("--version").stdout(full.unwrap()).output();
    let output = output.unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the output"), "{said}");
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
    let page = fs::read_to_string(folder.path().join("half/report.html")).unwrap();
    let command = "doorward-sim replay --trace demand.csv --templates templates.yaml --tree 2x2 \
                   --capacity-factor 0.5";
    assert!(page.contains(command));
    let both = ["compare", "now", "half/recording.json"];
    let out = check(folder.path(), &both, 0);
    assert!(out.contains("utilisation"), "{out}");
    let err = check(folder.path(), &["compare", "now", "none.json"], 2);
    assert!(err.contains("cannot open none.json"), "{err}");
    fs::write(folder.path().join("empty.json"), "{}").unwrap();
    let err = check(folder.path(), &["compare", "now", "empty.json"], 2);
    assert!(err.contains("empty.json holds no recording"), "{err}");
    let err = check(folder.path(), &["compare", "now", "minimal"], 2);
    assert!(err.contains("two recordings or two scenarios"), "{err}");
    let err = check(
        folder.path(),
        &["compare", "now", "half", "--seeds", "3"],
        2,
    );
    assert!(err.contains("A and B are recordings"), "{err}");
}

#[test]
fn scenarios_are_compared_over_seeds_and_a_difference_counts_beyond_their_spread() {
    let folder = folder();
    let minimal = check(folder.path(), &["show", "minimal"], 0);
    let walk = minimal.replace("wants: 20", "wants: {walk: {start: 20}}");
    assert_ne!(walk, minimal);
    fs::write(folder.path().join("walk.yaml"), &walk).unwrap();
    let less = walk.replace("start: 20", "start: 2");
    fs::write(folder.path().join("less.yaml"), less).unwrap();
    let seeds = ["--seeds", "3", "--seed", "7", "--duration", "3m"];
    let compare = ["compare", "walk.yaml", "less.yaml"];
    let out = check(folder.path(), &[&compare[..], &seeds].concat(), 0);
    assert!(
        out.contains("A  walk.yaml: seeds 7 to 9. All limits hold in 3 of 3 runs."),
        "{out}"
    );
    let row = |name: &str| {
        let line = out.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {out}")).to_owned()
    };
    assert!(row("demand met").ends_with(" B"), "{out}");
    assert!(row("unfairness").ends_with("no"), "{out}");
    let err = check(folder.path(), &["compare", "minimal", "minimum"], 2);
    assert!(err.contains("doorward-sim list"), "{err}");
}

/// Returns the line of a summary with the trace hash.
fn trace_of(summary: &str) -> &str {
    let mut lines = summary.lines().map(str::trim);
    lines.find(|line| line.starts_with("trace ")).unwrap()
}

#[test]
fn a_replay_is_printed_as_a_scenario_that_plays_the_same() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "templates.yaml",
        "resources:\n\
         - identifier_glob: '*'\n  \
           capacity: 100\n  \
           safe_capacity: 2.5\n  \
           wants_max: 90.5\n  \
           subclients_max: 70\n  \
           description: 'of \"all\": # everybody'\n  \
           algorithm:\n    \
             kind: PRIORITY_BANDS\n    \
             lease_length: 60s\n    \
             refresh_interval: 5s\n    \
             learning_mode_duration: 20s\n    \
             parameters:\n    \
             - {name: shrink, value: immediate}\n    \
             - {name: decay_factor, value: \"0.25\"}\n    \
             - {name: min_share.0, value: \"0.5\"}\n",
    );
    write("demand of #1.csv", TRACE);
    write(
        "tree.yaml",
        "tree: {top: {candidates: 2, children: {a: {children: {b: {count: 3}}}, 'c': }}}\n",
    );
    for more in [
        &["--tree", "2x1x3", "--resource", "1.10"][..],
        &[
            "--tree",
            "tree.yaml",
            "--resource",
            "requests",
            "--speed",
            "1.5",
        ],
        &[
            "--resource",
            "r",
            "--lease-length",
            "20s",
            "--capacity-factor",
            "0.3",
            "--seed",
            "7",
        ],
    ] {
        let replay = [
            "replay",
            "--trace",
            "demand of #1.csv",
            "--templates",
            "templates.yaml",
        ];
        let replay = [&replay[..], more].concat();
        let expected = run_in(folder.path(), &replay);
        let printed = [&replay[..], &["--print-scenario"]].concat();
        let printed = check(folder.path(), &printed, 0);
        write("printed.yaml", &printed);
        // Both runs have the same verdicts.
        let out = run_in(folder.path(), &["run", "printed.yaml"]);
        assert_eq!(out.status.code(), expected.status.code(), "{printed}");
        let (out, expected) = (text(&out.stdout), text(&expected.stdout));
        assert!(out.starts_with("printed\n"), "{out}");
        assert_eq!(trace_of(&out), trace_of(&expected), "{printed}");
        let after = |text: &str| text.split_once("checked").unwrap().1.to_owned();
        assert_eq!(after(&out), after(&expected), "{printed}");
    }
}

#[test]
fn a_random_world_is_printed_as_a_scenario_that_plays_the_same() {
    let folder = folder();
    for focus in [
        "masters",
        "etcd",
        "clocks",
        "edits",
        "departures",
        "limiters",
        "twins",
    ] {
        let fuzz = ["fuzz", "--seed", "11", "--focus", focus];
        let expected = check(folder.path(), &fuzz, 0);
        let printed = check(
            folder.path(),
            &[&fuzz[..], &["--print-scenario"]].concat(),
            0,
        );
        fs::write(folder.path().join("printed.yaml"), &printed).unwrap();
        let out = check(folder.path(), &["run", "printed.yaml"], 0);
        assert_eq!(trace_of(&out), trace_of(&expected), "{printed}");
    }
}

#[test]
fn leases_of_another_length_are_all_that_differs() {
    let folder = folder();
    let run = ["run", "lease-length", "--duration", "8m"];
    check(folder.path(), &[&run[..], &["--out", "a"]].concat(), 0);
    let short = ["--lease-length", "20s", "--out", "b"];
    check(folder.path(), &[&run[..], &short].concat(), 0);
    let out = check(folder.path(), &["compare", "a", "b"], 0);
    assert!(
        out.contains("lease length of shared: A 1 min, B 20 s"),
        "{out}"
    );
    // Both runs have the same faults, random ones such as crashes included.
    let happened = |run: &str| {
        let recording = fs::read(folder.path().join(run).join("recording.json")).unwrap();
        let recording: serde_json::Value = serde_json::from_slice(&recording).unwrap();
        recording["marks"].to_string()
    };
    assert!(happened("a").contains("crash"), "{}", happened("a"));
    assert_eq!(happened("a"), happened("b"));
    let page = fs::read_to_string(folder.path().join("b/report.html")).unwrap();
    let command = "doorward-sim run lease-length --duration 8m --lease-length 20s --seed 1";
    assert!(page.contains(command));
    let err = check(
        folder.path(),
        &[&run[..], &["--lease-length", "5s"]].concat(),
        2,
    );
    assert!(err.contains("--lease-length"), "{err}");
}

#[test]
fn wrong_flags_of_a_replay_are_answered_with_what_to_give() {
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
    let err = replay("demand.csv", "templates.yaml", &["--tree", "3by3"]);
    assert!(err.contains("is neither a shape"), "{err}");
    let err = replay("demand.csv", "templates.yaml", &["--speed", "1000"]);
    assert!(err.contains("--speed"), "{err}");
}

#[test]
fn a_folder_that_cannot_hold_a_report_is_reported_before_anything_is_played() {
    let folder = folder();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    for (out, expected) in [
        (".", "there is notes.txt"),
        ("notes.txt", "cannot write notes.txt"),
        ("notes.txt/report", "cannot write notes.txt/report"),
    ] {
        let output = run_in(folder.path(), &["run", "minimal", "--out", out]);
        assert_eq!(output.status.code(), Some(2), "{out}");
        assert_eq!(text(&output.stdout), "");
        let err = text(&output.stderr);
        assert!(err.contains(expected), "{err}");
    }
    let err = check(folder.path(), &["show", "lease"], 2);
    assert!(err.contains("did you mean lease-length?"), "{err}");
}

#[test]
fn seeds_are_played() {
    let folder = folder();
    let out = check(folder.path(), &["fuzz", "--seeds", "5"], 0);
    assert!(out.contains("5 seeds from 0 hold"), "{out}");
    let out = check(folder.path(), &["fuzz", "--seed", "3", "--shrink"], 0);
    assert!(out.starts_with("fuzz-3\n"), "{out}");
}

#[cfg(unix)]
#[test]
fn signals_to_stop_end_a_long_run_at_once() {
    use std::os::unix::process::ExitStatusExt;
    for (name, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_doorward-sim"))
            .args(["fuzz", "--seeds", "1000000000"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let kill = std::process::Command::new("kill")
            .args(["-s", name, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_limit_of_the_system_that_is_too_small_is_named_and_no_panic() {
    for (limit, expected) in [("-n 4", "ulimit -n"), ("-v 60000", "ulimit -v")] {
        let script = format!("ulimit {limit} && exec \"$0\" run minimal");
        let mut shell = Command::new("bash");
        let output = shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_doorward-sim")])
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{limit}: {said}"
        );
    }
}
