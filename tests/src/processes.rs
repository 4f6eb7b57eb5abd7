//! The programs as processes on loopback, found where cargo puts them.
//!
//! `cargo test -p doorward-tests` alone does not build the programs of other packages, so they are
//! built on first use.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says so"
)]
#![allow(
    clippy::indexing_slicing,
    reason = "of JSON, which answers for everything"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// A program of this workspace, built.
fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let release = !cfg!(debug_assertions);
        let build = Command::new(cargo)
            .args(["build", "--quiet", "--locked", "--bins"])
            .args(["-p", "doorward-server", "-p", "doorward-client"])
            .args(release.then_some("--release"))
            .status()
            .unwrap();
        assert!(build.success(), "the programs build");
        // Tests are in target/PROFILE/deps, programs in target/PROFILE.
        let test = std::env::current_exe().unwrap();
        test.parent().unwrap().parent().unwrap().to_owned()
    });
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    // What is set outside must not steer the tests.
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("DOORWARD_") {
            command.env_remove(variable);
        }
    }
    command
}

/// Runs `doorward` to its end.
pub fn doorward(arguments: &[&str]) -> Output {
    command("doorward").args(arguments).output().unwrap()
}

/// Runs `doorward` with some standard input to its end.
pub fn doorward_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = command("doorward")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Runs `doorward-server` to its end.
pub fn doorward_server(arguments: &[&str]) -> Output {
    command("doorward-server").args(arguments).output().unwrap()
}

/// What it printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it complained about.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A server process. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    logs: BufReader<ChildStderr>,
    /// Where it serves gRPC.
    pub address: String,
}

impl Server {
    /// Starts one on a free port.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// Starts one at an address.
    pub fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut child = command("doorward-server")
            .args([
                "--listen",
                address,
                "--http-listen",
                "none",
                "--log-format",
                "json",
            ])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let logs = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self {
            child,
            logs,
            address: String::new(),
        };
        let serving = server.wait_for_log("serving gRPC");
        server.address = serving["grpc"].as_str().unwrap().to_owned();
        server
    }

    /// Reads the log up to a message.
    pub fn wait_for_log(&mut self, message: &str) -> Value {
        loop {
            let mut line = String::new();
            let read = self.logs.read_line(&mut line).unwrap();
            assert!(read > 0, "the log ended without {message:?}");
            let entry: Value = serde_json::from_str(&line).unwrap();
            if entry["message"]
                .as_str()
                .is_some_and(|said| said.starts_with(message))
            {
                return entry;
            }
        }
    }

    /// Ends it at once, without any chance to say goodbye.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
