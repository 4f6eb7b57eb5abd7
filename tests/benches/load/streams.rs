//! Clients on streams: how soon a change of demand reaches all of them through three levels, how soon one of many
//! resources on a connection changes, and the work for clients at rest.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_documents::parse_duration;
use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, ResourceRequest, ResourceResponse,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::latencies::Latencies;
use crate::subject::{Place, Subject, Templates};
use crate::wire::{GET_CAPACITY, STREAM_CAPACITY, Stream, Wire};

/// Streams on a connection.
const STREAMS: usize = 50;

/// Resources in a request: servers refuse more.
const ASKS_MAX: usize = 1_000;

/// Time until the leases of a step must be settled.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sizes of the measurement.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Size {
    /// Number of clients, at two leaves below a region. A tenth of them wants ten times as much after the step.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) clients: usize,

    /// Number of resources of one client, all of which change each second.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) resources: usize,

    /// Duration of the measurements of many resources and of clients at rest.
    #[arg(long, default_value = "20s", value_parser = parse_duration)]
    pub(crate) lasts: Duration,
}

/// Prints all three.
pub(crate) async fn measure(place: &Place, size: Size) {
    step(size).await;
    resources(place, size).await;
    at_rest(place, size).await;
}

/// A client of some resources on a stream. It acknowledges what it loses.
struct Client {
    id: String,
    stream: Stream,
    sequence: u64,
    wants: f64,
}

fn asked(resource_id: &str, wants: f64, has: f64) -> ResourceRequest {
    ResourceRequest {
        budget: None,
        resource_id: resource_id.to_owned(),
        priority: 0,
        has: (has > 0.0).then(|| Lease {
            capacity: has,
            expires_in_ms: Some(3_600_000),
            ..Lease::default()
        }),
        wants,
    }
}

fn request(id: &str, sequence: u64, resource: Vec<ResourceRequest>) -> GetCapacityRequest {
    GetCapacityRequest {
        client_id: id.to_owned(),
        incarnation: Some(7),
        sequence: Some(sequence),
        resource,
    }
}

impl Client {
    async fn open(wire: &Wire, id: String, resource: &str, wants: f64) -> Self {
        let first = request(&id, 1, vec![asked(resource, wants, 0.0)]);
        let stream = wire.stream(STREAM_CAPACITY, &first).await.unwrap();
        Self {
            id,
            stream,
            sequence: 1,
            wants,
        }
    }

    fn ask(&mut self, resource: Vec<ResourceRequest>) {
        self.sequence += 1;
        let request = request(&self.id, self.sequence, resource);
        self.stream.send(&request).unwrap();
    }

    /// Returns the leases of the next message that count. None: the server has ended.
    async fn next(&mut self) -> Option<Vec<ResourceResponse>> {
        let message: GetCapacityResponse = self.stream.next().await.ok()?;
        let is_answer = message.sequence == Some(self.sequence);
        let mut leases = message.response;
        leases.retain(|lease| is_answer || lease.sequence == Some(self.sequence));
        Some(leases)
    }
}

/// Amount of a client's lease, and when it changed last, in microseconds since the beginning.
#[derive(Debug, Default)]
struct Seen {
    has: AtomicU64,
    at: AtomicU64,
}

