//! Flags of the load generator.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::stall::Stall;

/// Highest rate, which no single program can send.
const RATE_MAX: f64 = 10_000_000.0;

const EXAMPLES: &str = "\
Examples, each after `cargo bench -p doorward-tests --bench load --`:
  closed                              how many requests a second one core serves, beside a raw echo
  closed --connections 1 --in-flight 1   how long one request takes
  closed --resources 1 --leases 1000000  the same beside a million holders of the resource
  closed --each 10 --default-echo     ten resources a request, and an echo as cargo builds it
  open --rate 20000 --leases 1000000  latencies at a fixed rate
  open --address 10.0.0.7:6970 --rate 500  of a server that runs already
  stalls                              what reloads, scrapes and accidents do to clients
  storm --clients 18000               everybody comes at once
  memory                              of connections, streams and leases, and what is given back

The server is started for it, in the profile of the bench, on a core of its own. Latencies of the open loop count
from when a request was due. See docs/performance.md.";

/// Puts a load on a server, and prints its times.
#[derive(Clone, Debug, Parser)]
#[command(name = "load", bin_name = "cargo bench -p doorward-tests --bench load --", after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) mode: Mode,

    /// Prints JSON, a line for each measurement.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Measures this build of the server instead of the one of this workspace, for comparisons.
    #[arg(long, global = true, value_parser = program_at, value_name = "PROGRAM")]
    pub(crate) server: Option<PathBuf>,

    /// Given by cargo.
    #[arg(long, hide = true, global = true)]
    pub(crate) bench: bool,
}

/// Kind of the measurement.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Mode {
    /// A closed loop: the next request follows the last answer. It shows the largest number of requests per second. Its
    /// latencies omit stalls, because no request is due while all wait; use `open` for those.
    Closed {
        /// Number of requests in flight on each connection.
        #[arg(long, default_value_t = 32, value_parser = some)]
        in_flight: usize,

        #[command(flatten)]
        load: LoadFlags,
    },
    /// An open loop: requests are due at a fixed rate, independent of the answers. It prints p50, p99, p99.9 and the
    /// worst, of the server and of an echo.
    Open {
        /// Number of requests due per second.
        #[arg(long, default_value_t = 10_000.0, value_parser = rate, value_name = "PER_SECOND")]
        rate: f64,

        #[command(flatten)]
        load: LoadFlags,
    },
    /// The wait of a client while something happens to a full server.
    Stalls {
        /// Event [default: all; mastership needs an etcd, see tests/install-etcd].
        #[arg(value_name = "STALL")]
        stalls: Vec<Stall>,

        /// Number of resources.
        #[arg(long, default_value_t = 10_000, value_parser = some)]
        resources: usize,

        /// Number of leases on them.
        #[arg(long, default_value_t = 1_000_000)]
        leases: usize,

        /// Number of globs before the one that matches, after a reload.
        #[arg(long, default_value_t = 5_000)]
        globs: usize,

        /// Number of measurements of each event.
        #[arg(long, default_value_t = 5, value_parser = some)]
        runs: usize,

        /// Shortest time for which the client is watched.
        #[arg(long, default_value = "2s", value_parser = lasting)]
        window: Duration,

        /// Length of leases that must expire: longer than filling takes.
        #[arg(long, default_value = "30s", value_parser = span)]
        short_lease: Duration,
    },
    /// Many clients that connect at the same moment.
    Storm {
        /// Number of clients: each needs a file here, and one in the server.
        #[arg(long, default_value_t = 18_000, value_parser = some)]
        clients: usize,

        /// Number of their addresses.
        #[arg(long, default_value_t = 100, value_parser = some)]
        addresses: usize,

        /// Number of resources that they share.
        #[arg(long, default_value_t = 1_000, value_parser = some)]
        resources: usize,

        /// Number of runs.
        #[arg(long, default_value_t = 3, value_parser = some)]
        runs: usize,

        /// Another flag for the server, as in --server-flag=--listen-backlog=128. Limits are lifted, except for those
        /// given here.
        #[arg(long = "server-flag", value_name = "FLAG")]
        server_flags: Vec<String>,
    },
    /// Memory of a server, and the memory that it gives back.
    Memory {
        /// Number of idle connections.
        #[arg(long, default_value_t = 10_000, value_parser = some)]
        connections: usize,

        /// Number of idle streams of child servers.
        #[arg(long, default_value_t = 5_000)]
        streams: usize,

        /// Number of resources.
        #[arg(long, default_value_t = 10_000, value_parser = some)]
        resources: usize,

        /// Number of leases on them.
        #[arg(long, default_value_t = 1_000_000)]
        leases: usize,

        /// Time to wait for memory to be given back.
        #[arg(long, default_value = "30s", value_parser = span)]
        rest: Duration,
    },
    /// An echo: prints its address, and answers until it is ended.
    Echo {
        /// Its address.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
}

