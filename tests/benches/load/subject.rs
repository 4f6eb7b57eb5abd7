//! The measured server: one that is started for it, on a core of its own; or an echo, started the same way.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorward_tests::figures::{cpu_time, memory};
use doorward_tests::processes::Server;
use tempfile::TempDir;
use tokio::task::block_in_place;

use crate::cores::Cores;
use crate::mtls;

/// Limits that would refuse the load of a single address, raised.
const FLAGS: [&str; 6] = [
    "--calls-per-second-per-address-max=100000000",
    "--requests-per-second-per-template-max=100000000",
    "--newcomers-per-second-per-address-max=100000000",
    "--memory-per-address-max=8GiB",
    "--look-time-per-second-per-address-max=1s",
    // Every request gets a decision.
    "--refresh-floor=0s",
];

/// The templates of a measured server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Templates {
    /// Algorithm of the resources.
    pub(crate) kind: &'static str,
    /// Capacity of each resource.
    pub(crate) capacity: u64,
    /// Length of leases.
    pub(crate) lease_length: Duration,
    /// Number of templates before the one that matches.
    pub(crate) globs_before: usize,
}

impl Templates {
    /// Fair sharing with long leases, without other templates.
    pub(crate) const FAIR: Self = Self {
        kind: "FAIR_SHARE",
        capacity: 1_000_000,
        lease_length: Duration::from_secs(3_600),
        globs_before: 0,
    };

    /// Returns them as a document.
    pub(crate) fn document(&self) -> String {
        let (kind, capacity, seconds) = (self.kind, self.capacity, self.lease_length.as_secs());
        let algorithm = format!("kind: {kind}, lease_length: {seconds}s, refresh_interval: 1s");
        let mut text = "resources:\n".to_owned();
        for number in 0..self.globs_before {
            let _ = writeln!(
                text,
                "- {{identifier_glob: 'load/*-{number}-[a-q]*', capacity: 1, algorithm: {{{algorithm}}}}}"
            );
        }
        let _ = writeln!(
            text,
            "- {{identifier_glob: 'load/*', capacity: {capacity}, \
             algorithm: {{{algorithm}, learning_mode_duration: 0s}}}}"
        );
        text
    }

    /// Writes them to a file.
    pub(crate) fn write(&self, file: &Path) {
        let written = file.with_extension("new");
        fs::write(&written, self.document()).unwrap();
        fs::rename(written, file).unwrap();
    }
}

/// The server's place on this machine.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// None: it shares its core with all other programs.
    pub(crate) cores: Option<Cores>,
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
}

impl Subject {
    /// Starts `doorward-server`, without limits, on a core of its own.
    pub(crate) fn server(place: &Place, templates: Templates) -> Self {
        Self::server_with(place, templates, &[])
    }

    /// Does the same, with more flags.
    pub(crate) fn server_with(place: &Place, templates: Templates, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("templates.yaml");
        templates.write(&file);
        let own = [
            "--http-listen",
            "127.0.0.1:0",
            "--templates",
            file.to_str().unwrap(),
        ];
        let mtls = mtls::flags();
        let mtls: Vec<&str> = mtls.iter().map(String::as_str).collect();
        let flags = [&own[..], &FLAGS, &mtls, flags].concat();
        let start = || block_in_place(|| Server::start(&flags));
        let server = Box::new(Cores::start_server(place.cores.as_ref(), start));
        Self {
            address: server.address.parse().unwrap(),
            process: Process::Server { server, folder },
        }
    }

    /// Starts an echo: this program in another mode.
    pub(crate) fn echo(place: &Place) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("echo");
        if let Some(folder) = mtls::folder() {
            command.arg("--certificates").arg(folder);
        }
        command.stdout(Stdio::piped());
        let mut child = Cores::start_server(place.cores.as_ref(), || command.spawn().unwrap());
        let mut line = String::new();
        let printed = child.stdout.take().unwrap();
        BufReader::new(printed).read_line(&mut line).unwrap();
        Self {
            address: line.trim().parse().unwrap(),
            process: Process::Echo(child),
        }
    }

    /// Returns the server that was started.
    pub(crate) fn started(&mut self) -> &mut Server {
        match &mut self.process {
            Process::Server { server, .. } => server,
            Process::Echo(_) => panic!("it is an echo"),
        }
    }

    /// Returns `/metrics` of a server.
    pub(crate) fn metrics(&mut self) -> String {
        block_in_place(|| self.started().get("/metrics"))
    }

    /// Returns the template file of a server.
    pub(crate) fn templates(&self) -> PathBuf {
        match &self.process {
            Process::Server { folder, .. } => folder.path().join("templates.yaml"),
            Process::Echo(_) => panic!("it is an echo"),
        }
    }

    /// Returns its process.
    pub(crate) fn process(&self) -> u32 {
        match &self.process {
            Process::Server { server, .. } => server.process(),
            Process::Echo(child) => child.id(),
        }
    }

    /// Returns its processor time.
    pub(crate) fn cpu_time(&self) -> Duration {
        cpu_time(self.process())
    }

    /// Returns its present memory.
    pub(crate) fn resident(&self) -> u64 {
        memory(self.process()).resident
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
