//! Signals that service managers and terminals send, at the start of a program and later.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use doorward_tests::processes::{PATIENCE, Server, program, signal};
use doorward_tests::template_file::TemplateFile;
use tokio::time::Instant;

const RULES: &str = "{domain: api, descriptors: [{key: user, rate_limit: {rate: 2/s}}]}";

/// Opens a pipe for writing, as soon as a program reads it.
fn open_when_read(pipe: &Path) -> File {
    // O_NONBLOCK: without a reader, opening fails instead of waiting for ever.
    let (mut options, deadline) = (OpenOptions::new(), Instant::now() + PATIENCE);
    options.write(true).custom_flags(0o4000);
    loop {
        match options.open(pipe) {
            Ok(file) => return file,
            // ENXIO: no reader yet.
            Err(error) if error.raw_os_error() == Some(6) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(Instant::now() < deadline, "the program does not read");
        thread::yield_now();
    }
}

/// Starts a program whose certificate of an authority comes through a pipe, and returns it while it waits there.
fn starting(name: &str, pipe: &Path, more: &[&str]) -> (Child, File) {
    let child = Command::new(program(name))
        .args(["--listen=127.0.0.1:0", "--http-listen=none", "--ca"])
        .arg(pipe)
        .args(more)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child, open_when_read(pipe))
}

#[test]
fn a_signal_at_the_start_ends_a_program_only_if_it_is_one_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, rules) = (folder.path().join("ca.pem"), TemplateFile::new(RULES));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let agent = ["--rules", &rules.path];
    for (name, more) in [("doorward-server", &[][..]), ("doorward-agent", &agent)] {
        for stop in ["TERM", "INT"] {
            let (mut child, _waits) = starting(name, &pipe, more);
            signal(child.id(), stop);
            assert_eq!(child.wait().unwrap().code(), Some(0), "{name} {stop}");
        }
        for other in ["HUP", "USR1", "USR2", "ALRM", "XFSZ", "PIPE"] {
            let (mut child, mut authority) = starting(name, &pipe, more);
            signal(child.id(), other);
            authority.write_all(b"no certificate").unwrap();
            drop(authority);
            // It has read on, and found no certificate.
            assert_eq!(child.wait().unwrap().code(), Some(2), "{name} {other}");
        }
    }
}

#[test]
fn a_program_that_serves_goes_on_after_other_signals_and_ends_in_order_by_one_to_stop() {
    let rules = TemplateFile::new(RULES);
    for stop in ["TERM", "INT"] {
        let agent = Server::agent("127.0.0.1:0", &["--rules", &rules.path]);
        for mut program in [Server::start(&[]), agent] {
            for other in ["USR1", "USR2", "ALRM", "XFSZ", "PIPE", "HUP"] {
                signal(program.process(), other);
            }
            program.wait_for_log("SIGHUP: reading templates, rules, certificates and tokens again");
            signal(program.process(), stop);
            program.wait_for_log("stopped");
        }
    }
}

#[test]
fn the_demonstration_ends_in_order_by_a_signal_to_stop() {
    for stop in ["TERM", "INT", "HUP"] {
        let mut demo = Command::new(program("doorward"))
            .args(["demo", "--plain"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        signal(demo.id(), stop);
        // Its output ends with a summary.
        let last = lines.last().unwrap();
        assert!(last.is_ok_and(|line| line.contains("root")), "{stop}");
        assert_eq!(demo.wait().unwrap().code(), Some(0), "{stop}");
    }
}
