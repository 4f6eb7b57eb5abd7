//! Outputs that nothing reads: a full pipe stops neither the server nor the end of a program.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use doorward_tests::ports::lasting_address;
use doorward_tests::processes::{PATIENCE, doorward, program, signal, stderr};
use tokio::time::Instant;

/// A program whose output nothing reads. Killed when dropped.
struct Unread(Child);

impl Unread {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program(name));
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits until the program has ended.
    #[track_caller]
    fn ends(mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            thread::yield_now();
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer to GET, or nothing if there is none in a minute.
fn get(address: &str, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_server_whose_log_nothing_reads_serves_counts_dropped_lines_and_stops() {
    let (grpc, pages) = (lasting_address(), lasting_address());
    let server = Unread::start(
        "doorward-server",
        &[
            "--listen",
            &grpc,
            "--http-listen",
            &pages,
            "--log-level",
            "trace",
        ],
    );
    let deadline = Instant::now() + PATIENCE;
    let has_dropped = |metrics: String| {
        let mut lines = metrics.lines();
        lines.any(|line| {
            line.starts_with("doorward_log_lines_dropped_total{") && !line.ends_with(" 0")
        })
    };
    while !get(&pages, "/metrics").is_some_and(has_dropped) {
        assert!(Instant::now() < deadline, "no line is dropped");
    }
    assert!(get(&pages, "/healthz").unwrap().contains("200 OK"));
    let got = doorward(&["--server", &grpc, "get", "example/fair", "10"]);
    assert!(got.status.success(), "{}", stderr(&got));
    signal(server.0.id(), "TERM");
    server.ends();
}

/// Whether a process has a handler for SIGTERM.
fn handles_termination(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & (1 << 14) != 0
}

#[test]
fn a_command_that_is_stuck_in_its_output_ends_at_the_second_signal() {
    let (reader, mut writer) = io::pipe().unwrap();
    // The size of a pipe on Linux.
    writer.write_all(&[b' '; 64 * 1024]).unwrap();
    let mut command = Command::new(program("doorward"));
    command
        .args(["demo", "--plain"])
        .stdin(Stdio::null())
        .stdout(writer);
    let mut demo = Unread(command.spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        assert!(Instant::now() < deadline, "it does not end");
        if let Some(ended) = demo.0.try_wait().unwrap() {
            break ended;
        }
        if handles_termination(demo.0.id()) {
            signal(demo.0.id(), "TERM");
        }
        thread::yield_now();
    };
    assert_eq!(ended.code(), Some(130), "by the second signal");
    drop(reader);
}
