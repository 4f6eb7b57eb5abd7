//! An honest client that records how it is served: the answer to each call, its time, and its lease.
//!
//! It asks at a steady pace, independent of the answers. A call that is due while another is in flight is measured from
//! the time when it was due, so a server that stops for a second delays more than one call. Timers are up to a
//! millisecond late, which is not the server's fault.

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

/// Wants of the client, of a resource that has more.
pub const WANTS: f64 = 10.0;

/// Largest delay of a call that still begins in time.
const TIMER_LATE_MAX: Duration = Duration::from_millis(2);

/// Number of failures that are kept.
const FAILURES_MAX: usize = 20;

/// Opens a connection to a server, with a usual timeout.
pub fn channel(address: &str) -> Channel {
    match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.timeout(PATIENCE).connect_lazy(),
        Err(error) => panic!("{address}: {error}"),
    }
}

/// Record of a client's calls.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Time of each call, in the order in which they were due.
    pub took: Vec<Duration>,
    /// Number of calls that were refused, failed, or answered with less than wanted.
    pub failed: u64,
    /// Texts of the first failures.
    pub failures: Vec<String>,
}

impl Served {
    /// Returns the time that `part` of all calls does not exceed.
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
    /// Its last lease.
    pub has: Option<f64>,
}

impl HonestClient {
    /// Creates a client on a connection that others may share.
    pub fn new(channel: Channel, id: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            client: CapacityClient::new(channel),
            id: id.into(),
            resource: resource.into(),
            has: None,
        }
    }

    /// Asks for [`WANTS`], or refreshes its lease.
    ///
    /// # Errors
    ///
    /// If it is refused, or gets less.
    pub async fn ask(&mut self) -> Result<(), String> {
        let request = GetCapacityRequest {
            client_id: self.id.clone(),
            resource: vec![ResourceRequest {
                budget: None,
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

    /// Releases its lease.
    ///
    /// # Errors
    ///
    /// If there is no answer.
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
    /// Starts to ask a server for a resource, at a pace.
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

    /// Waits for a number of further answered calls.
    pub async fn until_served(&mut self, calls: usize) {
        let wanted = *self.calls.borrow() + calls;
        let served = self.calls.wait_for(|calls| *calls >= wanted);
        if !matches!(timeout(PATIENCE, served).await, Ok(Ok(_))) {
            panic!("an honest client is not served: {}", self.so_far());
        }
    }

    /// Returns the record so far.
    pub fn so_far(&self) -> Served {
        locked(&self.served).clone()
    }

    /// Returns the record since the last call of this method, or since the start.
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