/// Lets a client live until the step is measured.
async fn live(
    mut client: Client,
    mut wants: watch::Receiver<f64>,
    seen: Arc<Seen>,
    began: Instant,
) -> Option<()> {
    const RESOURCE: &str = "load/r";
    let mut has = 0.0;
    loop {
        tokio::select! {
            leases = client.next() => for lease in leases? {
                let before = std::mem::replace(&mut has, lease.gets.capacity);
                if has != before {
                    seen.has.store(has.to_bits(), Ordering::Relaxed);
                    seen.at.store(began.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
                if has < before {
                    let wants = client.wants;
                    client.ask(vec![asked(RESOURCE, wants, has)]);
                }
            },
            changed = wants.changed() => {
                changed.ok()?;
                client.wants = *wants.borrow_and_update();
                let wants = client.wants;
                client.ask(vec![asked(RESOURCE, wants, has)]);
            }
        }
    }
}

/// Prints how long a step takes through three levels.
async fn step(size: Size) {
    let (few, many) = (size.clients / 10, size.clients - size.clients / 10);
    let templates = Templates {
        capacity: 10 * size.clients as u64,
        ..Templates::FAIR
    };
    let place = Place::default();
    let root = Subject::server_with(&place, templates, &[]);
    let below = |node: &str, parent: &Subject| {
        let (node, parent) = (
            format!("--node={node}"),
            format!("--parent={}", parent.address),
        );
        Subject::server_with(&place, templates, &[&node, &parent])
    };
    let region = below("region", &root);
    let leaves = [below("leaf-1", &region), below("leaf-2", &region)];
    let servers = [&root, &region, &leaves[0], &leaves[1]];
    let (wants, began) = (watch::Sender::new(5.0), Instant::now());
    let all: Vec<Arc<Seen>> = (0..size.clients).map(|_| Arc::default()).collect();
    let stays = watch::Sender::new(12.0);
    let mut wire = None;
    for (number, seen) in all.iter().enumerate() {
        let leaf = leaves[number / STREAMS % 2].address;
        if number % STREAMS == 0 {
            wire = Some(Wire::open(leaf, None).await.unwrap());
        }
        let follows = if number % 10 == 0 { &wants } else { &stays };
        let first = *follows.borrow();
        let (id, wire) = (format!("client-{number}"), wire.as_ref().unwrap());
        let client = Client::open(wire, id, "load/r", first).await;
        tokio::spawn(live(client, follows.subscribe(), Arc::clone(seen), began));
    }
    // Of the capacity of ten each.
    settled(&all, |_| None).await;
    let cpu = || servers.iter().map(|it| it.cpu_time()).sum::<Duration>();
    let (before, stepped) = (cpu(), Instant::now());
    wants.send_replace(50.0);
    let level = max_min(10.0 * size.clients as f64, [(few, 50.0), (many, 12.0)]);
    settled(&all, |number| {
        Some(if number % 10 == 0 {
            level.min(50.0)
        } else {
            level.min(12.0)
        })
    })
    .await;
    let spent = cpu() - before;
    let offset = stepped.duration_since(began).as_micros() as u64;
    let took = |seen: &Arc<Seen>| seen.at.load(Ordering::Relaxed).saturating_sub(offset);
    let times = all.iter().map(|seen| Duration::from_micros(took(seen)));
    let times = Latencies::new(times.collect());
    println!(
        "a step of {few} among {} clients, three levels: p50 {:.0?}, p99 {:.0?}, the last {:.0?}; {:.2?} of processor \
         time of four servers",
        size.clients,
        times.at(0.5),
        times.at(0.99),
        times.max(),
        spent,
    );
}

/// Returns the level of max-min fairness among two groups.
fn max_min(capacity: f64, groups: [(usize, f64); 2]) -> f64 {
    let (mut low, mut high) = (0.0, capacity);
    for _ in 0..100 {
        let level = f64::midpoint(low, high);
        let taken: f64 = groups
            .iter()
            .map(|(n, wants)| *n as f64 * wants.min(level))
            .sum();
        (low, high) = if taken > capacity {
            (low, level)
        } else {
            (level, high)
        };
    }
    low
}

/// Waits until all leases are within a hundredth of what is expected, or have not changed for a second.
async fn settled(all: &[Arc<Seen>], expected: impl Fn(usize) -> Option<f64>) {
    let (until, mut last) = (Instant::now() + PATIENCE, 0);
    loop {
        let is_there = |(number, seen): (usize, &Arc<Seen>)| {
            let has = f64::from_bits(seen.has.load(Ordering::Relaxed));
            expected(number).is_none_or(|it| (has - it).abs() <= it / 100.0)
        };
        let newest = all.iter().map(|it| it.at.load(Ordering::Relaxed)).max();
        let rests = newest == Some(std::mem::replace(&mut last, newest.unwrap_or_default()));
        if rests && all.iter().enumerate().all(is_there) {
            return;
        }
        assert!(Instant::now() < until, "leases are not settled");
        sleep(Duration::from_secs(1)).await;
    }
}

/// Prints how soon one of many resources changes that are on one connection, while all of them change each second.
async fn resources(place: &Place, size: Size) {
    let server = Subject::server(
        place,
        Templates {
            capacity: 100,
            ..Templates::FAIR
        },
    );
    let names: Vec<String> = (0..size.resources)
        .map(|it| format!("load/r-{it:05}"))
        .collect();
    let wire = Wire::open(server.address, None).await.unwrap();
    let other = Wire::open(server.address, None).await.unwrap();
    let mut watched = Client::open(&wire, "watched".to_owned(), &names[0], 90.0).await;
    let mut moves = Client::open(&other, "moves".to_owned(), &names[0], 1.0).await;
    for names in names.chunks(ASKS_MAX) {
        for client in [&mut watched, &mut moves] {
            let wants = client.wants;
            client.ask(names.iter().map(|id| asked(id, wants, 0.0)).collect());
            while client.next().await.unwrap().len() < names.len() {}
        }
    }
    let mut sent_at = vec![None; names.len()];
    let mut times = Vec::new();
    let (began, every) = (
        Instant::now(),
        Duration::from_secs(1) / (size.resources / 100).max(1) as u32,
    );
    let (mut next, mut batch, mut wants) = (began, 0, 20.0);
    // A hundred resources at a time, so that each changes once a second. The watched client wants 90 of 100.
    while began.elapsed() < size.lasts {
        tokio::select! {
            () = sleep_until(next) => {
                next += every;
                let part = batch * 100..((batch + 1) * 100).min(names.len());
                for it in part.clone() {
                    sent_at[it] = Some(Instant::now());
                }
                moves.ask(names[part].iter().map(|id| asked(id, wants, wants)).collect());
                batch = (batch + 1) % names.len().div_ceil(100);
                if batch == 0 {
                    wants = 60.0 - wants;
                }
            }
            message = watched.stream.next::<GetCapacityResponse>() => {
                times.extend(heard(&mut watched, message.unwrap(), &mut sent_at));
            }
            _ = moves.stream.next::<GetCapacityResponse>() => {}
        }
    }
    let times = Latencies::new(times);
    println!(
        "{} resources on one connection, each changed once a second: a change arrives after p50 {:.0?}, p99 {:.0?}, at \
         most {:.0?}",
        names.len(),
        times.at(0.5),
        times.at(0.99),
        times.max(),
    );
}

/// Acknowledges a push. Returns the times since the changes that caused it.
fn heard(
    client: &mut Client,
    message: GetCapacityResponse,
    sent_at: &mut [Option<Instant>],
) -> Vec<Duration> {
    let mut times = Vec::new();
    if message.sequence.is_some() {
        return times;
    }
    let mut less = Vec::new();
    for lease in message.response {
        let number: usize = lease
            .resource_id
            .rsplit('-')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        times.extend(sent_at[number].take().map(|at| at.elapsed()));
        less.push(asked(&lease.resource_id, client.wants, lease.gets.capacity));
    }
    client.ask(less);
    times
}

/// Prints the work of a server for clients whose demand does not change, by calls and on streams.
async fn at_rest(place: &Place, size: Size) {
    let mut cost = [0.0; 2];
    for (way, cost) in ["calls", "streams"].into_iter().zip(&mut cost) {
        // A refresh each second by calls, and each 4 s on a stream: as with a minute and 5 s.
        let templates = Templates {
            lease_length: Duration::from_secs(12),
            ..Templates::FAIR
        };
        // All come from one address.
        let room = ["--incoming-bytes-per-address-max=256MiB"];
        let server = Subject::server_with(place, templates, &room);
        let clients = (0..size.clients)
            .map(|number| tokio::spawn(rest(server.address, number, way == "streams")));
        let clients: Vec<_> = clients.collect();
        sleep(Duration::from_secs(5)).await;
        let before = server.cpu_time();
        sleep(size.lasts).await;
        let spent = (server.cpu_time() - before).as_secs_f64() / size.lasts.as_secs_f64();
        *cost = spent;
        println!(
            "{} clients at rest by {way}: {:.2} % of a core",
            size.clients,
            100.0 * spent
        );
        clients.into_iter().for_each(|client| client.abort());
    }
    println!("streams take {:.2} of the work of calls", cost[1] / cost[0]);
}

/// Refreshes a lease when the server says so, on a connection of its own.
async fn rest(server: SocketAddr, number: usize, streams: bool) {
    sleep(Duration::from_secs(1).mul_f64(number as f64 % 1_000.0 / 1_000.0)).await;
    let wire = Wire::open(server, None).await.unwrap();
    let (id, resource) = (format!("client-{number}"), format!("load/r-{number}"));
    let mut client = None;
    let (mut sequence, mut has) = (1, 0.0);
    loop {
        let leases = if let Some(client) = &mut client {
            let client: &mut Client = client;
            if sequence > 1 {
                client.ask(vec![asked(&resource, 10.0, has)]);
            }
            client.next().await.unwrap()
        } else if streams {
            client = Some(Client::open(&wire, id.clone(), &resource, 10.0).await);
            continue;
        } else {
            let request = request(&id, sequence, vec![asked(&resource, 10.0, has)]);
            let answer: GetCapacityResponse = wire.call(GET_CAPACITY, &request).await.unwrap();
            answer.response
        };
        sequence += 1;
        // None: the first mark of the resource is not stored yet.
        let lease = leases.into_iter().next().map(|lease| lease.gets);
        has = lease.as_ref().map_or(0.0, |lease| lease.capacity);
        let refresh_in = lease.map_or(1_000, |lease| lease.refresh_in_ms.unwrap());
        sleep(Duration::from_millis(refresh_in)).await;
    }
}