impl Mode {
    /// Returns the load, if it is one.
    pub(crate) fn load(&self) -> Option<&LoadFlags> {
        match self {
            Self::Closed { load, .. } | Self::Open { load, .. } => Some(load),
            Self::Stalls { .. } | Self::Storm { .. } | Self::Memory { .. } | Self::Echo { .. } => {
                None
            }
        }
    }

    /// Checks that the flags fit together.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(load) = self.load().filter(|load| load.each > load.resources) else {
            return Ok(());
        };
        Err(format!(
            "--each {} is above the number of resources (--resources {})",
            load.each, load.resources
        ))
    }
}

/// Settings of a load, for both loops.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LoadFlags {
    /// Address of a server that already runs. No server is started, and its processor time is unknown. The running one
    /// needs a template for `load/*`, and limits that let one address ask so often.
    #[arg(long, value_parser = address, value_name = "HOST:PORT")]
    pub(crate) address: Option<SocketAddr>,

    /// Number of connections.
    #[arg(long, default_value_t = 8, value_parser = some)]
    pub(crate) connections: usize,

    /// Number of clients that take turns [default: the number of resources, and of requests at once].
    #[arg(long, value_parser = some)]
    pub(crate) clients: Option<usize>,

    /// Number of resources.
    #[arg(long, default_value_t = 1_000, value_parser = some)]
    pub(crate) resources: usize,

    /// Number of resources in one request of a client.
    #[arg(long, default_value_t = 1, value_parser = some)]
    pub(crate) each: usize,

    /// Number of leases that other clients have on the resources.
    #[arg(long, default_value_t = 0)]
    pub(crate) leases: usize,

    /// Duration.
    #[arg(long, default_value = "10s", value_parser = lasting)]
    pub(crate) lasts: Duration,

    /// Number of requests instead of a duration; all of them count. For counting instructions.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,

    /// Number of threads [default: the number of cores beside the server's].
    #[arg(long, value_parser = some)]
    pub(crate) threads: Option<usize>,

    /// Also measures an echo with cargo's default profile and the system's allocator, and builds it if necessary.
    #[arg(long)]
    pub(crate) default_echo: bool,

    /// Number of measurements, in turns.
    #[arg(long, default_value_t = 1, value_parser = some)]
    pub(crate) runs: usize,
}

fn span(text: &str) -> Result<Duration, String> {
    doorward_documents::parse_duration(text).map_err(|error| error.to_string())
}

fn lasting(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if span.is_zero() {
        return Err("give more than 0".to_owned());
    }
    Ok(span)
}

fn some(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    if number == 0 {
        return Err("at least 1".to_owned());
    }
    Ok(number)
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    if !(0.001..=RATE_MAX).contains(&rate) {
        return Err(format!("from 0.001 to {RATE_MAX}"));
    }
    Ok(rate)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found
        .next()
        .ok_or_else(|| "the name has no address".to_owned())
}

/// Cargo starts a bench in the folder of its package, so a relative path would name another file.
fn program_at(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err("give an absolute path, as \"$PWD/target/dist/doorward-server\"".to_owned());
    }
    if !path.is_file() {
        return Err("no such file".to_owned());
    }
    Ok(path)
}
