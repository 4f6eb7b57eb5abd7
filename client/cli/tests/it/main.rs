//! `doorward` against fake servers: what it asks, what it prints, and the exit codes scripts see.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so"
)]

mod calls;
mod contexts;
mod documents;
mod fake_server;
mod hostile;
mod leases;
mod limits;
mod nodes;
mod plans;
mod rule_documents;
mod rule_instances;
mod rules;
mod status;
mod template_edit;
mod template_warnings;
mod templates;
mod tree;
mod whole_tree;

use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// The program, with nothing from outside that would steer it.
fn doorward() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorward"));
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("DOORWARD_") || name == "NO_COLOR" {
            command.env_remove(&variable);
        }
    }
    // No contexts.
    command.env("XDG_CONFIG_HOME", "/nowhere");
    // A command that hangs is a failure, not a hanging test.
    command.timeout(Duration::from_secs(60));
    command
}

/// Runs it at a server to its end.
fn run(server: &str, arguments: &[&str]) -> Output {
    let mut command = doorward();
    command.args(["--server", server, "--timeout", "5s"]);
    command.args(arguments).output().unwrap()
}

/// Runs it at a server, which must go well, and returns its output.
#[track_caller]
fn printed(server: &str, arguments: &[&str]) -> String {
    let output = run(server, arguments);
    check_exit(&output, 0);
    stdout(&output)
}

#[track_caller]
fn check_exit(output: &Output, code: i32) {
    let (stdout, stderr) = (stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
}

/// A failure is one line.
#[track_caller]
fn check_failure(output: &Output, code: i32, what: &str) {
    check_exit(output, code);
    let said = stderr(output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("doorward: "), "{said}");
    assert!(said.contains(what), "{said:?} does not say {what:?}");
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The only line of the output, as JSON.
#[track_caller]
fn json(output: &Output) -> Value {
    check_exit(output, 0);
    let text = stdout(output);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns an address without a server.
fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}
