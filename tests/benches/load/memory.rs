//! Memory of a server: at rest, with idle connections and streams, with many leases, and after they are gone.
//!
//! The system's figure of the process is compared with the server's own account of resources and leases.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use doorward_documents::parse_duration;
use doorward_proto::doorman::{
    GetServerCapacityRequest, PriorityBandAggregate, ServerCapacityResourceRequest,
};
use doorward_tests::figures::value;
use tokio::time::{Instant, sleep};

use crate::fill::{empty, fill, holders};
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};
use crate::wire::{Failure, STREAM_SERVER_CAPACITY, Wire};

/// Time between two calls while the server would otherwise be idle.
const ASKED_EVERY: Duration = Duration::from_millis(10);

/// Metric with the server's own account of resources and leases.
const ACCOUNT: &str = "doorward_lease_memory_bytes";

/// Metric with the number of open streams of child servers.
const OPEN_STREAMS: &str = "doorward_child_streams{node=\"root\",state=\"open\"}";

/// Numbers of things that take memory.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Size {
    /// Number of idle connections.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) connections: usize,

    /// Number of idle streams of child servers, each on a connection of its own.
    #[arg(long, default_value_t = 5_000)]
    pub(crate) streams: usize,

    /// Number of resources.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) resources: usize,

    /// Number of leases on them.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) leases: usize,

    /// Time to wait for memory to be given back.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub(crate) rest: Duration,
}

/// Measures the memory, with a new server for each kind.
pub(crate) async fn measure(place: &Place, size: Size) {
    connections(&Subject::server(place, Templates::FAIR), size).await;
    let subject = Subject::server(place, Templates::FAIR);
    let client = Population::new("idle", size.connections, 1, 1);
    let open = async |wire: Wire, number| client.open(&wire, number).await;
    let what = "idle connections, each with a stream and a lease";
    let streaming = opened(&subject, size.rest, (size.connections, what), open).await;
    closed(&subject, size.rest, streaming).await;
    let children = format!("--child-servers-max={}", size.streams);
    let server = Subject::server_with(place, Templates::FAIR, &[&children]);
    streams(server, size).await;
    leases(Subject::server(place, Templates::FAIR), size).await;
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Prints the present memory, and its growth for each of the things that were added.
fn print(when: &str, resident: u64, added: Option<(u64, usize)>) {
    let each = added.map_or_else(String::new, |(before, count)| {
        let each = resident.saturating_sub(before) as f64 / count as f64;
        format!("{each:.0} B each")
    });
    println!("{when:46} {:>8.1} MiB  {each}", mib(resident));
}

/// Keeps asking a little, because an allocator gives memory back only while it works.
async fn served_for(subject: &Subject, span: Duration) {
    let until = Instant::now() + span;
    let client = Population::new("beside", 1, 1, 1);
    let wire = Wire::open(subject.address, None).await.unwrap();
    while Instant::now() < until {
        client.ask(&wire, 0).await.unwrap();
        sleep(ASKED_EVERY).await;
    }
}

async fn connections(subject: &Subject, size: Size) {
    // A connection takes memory only after a request.
    let client = Population::new("idle", size.connections, 1, 1);
    let open = async |wire: Wire, number| {
        client.ask(&wire, number).await?;
        Ok(wire)
    };
    let what = "idle connections, each with a lease";
    let connections = opened(subject, size.rest, (size.connections, what), open).await;
    closed(subject, size.rest, connections).await;
}

/// Measures streams. Each child server has a connection with a stream, and leases its own resource. With a shared
/// resource, each new child would be news for all others.
async fn streams(mut subject: Subject, size: Size) {
    let open = async |wire: Wire, number| {
        let wants = PriorityBandAggregate {
            num_clients: 1,
            wants: 10.0,
            ..PriorityBandAggregate::default()
        };
        let request = GetServerCapacityRequest {
            server_id: format!("child-{number:07}"),
            resource: vec![ServerCapacityResourceRequest {
                resource_id: format!("load/r-{number:07}"),
                wants: vec![wants],
                ..ServerCapacityResourceRequest::default()
            }],
            ..GetServerCapacityRequest::default()
        };
        wire.stream(STREAM_SERVER_CAPACITY, &request).await
    };
    let what = "idle streams of child servers, with a lease";
    let streams = opened(&subject, size.rest, (size.streams, what), open).await;
    let are_open = value(&subject.metrics(), OPEN_STREAMS);
    assert_eq!(are_open, Some(size.streams as f64), "streams stay open");
    closed(&subject, size.rest, streams).await;
}

/// Opens a number of things, on a connection each, and keeps them idle.
async fn opened<T>(
    subject: &Subject,
    rest: Duration,
    (count, what): (usize, &str),
    open: impl AsyncFn(Wire, usize) -> Result<T, Failure>,
) -> Vec<T> {
    let at_first = subject.resident();
    print("at rest", at_first, None);
    let mut all = Vec::new();
    for number in 0..count {
        let from = IpAddr::V4(Ipv4Addr::new(127, 2, 0, 1 + (number % 250) as u8));
        let wire = Wire::open(subject.address, Some(from)).await.unwrap();
        all.push(open(wire, number).await.unwrap());
    }
    served_for(subject, rest / 10).await;
    let when = format!("{count} {what}");
    print(&when, subject.resident(), Some((at_first, count)));
    all
}

async fn closed<T>(subject: &Subject, rest: Duration, all: Vec<T>) {
    drop(all);
    served_for(subject, rest).await;
    let when = format!("{rest:?} after they were closed");
    print(&when, subject.resident(), None);
}

async fn leases(mut subject: Subject, size: Size) {
    let at_first = subject.resident();
    let holders = holders(size.leases, size.resources);
    for round in ["", ", once more"] {
        let began = Instant::now();
        fill(subject.address, &holders).await;
        let when = format!("{} leases{round} (in {:.1?})", size.leases, began.elapsed());
        let now = subject.resident();
        print(&when, now, Some((at_first, size.leases)));
        // Read after the memory, because writing the metrics takes some, too.
        let account = value(&subject.metrics(), ACCOUNT).unwrap();
        let grown = now.saturating_sub(at_first);
        println!(
            "  by its own account ({ACCOUNT}) {:.1} MiB: {:.2} of the {:.1} MiB that the process has grown by",
            mib(account as u64),
            account / grown as f64,
            mib(grown),
        );
        empty(subject.address, &holders).await;
        for rest in [size.rest / 10, size.rest] {
            served_for(&subject, rest).await;
            let when = format!("{rest:?} after they were released, or later");
            print(&when, subject.resident(), None);
        }
    }
}
