//! Memory of a server: at rest, with idle connections and streams, with many leases, and after they are gone.
//!
//! The system's figure of the process is compared with the server's own account of resources and leases.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use doorward_proto::doorman::{
    GetServerCapacityRequest, PriorityBandAggregate, ServerCapacityResourceRequest,
};
use doorward_tests::figures::value;
use serde_json::{Value, json};
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) connections: usize,
    /// Number of child servers, each on a connection of its own.
    pub(crate) streams: usize,
    pub(crate) resources: usize,
    pub(crate) leases: usize,
    /// Time to wait for memory to be given back.
    pub(crate) rest: Duration,
}

/// Memory of a server at some moment.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    when: String,
    resident: u64,
    /// Bytes of each connection, or lease, beyond the earlier memory.
    each: Option<f64>,
    account: Option<Account>,
}

/// A server's account of resources and leases, and the growth of its process.
#[derive(Clone, Copy, Debug)]
struct Account {
    bytes: u64,
    grown: u64,
}

impl Account {
    fn of_grown(self) -> f64 {
        self.bytes as f64 / self.grown as f64
    }
}

impl Moment {
    fn new(when: String, resident: u64) -> Self {
        Self {
            when,
            resident,
            each: None,
            account: None,
        }
    }

    pub(crate) fn print(&self) {
        let each = self
            .each
            .map_or_else(String::new, |each| format!("{each:.0} B each"));
        println!("{:46} {:>8.1} MiB  {each}", self.when, mib(self.resident));
        if let Some(account) = self.account {
            println!(
                "  by its own account ({ACCOUNT}) {:.1} MiB: {:.2} of the {:.1} MiB that the process has grown by",
                mib(account.bytes),
                account.of_grown(),
                mib(account.grown),
            );
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "when": self.when,
            "resident": self.resident,
            "each": self.each,
            "account": self.account.map(|account| account.bytes),
            "grown": self.account.map(|account| account.grown),
            "account_of_grown": self.account.map(Account::of_grown),
        })
    }
}

/// Measures the memory, with a new server for each kind.
pub(crate) async fn measure(place: &Place, size: Size, mut tell: impl FnMut(Moment)) {
    let server = |flags: &[&str]| Subject::server(place, Templates::FAIR, flags);
    connections(&server(&[]), size, &mut tell).await;
    let children = size.streams.to_string();
    let flags = ["--child-servers-max", children.as_str()];
    streams(&mut server(&flags), size, &mut tell).await;
    leases(&mut server(&[]), size, &mut tell).await;
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
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

async fn connections(subject: &Subject, size: Size, tell: &mut impl FnMut(Moment)) {
    // A connection takes memory only after a request.
    let client = Population::new("idle", size.connections, 1, 1);
    let open = async |wire: Wire, number| {
        client.ask(&wire, number).await?;
        Ok(wire)
    };
    let what = "idle connections, each with a lease";
    let connections = opened(subject, size.rest, (size.connections, what), open, tell).await;
    closed(subject, size.rest, connections, tell).await;
}

/// Measures streams. Each child server has a connection with a stream, and leases its own resource. With a shared
/// resource, each new child would be news for all others.
async fn streams(subject: &mut Subject, size: Size, tell: &mut impl FnMut(Moment)) {
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
    let streams = opened(subject, size.rest, (size.streams, what), open, tell).await;
    let are_open = value(&subject.metrics(), OPEN_STREAMS);
    assert_eq!(are_open, Some(size.streams as f64), "streams stay open");
    closed(subject, size.rest, streams, tell).await;
}

/// Opens a number of things, on a connection each, and keeps them idle.
async fn opened<T>(
    subject: &Subject,
    rest: Duration,
    (count, what): (usize, &str),
    open: impl AsyncFn(Wire, usize) -> Result<T, Failure>,
    tell: &mut impl FnMut(Moment),
) -> Vec<T> {
    let resident = || subject.memory().map_or(0, |memory| memory.resident);
    let at_first = resident();
    tell(Moment::new("at rest".to_owned(), at_first));
    let mut all = Vec::new();
    for number in 0..count {
        let from = IpAddr::V4(Ipv4Addr::new(127, 2, 0, 1 + (number % 250) as u8));
        let wire = Wire::open(subject.address, Some(from)).await.unwrap();
        all.push(open(wire, number).await.unwrap());
    }
    served_for(subject, rest / 10).await;
    let now = resident();
    tell(Moment {
        each: Some(now.saturating_sub(at_first) as f64 / count as f64),
        ..Moment::new(format!("{count} {what}"), now)
    });
    all
}

async fn closed<T>(subject: &Subject, rest: Duration, all: Vec<T>, tell: &mut impl FnMut(Moment)) {
    drop(all);
    served_for(subject, rest).await;
    let resident = subject.memory().map_or(0, |memory| memory.resident);
    let when = format!("{rest:?} after they were closed");
    tell(Moment::new(when, resident));
}

async fn leases(subject: &mut Subject, size: Size, tell: &mut impl FnMut(Moment)) {
    let resident = |subject: &Subject| subject.memory().map_or(0, |memory| memory.resident);
    let at_first = resident(subject);
    let holders = holders(size.leases, size.resources);
    for round in ["", ", once more"] {
        let began = Instant::now();
        fill(subject.address, &holders).await.unwrap();
        let took = began.elapsed();
        let leases = holders.leases();
        let now = resident(subject);
        let grown = now.saturating_sub(at_first);
        // Read after the memory, because writing the metrics takes some, too.
        let bytes = value(&subject.metrics(), ACCOUNT);
        tell(Moment {
            each: Some(grown as f64 / leases as f64),
            account: bytes.map(|bytes| Account {
                bytes: bytes as u64,
                grown,
            }),
            ..Moment::new(format!("{leases} leases{round} (in {took:.1?})"), now)
        });
        empty(subject.address, &holders).await.unwrap();
        served_for(subject, size.rest / 10).await;
        let when = format!("{:?} after they were released", size.rest / 10);
        tell(Moment::new(when, resident(subject)));
        served_for(subject, size.rest).await;
        let when = format!("{:?} later", size.rest);
        tell(Moment::new(when, resident(subject)));
    }
}
