//! Flags of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use doorward_documents::parse_duration;

use crate::{agents, memory, stalls, storm, streams};

const EXAMPLES: &str = "\
Examples, each after `cargo bench -p doorward-tests --bench load --`:
  closed                              how many requests a second one core serves, beside a raw echo
  closed --connections 1 --in-flight 1   how long one request takes
  closed --resources 1 --leases 1000000  the same beside a million holders of the resource
  closed --each 10                    ten resources a request
  open --rate 20000 --leases 1000000  latencies at a fixed rate
  stalls                              what reloads, scrapes and accidents do to clients
  storm --clients 18000               many clients connect at once
  closed --mtls, storm --mtls         the same with mutual TLS, also of the echo
  memory                              of connections, streams and leases, and what is given back
  streams                             how soon a change reaches clients on streams
  agents                              a leaf below which 1,000 agents lease 100 resources

The server is started for it, in the profile of the bench, on a core of its own. Latencies of the open loop count
from when a request was due. See docs/performance.md.";

/// Puts a load on a server, and prints its times.
#[derive(Debug, Parser)]
#[command(name = "load", bin_name = "cargo bench -p doorward-tests --bench load --", after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) mode: Mode,

    /// Uses mutual TLS for all connections, also of the echo.
    #[arg(long, global = true)]
    pub(crate) mtls: bool,

    /// Given by cargo.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

/// Kind of the measurement.
#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// A closed loop: the next request follows the last answer. It shows the largest number of requests per second. Its
    /// latencies omit stalls, because no request is due while all wait; use `open` for those.
    Closed {
        /// Number of requests in flight on each connection.
        #[arg(long, default_value_t = 32)]
        in_flight: usize,

        #[command(flatten)]
        load: LoadFlags,
    },
    /// An open loop: requests are due at a fixed rate, independent of the answers. It prints p50, p99, p99.9 and the
    /// worst, of the server and of an echo.
    Open {
        /// Number of requests due per second.
        #[arg(long, default_value_t = 10_000.0, value_name = "PER_SECOND")]
        rate: f64,

        #[command(flatten)]
        load: LoadFlags,
    },
    /// The wait of a client while something happens to a full server.
    Stalls(stalls::Size),
    /// Many clients that connect at the same moment.
    Storm(storm::Size),
    /// Memory of a server, and the memory that it gives back.
    Memory(memory::Size),
    /// A leaf with many agents below it, and the latencies of its clients.
    Agents(agents::Size),
    /// Clients on streams: a step of demand, many resources on one connection, and clients at rest.
    Streams(streams::Size),
    /// An echo: prints its address, and answers until it is ended.
    Echo {
        /// Folder of its certificates, for mutual TLS.
        #[arg(long)]
        certificates: Option<PathBuf>,
    },
}

/// Settings of a load, for both loops.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LoadFlags {
    /// Number of connections.
    #[arg(long, default_value_t = 8)]
    pub(crate) connections: usize,

    /// Number of resources, and the least number of clients that take turns.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) resources: usize,

    /// Number of resources in one request of a client.
    #[arg(long, default_value_t = 1)]
    pub(crate) each: usize,

    /// Number of leases that other clients have on the resources.
    #[arg(long, default_value_t = 0)]
    pub(crate) leases: usize,

    /// Duration.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) lasts: Duration,

    /// Number of measurements, in turns.
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: usize,
}
