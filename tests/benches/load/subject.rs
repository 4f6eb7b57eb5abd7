//! The measured server: one that is started for it, on a core of its own; an echo, started the same way; or a server
//! that already runs.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorward_tests::figures::{Memory, cpu_time, memory};
use doorward_tests::processes::{Server, program};
use serde_json::Value;
use tempfile::TempDir;

use crate::cores::Cores;

/// Limits that would refuse the load of a single address, raised: each flag with its value.
const FLAGS: [&str; 20] = [
    "--calls-per-second-per-address-max",
    "100000000",
    "--requests-per-second-per-template-max",
    "100000000",
    "--new-leases-per-second-per-address-max",
    "100000000",
    "--new-leases-per-second-per-template-max",
    "100000000",
    "--new-resources-per-second-per-address-max",
    "100000000",
    "--new-resources-per-second-per-template-max",
    "100000000",
    "--leases-per-address-max",
    "4000000",
    "--resources-per-address-max",
    "100000",
    "--look-time-per-second-per-address-max",
    "1s",
    // Every request gets a decision.
    "--refresh-floor",
    "0s",
];

/// The templates of a measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Templates {
    /// Algorithm of the resources.
    pub(crate) kind: &'static str,
    /// Capacity of each resource.
    pub(crate) capacity: u64,
    /// Length of leases.
    pub(crate) lease_length: Duration,
    /// Number of templates before the one that matches.
    pub(crate) globs_before: usize,
    /// Prefix of their names: other names are other globs.
    pub(crate) globs_named: &'static str,
}

impl Templates {
    /// Fair sharing with long leases, without other templates.
    pub(crate) const FAIR: Self = Self {
        kind: "FAIR_SHARE",
        capacity: 1_000_000,
        lease_length: Duration::from_secs(3_600),
        globs_before: 0,
        globs_named: "a",
    };

    /// Writes them to a file.
    pub(crate) fn write(&self, file: &Path) {
        let Self {
            kind,
            capacity,
            lease_length,
            globs_before,
            globs_named,
        } = *self;
        let seconds = lease_length.as_secs();
        let algorithm = format!("kind: {kind}, lease_length: {seconds}s, refresh_interval: 1s");
        let mut text = "resources:\n".to_owned();
        for number in 0..globs_before {
            let glob = format!("load/*-{globs_named}{number}-[a-q]*");
            let _ = writeln!(
                text,
                "- {{identifier_glob: '{glob}', capacity: 1, algorithm: {{{algorithm}}}}}"
            );
        }
        let _ = writeln!(
            text,
            "- {{identifier_glob: 'load/*', capacity: {capacity}, \
             algorithm: {{{algorithm}, learning_mode_duration: 0s}}}}"
        );
        let written = file.with_extension("new");
        fs::write(&written, text).unwrap();
        fs::rename(written, file).unwrap();
    }
}

/// The server's program, and its cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// None: it shares its core with all other programs.
    pub(crate) cores: Option<Cores>,
    /// None: the one of this workspace, which is built if necessary.
    pub(crate) program: Option<PathBuf>,
}

/// A measured server.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Its address.
    pub(crate) address: SocketAddr,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Server {
        server: Box<Server>,
        folder: TempDir,
    },
    Echo(Child),
    /// A process that was not started here.
    Elsewhere,
}

impl Subject {
    /// Starts `doorward-server` on a core of its own, with flags in addition to those that lift limits, or in their
    /// place.
    pub(crate) fn server(place: &Place, templates: Templates, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("templates.yaml");
        templates.write(&file);
        let own = [
            "--http-listen",
            "127.0.0.1:0",
            "--templates",
            file.to_str().unwrap(),
        ];
        let flags = [&own[..], &lifted(flags), flags].concat();
        // A build must not run on one core.
        let program = place
            .program
            .clone()
            .unwrap_or_else(|| program("doorward-server"));
        let start = || Server::start_program(&program, &flags);
        let server = Cores::start_server(place.cores.as_ref(), start);
        Self {
            address: server.address.parse().unwrap(),
            process: Process::Server {
                server: Box::new(server),
                folder,
            },
        }
    }

    /// Starts an echo: this program in another mode, or another build of it.
    pub(crate) fn echo(place: &Place, program: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg("echo").stdout(Stdio::piped());
        let mut child = Cores::start_server(place.cores.as_ref(), || command.spawn().unwrap());
        let mut line = String::new();
        let printed = child.stdout.take().unwrap();
        BufReader::new(printed).read_line(&mut line).unwrap();
        Self {
            address: line.trim().parse().unwrap(),
            process: Process::Echo(child),
        }
    }

    /// Uses a server that already runs.
    pub(crate) fn elsewhere(address: SocketAddr) -> Self {
        Self {
            address,
            process: Process::Elsewhere,
        }
    }

    /// Returns the server that was started.
    pub(crate) fn started(&mut self) -> &mut Server {
        match &mut self.process {
            Process::Server { server, .. } => server,
            Process::Echo(_) | Process::Elsewhere => panic!("no server was started"),
        }
    }

    /// Returns `/metrics` of a server that was started.
    pub(crate) fn metrics(&mut self) -> String {
        let server = self.started();
        tokio::task::block_in_place(|| server.get("/metrics"))
    }

    /// Returns the template file of a server that was started.
    pub(crate) fn templates(&self) -> PathBuf {
        match &self.process {
            Process::Server { folder, .. } => folder.path().join("templates.yaml"),
            Process::Echo(_) | Process::Elsewhere => panic!("no server was started"),
        }
    }

    /// Returns its process, if it was started here.
    pub(crate) fn process(&self) -> Option<u32> {
        match &self.process {
            Process::Server { server, .. } => Some(server.process()),
            Process::Echo(child) => Some(child.id()),
            Process::Elsewhere => None,
        }
    }

    /// Returns its processor time, if it was started here.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.process().map(cpu_time)
    }

    /// Returns its memory, if it was started here.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.process().map(memory)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Process::Echo(child) = &mut self.process {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the flags that lift limits, except for the given ones.
fn lifted(given: &[&str]) -> Vec<&'static str> {
    let names: Vec<&str> = given
        .iter()
        .filter_map(|flag| flag.split('=').next())
        .collect();
    let pairs = FLAGS.chunks(2).filter(|pair| !names.contains(&pair[0]));
    pairs.flatten().copied().collect()
}

/// Builds this bench with the profile `release` (no link-time optimisation) and the system's allocator. Returns its
/// path.
pub(crate) fn plain_build() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["build", "--locked", "--message-format", "json"])
        .args(["-p", "doorward-tests", "--bench", "load"])
        .args(["--no-default-features", "--release"])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the plain echo does not build");
    let messages = String::from_utf8(output.stdout).unwrap();
    let mut built = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?;
        (name == "load").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    built.next_back().unwrap()
}
