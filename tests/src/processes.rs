//! The programs as processes on loopback, in cargo's target folder.
//!
//! `cargo test -p doorward-tests` alone does not build the programs of other packages, so they are built on first use.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// Time after which an awaited event counts as missing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether this is built without optimisation.
const IS_DEV: bool = cfg!(debug_assertions);

/// Returns the path of a program of this workspace. Tests of the profile `dev` run programs of that profile; benches
/// run programs as they ship, in the profile `dist`.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if std::env::var_os("DOORWARD_TEST_PROGRAMS").is_none_or(|it| it != "built") {
            build();
        }
        // The test is in target/PROFILE/deps.
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap();
        target.join(if IS_DEV { "debug" } else { "dist" })
    });
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Builds the programs.
fn build() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut build = Command::new(cargo);
    // With cargo's variables of this test's package, dependencies that read them would be built again.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            build.env_remove(variable);
        }
    }
    let build = build
        .args(["build", "--quiet", "--locked", "--bins"])
        .args(["-p", "doorward-server", "-p", "doorward-cli"])
        .args(["--profile", if IS_DEV { "dev" } else { "dist" }])
        .status()
        .unwrap();
    assert!(build.success(), "the programs build");
}

fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    // Variables from outside must not affect the tests.
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("DOORWARD_") {
            command.env_remove(variable);
        }
    }
    command.env("XDG_CONFIG_HOME", "/nowhere");
    command
}

/// Runs `doorward` to its end.
pub fn doorward(arguments: &[&str]) -> Output {
    doorward_with(&[], arguments)
}

/// Does the same, with variables of the environment.
pub fn doorward_with(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = command("doorward");
    command.args(arguments).envs(variables.iter().copied());
    command.output().unwrap()
}

/// Runs `doorward-server` to its end, which must come soon.
pub fn doorward_server(arguments: &[&str]) -> Output {
    doorward_server_with(&[], arguments)
}

/// Does the same, with variables of the environment.
pub fn doorward_server_with(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = command("doorward-server");
    command.args(arguments).envs(variables.iter().copied());
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let process = child.id();
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    match ended.recv_timeout(PATIENCE) {
        Ok(output) => output,
        Err(_) => {
            signal(process, "KILL");
            panic!("it runs on: {arguments:?}");
        }
    }
}

/// Returns the standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Sends a process a signal.
pub fn signal(process: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Stops a process (SIGSTOP), and waits until it stands still: on a busy machine its threads continue for a moment.
pub fn freeze(process: u32) {
    signal(process, "STOP");
    let deadline = Instant::now() + PATIENCE;
    // Only Linux has this folder; other systems do not wait.
    let threads = PathBuf::from(format!("/proc/{process}/task"));
    while threads.is_dir() && !all_stopped(&threads) {
        assert!(Instant::now() < deadline, "process {process} does not stop");
        thread::yield_now();
    }
}

fn all_stopped(threads: &Path) -> bool {
    let mut threads = fs::read_dir(threads).unwrap();
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.unwrap().path().join("stat"));
        // `number (name) state …`. An ended thread does nothing, either.
        let state = stat.map(|stat| stat.rsplit(") ").next().map(|rest| rest.starts_with('T')));
        state.ok().flatten().unwrap_or(true)
    })
}

/// Continues a frozen process.
pub fn thaw(process: u32) {
    signal(process, "CONT");
}

/// A server process. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Its log as it is written. It must be read, or the server would block.
    logs: Receiver<Value>,
    /// Entries read so far, and the number of those that a test waited for.
    logged: Vec<Value>,
    seen: usize,
    /// Address of its gRPC.
    pub address: String,
    /// Its state directory, unless it was given one.
    state: Option<TempDir>,
}

impl Server {
    /// Starts a server on a free port.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// Starts a server on a free port, with variables of the environment.
    pub fn start_with(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::spawn("127.0.0.1:0", variables, arguments)
    }

    /// Starts a server at an address. It serves pages only if the arguments name their address.
    pub fn start_at(address: &str, arguments: &[&str]) -> Self {
        Self::spawn(address, &[], arguments)
    }

    /// Starts a server on a free port, with limits of the system, as a shell's `ulimit` takes them: `("-n", 64)`.
    pub fn start_limited(ulimits: &[(&str, u64)], arguments: &[&str]) -> Self {
        if ulimits.is_empty() {
            return Self::start(arguments);
        }
        let limits: String = ulimits
            .iter()
            .map(|(which, most)| format!("ulimit {which} {most} && "))
            .collect();
        let mut shell = command("doorward-server");
        let program = shell.get_program().to_owned();
        // The shell must not have these variables either.
        let removed: Vec<_> = shell.get_envs().map(|(name, _)| name.to_owned()).collect();
        shell = Command::new("bash");
        for name in removed {
            shell.env_remove(name);
        }
        shell
            .args(["-c", &format!("{limits}exec \"$0\" \"$@\"")])
            .arg(program);
        Self::spawn_server(shell, "127.0.0.1:0", &[], arguments)
    }

