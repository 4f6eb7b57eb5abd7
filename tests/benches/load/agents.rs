//! A leaf below which many agents lease many resources, all of them the same ones: its work for their refreshes, and the
//! latencies of a client meanwhile.
//!
//! An agent is a stream with a connection of its own. At each refresh it reports all its resources, as a real one does.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorward_documents::parse_duration;
use doorward_proto::doorman::{
    GetServerCapacityRequest, GetServerCapacityResponse, Lease, PriorityBandAggregate,
    ServerCapacityResourceRequest,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::generator::{Figures, Load, Pace};
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};
use crate::wire::{STREAM_SERVER_CAPACITY, Wire};

/// Refresh interval of the templates.
const REFRESH: Duration = Duration::from_secs(1);

/// Requests per second of the client.
const PACE: f64 = 500.0;

/// Sizes of the measurement.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Size {
    /// Number of agents.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) agents: usize,

    /// Number of resources, which all agents lease.
    #[arg(long, default_value_t = 100)]
    pub(crate) resources: usize,

    /// Number of resources whose wants an agent changes at each refresh.
    #[arg(long, default_value_t = 10)]
    pub(crate) changes: usize,

    /// Duration.
    #[arg(long, default_value = "20s", value_parser = parse_duration)]
    pub(crate) lasts: Duration,
}

/// Requests, answers, and resources in the answers.
type Counts = Arc<[AtomicUsize; 3]>;

/// Measures a leaf without agents, then with them.
pub(crate) async fn measure(place: &Place, size: Size) {
    let templates = Templates {
        capacity: 5 * size.agents as u64,
        lease_length: 16 * REFRESH,
        ..Templates::FAIR
    };
    let root = Subject::server_with(&Place::default(), templates, &[]);
    let parent = root.address.to_string();
    let children = format!("--child-servers-max={}", size.agents);
    let flags = ["--node=leaf", "--parent", &parent, &children];
    let leaf = Subject::server_with(place, templates, &flags);
    let (before, at_rest) = (leaf.resident(), client(&leaf, size.lasts).await);
    Figures::print_heading();
    at_rest.print("without agents", &at_rest);
    let counts = Counts::default();
    for number in 0..size.agents {
        let agent = Agent {
            number,
            sequence: 0,
            size,
            has: vec![0.0; size.resources],
        };
        tokio::spawn(agent.live(leaf.address, Arc::clone(&counts)));
        // They come one after the other, so that refreshes are spread over the interval.
        sleep(REFRESH / size.agents as u32).await;
    }
    sleep(size.lasts).await;
    let (began, cpu) = (Instant::now(), leaf.cpu_time());
    counts.iter().for_each(|it| it.store(0, Ordering::Relaxed));
    let busy = client(&leaf, size.lasts).await;
    let intervals = began.elapsed().as_secs_f64() / REFRESH.as_secs_f64();
    let cpu = (leaf.cpu_time() - cpu).as_secs_f64() / intervals;
    let counted = |it: usize| counts[it].load(Ordering::Relaxed) as f64 / intervals;
    let (requests, answers, resources) = (counted(0), counted(1), counted(2));
    busy.print("with agents", &at_rest);
    println!(
        "each {REFRESH:?}: {requests:.0} requests, {answers:.0} answers with {resources:.0} resources, {cpu:.3} s of \
         processor time with the client's; {:.1} MiB more",
        leaf.resident().saturating_sub(before) as f64 / f64::from(1 << 20)
    );
    assert_eq!(busy.failed, 0, "no call fails");
    assert!(requests >= 0.9 * size.agents as f64, "agents keep asking");
}

/// Asks for another resource of the leaf all the time.
async fn client(leaf: &Subject, lasts: Duration) -> Figures {
    let load = Load {
        address: leaf.address,
        population: Arc::new(Population::new("beside", 100, 100, 1)),
        connections: 4,
        pace: Pace::Open { per_second: PACE },
        lasts,
    };
    load.run(|| leaf.cpu_time()).await
}

struct Agent {
    number: usize,
    sequence: u64,
    size: Size,
    has: Vec<f64>,
}

impl Agent {
    async fn live(mut self, leaf: SocketAddr, counts: Counts) {
        let from = IpAddr::V4(Ipv4Addr::new(127, 2, 0, 1 + (self.number % 250) as u8));
        let wire = Wire::open(leaf, Some(from)).await.unwrap();
        let first = self.request();
        let mut stream = wire.stream(STREAM_SERVER_CAPACITY, &first).await.unwrap();
        let mut ticks = interval_at(Instant::now() + REFRESH, REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if stream.send(&self.request()).is_err() {
                        // The measurement is over.
                        return;
                    }
                    counts[0].fetch_add(1, Ordering::Relaxed);
                }
                answer = stream.next::<GetServerCapacityResponse>() => {
                    let Ok(answer) = answer else { return };
                    counts[1].fetch_add(1, Ordering::Relaxed);
                    counts[2].fetch_add(answer.response.len(), Ordering::Relaxed);
                    for resource in answer.response {
                        let number = resource.resource_id.rsplit('-').next().unwrap();
                        self.has[number.parse::<usize>().unwrap()] = resource.gets.capacity;
                    }
                }
            }
        }
    }

    fn request(&mut self) -> GetServerCapacityRequest {
        self.sequence += 1;
        let resource = self.has.iter().enumerate().map(|(number, has)| {
            // They change in turns.
            let turns = self.sequence as usize * self.size.changes + number;
            let changed = turns / self.size.resources;
            let wants = (2 + (self.number + changed) % 8) as f64;
            ServerCapacityResourceRequest {
                resource_id: format!("load/a-{number}"),
                wants: vec![PriorityBandAggregate {
                    priority: 0,
                    num_clients: 1,
                    wants,
                    level: vec![wants],
                    demand: vec![wants],
                }],
                has: Some(Lease {
                    capacity: *has,
                    expires_in_ms: Some(15_000),
                    ..Lease::default()
                }),
                outstanding: Some(0.0),
                ..ServerCapacityResourceRequest::default()
            }
        });
        GetServerCapacityRequest {
            server_id: format!("agent-{}", self.number),
            resource: resource.collect(),
            sequence: Some(self.sequence),
            ..GetServerCapacityRequest::default()
        }
    }
}
