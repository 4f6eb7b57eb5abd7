//! The binary as a process: flags, exit codes, logs, signals.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorward-server"));
    command.args(arguments).env_clear();
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("it runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// A server process on free ports. It is killed when dropped.
pub(crate) struct Process {
    child: Child,
    logs: BufReader<ChildStderr>,
    pub(crate) grpc: String,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(&["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            .args(["--log-format", "json"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let logs = BufReader::new(child.stderr.take().expect("piped"));
        let mut process = Self {
            child,
            logs,
            grpc: String::new(),
        };
        let serving = process.wait_for_log("serving gRPC");
        process.grpc = serving["grpc"].as_str().expect("an address").to_owned();
        process
    }

    /// Reads the log up to the line with that message.
    pub(crate) fn wait_for_log(&mut self, message: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.logs.read_line(&mut line).expect("text");
            assert!(read > 0, "the log ended without {message:?}");
            let entry: Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("not JSON: {line:?}: {error}"));
            let said = entry["message"].as_str().unwrap_or_default();
            if said.starts_with(message) {
                return entry;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("there is a kill command").success());
    }

    /// Returns the rest of the log, and the exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.logs.read_to_string(&mut rest).expect("text");
        let code = self.child.wait().expect("it ends").code();
        (rest, code)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_help_teaches_every_flag_with_its_variable() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for word in [
        "--listen",
        "--http-listen",
        "--templates",
        "--check",
        "--log-format",
        "DOORWARD_LISTEN",
        "DOORWARD_TEMPLATES",
        "127.0.0.1:6970",
        "Examples:",
        "SIGHUP",
        "Exit codes:",
    ] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[test]
fn the_help_is_short_and_another_one_has_all_flags() {
    let lines = |arguments: &[&str]| text(&run(arguments).stdout).lines().count();
    let (short, long) = (lines(&["--help"]), lines(&["--help-all"]));
    assert!(short <= 100 && long > 200, "{short} {long}");
    assert_eq!(lines(&["-h"]), short);
}

#[test]
fn a_removed_flag_has_no_effect_and_the_log_names_its_successor() {
    let mut command = command(&["--leases-max", "many", "--check", "/nowhere"]);
    command.env("DOORWARD_CURVES_PER_ADDRESS_MAX", "7");
    let output = command.output().expect("it runs");
    let said = text(&output.stderr);
    for line in [
        ["flag=\"--leases-max\"", "successor=\"--memory-max\""],
        [
            "flag=\"--curves-per-address-max\"",
            "successor=\"--memory-per-address-max\"",
        ],
    ] {
        let is_there = |it: &str| line.iter().all(|part| it.contains(part));
        assert!(said.lines().any(is_there), "{line:?} in {said}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_to_give() {
    for (arguments, message) in [
        (["--listen", "nowhere"], "--listen"),
        (["--http-listen", "off"], "\"none\""),
        (["--frobnicate", "1"], "unexpected argument"),
        (["--log-level", "a=b=c"], "log filter"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}

#[test]
fn completions_are_printed_for_a_shell() {
    let output = run(&["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("--http-listen"));
}

#[test]
fn a_port_that_is_taken_is_exit_code_1_and_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let output = run(&["--listen", &address, "--http-listen", "none"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in [address.as_str(), "--listen", "in use"] {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
}

#[test]
fn a_flag_can_be_given_as_a_variable() {
    let output = command(&[]).env("DOORWARD_LISTEN", "nowhere").output();
    assert_eq!(output.expect("it runs").status.code(), Some(2));
}

#[test]
fn the_endpoints_of_the_command_line_make_no_server_a_candidate() {
    let etcd = ("DOORWARD_ETCD_ENDPOINTS", "http://127.0.0.1:1");
    let output = command(&[]).env(etcd.0, etcd.1).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    for part in [
        "DOORWARD_ETCD_ENDPOINTS is set, which is for the command line",
        "set DOORWARD_SERVER_ETCD_ENDPOINTS",
        "unset DOORWARD_ETCD_ENDPOINTS",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn sigterm_and_sigint_stop_it_with_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let process = Process::start(&[]);
        TcpStream::connect(&process.grpc).expect("it listens");
        process.signal(signal);
        let (log, code) = process.end();
        assert_eq!(code, Some(0), "{signal}: {log}");
        assert!(log.contains("\"stopped"), "{log}");
    }
}
