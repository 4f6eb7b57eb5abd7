//! A client that does nothing wrong, and keeps book of how it is served: whether each of its calls is answered,
//! how long that takes, and whether it keeps its lease.
//!
//! It asks at a steady pace, whatever the answers take: a call that is due while another is in flight is
//! measured from when it was due, so that a server that stands still for a second is not measured once. Timers
//! are up to a millisecond late, which is not the server's.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{GetCapacityRequest, Lease, ReleaseCapacityRequest, ResourceRequest};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::processes::PATIENCE;

/// What it wants, of a resource that has more.
pub const WANTS: f64 = 10.0;

/// A call that begins no later than that after it was due begins in time.
const TIMER_LATE_MAX: Duration = Duration::from_millis(2);

/// How much of what went wrong is kept.
const FAILURES_MAX: usize = 20;

/// A connection to a server that gives up when everybody would.
pub fn channel(address: &str) -> Channel {
    match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.timeout(PATIENCE).connect_lazy(),
        Err(error) => panic!("{address}: {error}"),
    }
}

/// How it was served.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// How long each call took, in the order in which they were due.
    pub took: Vec<Duration>,
    /// Calls that were refused, failed, or answered with less than is wanted: how many, and the first of them.
    pub failed: u64,
    /// What the first of them said.
    pub failures: Vec<String>,
}

impl Served {
    /// The call that took longer than that part of them all.
    pub fn quantile(&self, part: f64) -> Duration {
        let mut took = self.took.clone();
        took.sort();
        let last = took.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        took.get(at).copied().unwrap_or_default()
    }

    fn fail(&mut self, failure: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} failed; p50 {:.2?}, p99 {:.2?}",
            self.took.len(),
            self.failed,
            self.quantile(0.5),
            self.quantile(0.99)
        )
    }
}

/// One client of one resource.
#[derive(Clone, Debug)]
pub struct HonestClient {
    client: CapacityClient<Channel>,
    id: String,
    resource: String,
    /// What it was granted last.
    pub has: Option<f64>,
}

impl HonestClient {
    /// On a connection that others may share.
    pub fn new(channel: Channel, id: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            client: CapacityClient::new(channel),
            id: id.into(),
            resource: resource.into(),
            has: None,
        }
    }

    /// Asks for [`WANTS`], or refreshes what it has.
    ///
    /// # Errors
    ///
    /// If it is refused, or gets less.
    pub async fn ask(&mut self) -> Result<(), String> {
        let request = GetCapacityRequest {
            client_id: self.id.clone(),
            resource: vec![ResourceRequest {
                resource_id: self.resource.clone(),
                priority: 0,
                has: self.has.map(lease),
                wants: WANTS,
            }],
            ..GetCapacityRequest::default()
        };
        let answer = self.client.get_capacity(request).await;
        let answer = answer.map_err(|status| self.failure(&status))?.into_inner();
        let Some(given) = answer.response.first() else {
            return Err(format!("{} was refused: {:?}", self.id, answer.refused));
        };
        let capacity = given.gets.capacity;
        self.has = Some(capacity);
        if capacity < WANTS {
            return Err(format!("{} has {capacity} of {WANTS}", self.id));
        }
        Ok(())
    }

    /// Gives it back.
    ///
    /// # Errors
    ///
    /// If that is not answered.
    pub async fn release(&mut self) -> Result<(), String> {
        let request = ReleaseCapacityRequest {
            client_id: self.id.clone(),
            resource_id: vec![self.resource.clone()],
            ..ReleaseCapacityRequest::default()
        };
        let answer = self.client.release_capacity(request).await;
        self.has = None;
        answer.map(drop).map_err(|status| self.failure(&status))
    }

    fn failure(&self, status: &Status) -> String {
        format!("{}: {:?}, {}", self.id, status.code(), status.message())
    }
}

fn lease(capacity: f64) -> Lease {
    Lease {
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(60_000),
        refresh_in_ms: None,
        granted_by: None,
    }
}

/// A client that asks until it is dropped.
#[derive(Debug)]
pub struct Honest {
    served: Arc<Mutex<Served>>,
    calls: watch::Receiver<usize>,
    asking: JoinHandle<()>,
}

impl Honest {
    /// Begins to ask a server for a resource, so often.
    pub fn start(address: &str, id: &str, resource: &str, pace: Duration) -> Self {
        let served = Arc::<Mutex<Served>>::default();
        let (count, calls) = watch::channel(0);
        let mut client = HonestClient::new(channel(address), id, resource);
        let book = Arc::clone(&served);
        let asking = tokio::spawn(async move {
            let mut turns = interval(pace);
            turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
            loop {
                let due = turns.tick().await;
                let sent = Instant::now();
                let is_on_time = sent.duration_since(due) < TIMER_LATE_MAX;
                let answer = client.ask().await;
                let mut book = locked(&book);
                book.took
                    .push(if is_on_time { sent } else { due }.elapsed());
                if let Err(failure) = answer {
                    book.fail(failure);
                }
                count.send_replace(book.took.len());
            }
        });
        Self {
            served,
            calls,
            asking,
        }
    }

    /// Waits until it was answered so often from now on.
    pub async fn until_served(&mut self, calls: usize) {
        let wanted = *self.calls.borrow() + calls;
        let served = self.calls.wait_for(|calls| *calls >= wanted);
        if !matches!(timeout(PATIENCE, served).await, Ok(Ok(_))) {
            panic!("an honest client is not served: {}", self.so_far());
        }
    }

    /// How it was served so far.
    pub fn so_far(&self) -> Served {
        locked(&self.served).clone()
    }

    /// How it was served since it was asked last, or since it began.
    pub fn take(&self) -> Served {
        std::mem::take(&mut *locked(&self.served))
    }
}

impl Drop for Honest {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

fn locked(served: &Mutex<Served>) -> MutexGuard<'_, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}