    /// Starts an agent at an address. It serves HTTP, and has a state directory, only if the arguments name them.
    pub fn agent(address: &str, arguments: &[&str]) -> Self {
        let mut command = command("doorward-agent");
        if !arguments.contains(&"--state-dir") {
            command.env("DOORWARD_STATE_DIR", "none");
        }
        Self::spawn_by(command, address, &[], arguments)
    }

    fn spawn(address: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::spawn_server(command("doorward-server"), address, variables, arguments)
    }

    /// A server without etcd gets a state directory, which is new, unless the arguments name one.
    fn spawn_server(
        mut command: Command,
        address: &str,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let names = variables.iter().map(|(name, _)| *name);
        let has_etcd = |it: &str| it.contains("etcd-endpoints") || it.contains("ETCD_ENDPOINTS");
        let keeps = |it: &str| has_etcd(it) || it == "--state-dir";
        if names.chain(arguments.iter().copied()).any(keeps) {
            return Self::spawn_by(command, address, variables, arguments);
        }
        let state = tempfile::tempdir().unwrap();
        command.env("DOORWARD_STATE_DIR", state.path());
        let mut server = Self::spawn_by(command, address, variables, arguments);
        server.state = Some(state);
        server
    }

    fn spawn_by(
        mut command: Command,
        address: &str,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let no_pages = !arguments.contains(&"--http-listen");
        let mut child = command
            .envs(variables.iter().copied())
            .args(["--listen", address, "--log-format", "json"])
            .args(no_pages.then_some("--http-listen=none"))
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (entries, logs) = mpsc::channel();
        thread::spawn(move || {
            for line in lines {
                let line = line.unwrap();
                // A line that is not an entry, such as the last words of a process.
                let entry =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({"message": line}));
                if entries.send(entry).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            logs,
            logged: Vec::new(),
            seen: 0,
            address: String::new(),
            state: None,
        };
        let serving = server.wait_for_log("serving gRPC");
        server.address = serving["grpc"].as_str().unwrap().to_owned();
        // It may have logged problems before that.
        server.seen = 0;
        server
    }

    /// Reads the log up to a message with this beginning.
    pub fn wait_for_log(&mut self, message: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(entry) = self.logged.get(self.seen) {
                self.seen += 1;
                if says(entry, message) {
                    return entry.clone();
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.logs.recv_timeout(left) {
                Ok(entry) => self.logged.push(entry),
                Err(end) => panic!("no {message:?} in the log, {end}: {:#?}", self.logged),
            }
        }
    }

    /// Returns all entries so far whose message has this beginning.
    pub fn logged(&mut self, message: &str) -> Vec<Value> {
        self.logged.extend(self.logs.try_iter());
        let all = self.logged.iter();
        all.filter(|entry| says(entry, message)).cloned().collect()
    }

    /// Returns `/status`. A busy server refuses to show it, so it is asked again.
    pub fn status(&mut self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut answer = self.get("/status");
        while answer.starts_with("HTTP/1.0 503") {
            assert!(Instant::now() < deadline, "{answer}");
            thread::yield_now();
            answer = self.get("/status");
        }
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Returns the answer to GET on its HTTP port, head and body.
    pub fn get(&mut self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.pages()).unwrap();
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the address of its pages.
    pub fn pages(&mut self) -> String {
        let pages = "status page at http://";
        let logged = self.logged(pages).pop();
        let entry = logged.unwrap_or_else(|| self.wait_for_log(pages));
        let address = &entry["message"].as_str().unwrap()[pages.len()..];
        address.trim_end_matches('/').to_owned()
    }

    /// Returns whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops it: it keeps its connections, and does nothing until it is thawed.
    pub fn freeze(&self) {
        freeze(self.child.id());
    }

    /// Continues it.
    pub fn thaw(&self) {
        thaw(self.child.id());
    }

    /// Kills it, without a chance to end in order.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end (SIGTERM), and waits until it has. Returns its status and its log.
    pub fn terminate(mut self) -> (ExitStatus, Vec<Value>) {
        signal(self.child.id(), "TERM");
        // The log ends with the process.
        let deadline = Instant::now() + PATIENCE;
        let mut logged = std::mem::take(&mut self.logged);
        let end = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.logs.recv_timeout(left) {
                Ok(entry) => logged.push(entry),
                Err(end) => break end,
            }
        };
        assert_eq!(end, RecvTimeoutError::Disconnected, "{logged:#?}");
        (self.child.wait().unwrap(), logged)
    }
}

fn says(entry: &Value, message: &str) -> bool {
    let said = entry["message"].as_str();
    said.is_some_and(|said| said.starts_with(message))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
