//! The clients of the demonstration: each asks for what its trace says, and does pretend work
//! through a rate limiter.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward::limiter::rate::Burst;
use doorward::state::ClientConfig;
use doorward::{Capacity, Client, Mode, RateLimiter, Resource, Source, Units};
use doorward_engine::time::Time;
use tokio::task::JoinSet;

use crate::demo::RESOURCE;
use crate::demo::demo_figures::Amounts;
use doorward_server::clock::Clock;
use doorward_trace::{Row, Trace};

/// How soon a client reports to the server that it wants something else, and how often the server
/// decides anew for one client: faster than by default, since there is something to see.
pub(super) const EARLY_GAP: Duration = Duration::from_millis(100);

/// Interval at which work arrives.
const ARRIVALS: Duration = Duration::from_millis(5);

/// A request is done in steps, each of which goes through the limiter: use is then smooth enough
/// to be measured over a second.
const STEPS: u32 = 20;

/// Burst of the limiter: one step of work, and the delay of a late timer.
const BURST: Burst = Burst {
    span: ARRIVALS,
    least: 1.0 / STEPS as f64,
};

/// Work that waits longer than this is given up, as a caller would.
const PATIENCE: Duration = Duration::from_millis(250);

/// Time in the trace at which the demonstration begins: demand picks up there.
const FROM: Duration = Duration::from_secs(120);

/// One client and what can be seen of it.
#[derive(Clone)]
struct DemoClient {
    resource: Resource,
    /// Steps that were admitted.
    steps: Arc<AtomicU64>,
}

/// All clients, at work.
pub(super) struct DemoCrowd {
    members: Vec<DemoClient>,
    clients: Vec<Client>,
    work: JoinSet<()>,
    started_at: Time,
    /// Time after which the trace starts over.
    length: Duration,
}

impl DemoCrowd {
    /// Connects a client for each in the trace to the server at the address in the same place, and
    /// lets them work.
    pub(super) async fn start(
        trace: &Trace,
        servers: &[SocketAddr],
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let started_at = clock.now();
        // The last row holds as long as rows usually do.
        let last = trace.rows.last().map_or(Duration::ZERO, Row::at);
        let length = last + Duration::from_secs(2);
        let mut crowd = Self {
            members: Vec::new(),
            clients: Vec::new(),
            work: JoinSet::new(),
            started_at,
            length,
        };
        for (index, (name, server)) in trace.clients.iter().zip(servers).enumerate() {
            let config = ClientConfig {
                early_gap: EARLY_GAP,
                ..ClientConfig::default()
            };
            let client = Client::builder()
                .id(name)
                .address(server.to_string())
                .config(config)
                .connect()
                .await?;
            let resource = client
                .resource(RESOURCE)
                .wants(0.0)
                .mode(Mode::Pessimistic)
                .open()?;
            let member = DemoClient {
                resource: resource.clone(),
                steps: Arc::new(AtomicU64::new(0)),
            };
            let rows = trace.rows.iter().filter(|row| row.client == index);
            let rows: Vec<Row> = rows.copied().collect();
            let limiter = resource.rate_limiter(BURST);
            // It wants what its rows say, round after round.
            crowd.work.spawn(async move {
                for at_round in (0..).map(|round| length * round) {
                    for row in &rows {
                        let at = (at_round + row.at()).saturating_sub(FROM);
                        clock.sleep_until(started_at + at).await;
                        if resource.ask(row.wants).is_err() {
                            return;
                        }
                    }
                }
            });
            crowd.work.spawn(work(member.clone(), limiter, clock));
            crowd.members.push(member);
            crowd.clients.push(client);
        }
        Ok(crowd)
    }

    /// Reads all clients, in the order of the trace.
    pub(super) fn read(&self) -> Vec<Amounts> {
        let reading = |member: &DemoClient| {
            let holding = member.resource.holding();
            Amounts {
                wants: member.resource.wants(),
                has: match (holding.source, holding.capacity) {
                    (Source::Lease, Capacity::Limited(capacity)) => capacity,
                    _ => 0.0,
                },
                granted: 0.0,
                // The last request may count in part.
                used: member.steps.load(Ordering::Relaxed) as f64 / f64::from(STEPS),
            }
        };
        self.members.iter().map(reading).collect()
    }

    /// Where in the trace everyone is.
    pub(super) fn trace_time(&self, now: Time) -> Duration {
        let passed = FROM + now.since(self.started_at);
        Duration::from_secs_f64(passed.as_secs_f64() % self.length.as_secs_f64())
    }

    /// Stops all work and gives back what is held.
    pub(super) async fn stop(mut self) {
        self.work.shutdown().await;
        for client in self.clients {
            client.close().await;
        }
    }
}

/// Work arrives as fast as it is wanted, and is done as fast as the limiter admits it.
async fn work(member: DemoClient, limiter: RateLimiter, clock: Clock) {
    let mut ticks = tokio::time::interval(ARRIVALS);
    let mut before = clock.now();
    let mut waiting = 0.0;
    let step = 1.0 / f64::from(STEPS);
    let cost = Units::at_least(step).unwrap_or(Units::ONE);
    loop {
        ticks.tick().await;
        let now = clock.now();
        let wants = member.resource.wants();
        waiting += wants * now.since(before).as_secs_f64();
        before = now;
        while waiting >= step && limiter.try_acquire(cost).is_ok() {
            waiting -= step;
            member.steps.fetch_add(1, Ordering::Relaxed);
        }
        waiting = waiting.min((wants * PATIENCE.as_secs_f64()).max(2.0));
    }
}
