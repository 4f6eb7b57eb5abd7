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
use crate::demo::demand_trace::{DemandStep, DemandTrace};
use crate::demo::demo_figures::Amounts;
use doorward_server::clock::Clock;

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

/// One client and what can be seen of it.
#[derive(Clone)]
struct DemoClient {
    resource: Resource,
    /// Steps that were admitted.
    steps: Arc<AtomicU64>,
}

/// How the clock of the trace goes: from some point of it on, so many times faster than ours, and
/// over again at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracePace {
    from: Duration,
    length: Duration,
    speed: f64,
}

impl TracePace {
    /// From a point on that is within the trace (else from its start).
    pub(super) fn new(trace: &DemandTrace, from: Duration, speed: f64) -> Self {
        // The last row holds as long as rows usually do before the trace starts over.
        let length = trace.length() + Duration::from_secs(2);
        let from = if from < length { from } else { Duration::ZERO };
        Self {
            from,
            length,
            speed,
        }
    }

    /// Where in the trace everyone is, so long after the start.
    fn trace_time(&self, since_start: Duration) -> Duration {
        let passed = self.from.as_secs_f64() + since_start.as_secs_f64() * self.speed;
        Duration::from_secs_f64(passed % self.length.as_secs_f64())
    }

    /// Returns the time from the start to a step in a round. None: the step is before the start.
    fn reached(&self, step: &DemandStep, round: u32) -> Option<Duration> {
        let at = self.length * round + step.at;
        at.checked_sub(self.from).map(|at| at.div_f64(self.speed))
    }
}

/// All clients, at work.
pub(super) struct DemoCrowd {
    members: Vec<DemoClient>,
    clients: Vec<Client>,
    work: JoinSet<()>,
    started_at: Time,
    pace: TracePace,
}

impl DemoCrowd {
    /// Connects a client for each in the trace to the server at the address in the same place, and
    /// lets them work.
    pub(super) async fn start(
        trace: &DemandTrace,
        servers: &[SocketAddr],
        pace: TracePace,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let started_at = clock.now();
        let mut crowd = Self {
            members: Vec::new(),
            clients: Vec::new(),
            work: JoinSet::new(),
            started_at,
            pace,
        };
        for (index, (name, server)) in trace.clients.iter().zip(servers).enumerate() {
            let config = ClientConfig {
                early_gap: EARLY_GAP,
                ..ClientConfig::default()
            };
            let client = Client::builder()
                .id(name.to_string())
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
            let steps: Vec<DemandStep> = trace
                .steps
                .iter()
                .filter(|step| step.client == index)
                .copied()
                .collect();
            let limiter = resource.rate_limiter(BURST);
            crowd
                .work
                .spawn(follow(resource, steps, pace, clock, started_at));
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
        self.pace.trace_time(now.since(self.started_at))
    }

    /// Stops all work and gives back what is held.
    pub(super) async fn stop(mut self) {
        self.work.shutdown().await;
        for client in self.clients {
            client.close().await;
        }
    }
}

/// Asks for what the trace says, when it says so, over and over.
async fn follow(
    resource: Resource,
    steps: Vec<DemandStep>,
    pace: TracePace,
    clock: Clock,
    started_at: Time,
) {
    for round in 0.. {
        for step in &steps {
            // A demand from before the start lasts until the next step.
            let at = pace.reached(step, round).unwrap_or_default();
            clock.sleep_until(started_at + at).await;
            if resource.ask(step.wants.get()).is_err() {
                return;
            }
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
