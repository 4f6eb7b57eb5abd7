//! Envoy's rate limit quota service (RLQS): Envoy reports every five seconds what each bucket used, and is assigned a
//! rate.
//!
//! An Envoy is a caller, whose streams share its part of the leases of its identity. So several Envoys share the limit of
//! a rule fairly, however many streams they open.

pub mod assignment;
pub mod buckets;
pub mod demand;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward::time::Time;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_server::RateLimitQuotaService;
use doorward_proto::envoy::rate_limit_quota::{RateLimitQuotaResponse, RateLimitQuotaUsageReports};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::debug;

use crate::asker::Asker;
use crate::clock::{self, Clock};
use crate::edge::Edge;
use crate::rlqs::buckets::Buckets;
use crate::rls::{NOT_LOADED, caller_of};
use crate::work::{Work, WorkOf};

/// Largest message, in bytes: a report of the largest number of buckets, with 200 bytes each.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest domain, in bytes.
const DOMAIN_BYTES_MAX: usize = 1_024;

/// Assignments in one message.
const ACTIONS_MAX: usize = 1_000;

/// Messages that wait for a slow Envoy. Beyond that, its reports are not read, and what it was assigned stays reserved.
/// Each takes the memory of its buckets once more.
const WAITING_MAX: usize = 1;

/// Time between two looks for idle buckets.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// Longest time between two looks at the clock.
const WAKES_EVERY: Duration = Duration::from_secs(1);

/// The service.
#[derive(Clone, Debug)]
pub struct Rlqs {
    edge: Arc<Edge>,
    streams: Arc<AtomicU64>,
    work: Arc<Work>,
}

impl Rlqs {
    /// Serves the leases of an edge.
    pub fn new(edge: Arc<Edge>) -> Self {
        Self {
            edge,
            streams: Arc::default(),
            work: Arc::default(),
        }
    }
}

#[tonic::async_trait]
impl RateLimitQuotaService for Rlqs {
    type StreamRateLimitQuotasStream = ReceiverStream<Result<RateLimitQuotaResponse, Status>>;

    async fn stream_rate_limit_quotas(
        &self,
        request: Request<Streaming<RateLimitQuotaUsageReports>>,
    ) -> Result<Response<Self::StreamRateLimitQuotasStream>, Status> {
        if !self.edge.is_loaded() {
            return Err(Status::unavailable(NOT_LOADED));
        }
        let (answers, receiver) = mpsc::channel(WAITING_MAX);
        let asker = caller_of(&request);
        let stream = QuotaStream {
            edge: Arc::clone(&self.edge),
            number: self.streams.fetch_add(1, Ordering::Relaxed) + 1,
            work: self.work.of(asker.identity(), self.edge.clock.now()),
            asker,
            answers,
        };
        tokio::spawn(stream.run(request.into_inner()));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

/// A stream of an Envoy.
struct QuotaStream {
    edge: Arc<Edge>,
    number: u64,
    asker: Asker,
    work: WorkOf,
    answers: mpsc::Sender<Result<RateLimitQuotaResponse, Status>>,
}

impl QuotaStream {
    async fn run(self, mut reports: Streaming<RateLimitQuotaUsageReports>) {
        let (clock, mut took) = (self.edge.clock, Duration::ZERO);
        tokio::select! {
            () = clock.sleep_until(self.work.charge(Duration::ZERO, self.now())) => {}
            () = self.edge.stopping.cancelled() => return,
        }
        let first = timed(reports.message(), clock, &mut took).await;
        self.work.charge(took, self.now());
        let Ok(Some(first)) = first else {
            return;
        };
        let domain = first.domain.clone();
        if domain.is_empty() || domain.len() > DOMAIN_BYTES_MAX {
            let problem =
                "domain: is empty or too long; give that of the rules in the first message";
            let problem = Status::invalid_argument(problem);
            let _ = self.answers.try_send(Err(problem));
            return;
        }
        let (number, asker) = (self.number, self.asker.clone());
        let name = asker.name();
        debug!(number, name, domain, "a stream for quotas begins");
        self.edge.note_domain(&domain);
        let room = Arc::clone(&self.edge.room);
        let mut buckets = Buckets::new(domain, asker, number, room, clock::generation());
        self.handle(&mut buckets, first);
        self.serve(&mut buckets, &mut reports).await;
        self.edge.buckets.lock().remove(&number);
        debug!(number, "a stream for quotas ends");
        buckets.handle_end(self.now());
    }

    fn now(&self) -> Time {
        self.edge.clock.now()
    }

    /// Handles a message, and counts the work. Other tasks must not run in between, or each stream would have a message
    /// in memory.
    fn handle(&self, buckets: &mut Buckets, reports: RateLimitQuotaUsageReports) {
        let now = self.now();
        let (limiter, wall) = (self.edge.limiter(), self.edge.wall.now());
        let callers = |priority| self.edge.caller(self.asker.identity(), priority);
        for usage in reports.bucket_quota_usages {
            if let Some(id) = &usage.bucket_id {
                let counts = [usage.num_requests_allowed, usage.num_requests_denied];
                limiter.count_unordered(buckets.domain(), &id.bucket, counts, wall);
            }
            buckets.handle_usage(usage, limiter, &callers, now);
        }
        self.work.charge(self.now().since(now), self.now());
    }

    /// Serves the stream until it ends.
    async fn serve(
        &self,
        buckets: &mut Buckets,
        reports: &mut Streaming<RateLimitQuotaUsageReports>,
    ) {
        let clock = self.edge.clock;
        let mut looks_at = clock.now() + LOOKS_EVERY;
        let mut took = Duration::ZERO;
        loop {
            self.edge.buckets.lock().insert(self.number, buckets.len());
            let now = self.now();
            let reads_at = self.work.charge(std::mem::take(&mut took), now);
            if now >= looks_at {
                looks_at = now + LOOKS_EVERY;
                buckets.forget_idle(now);
            }
            let mut actions = buckets.actions(now);
            took += self.now().since(now);
            while !actions.is_empty() {
                let rest = actions.split_off(actions.len().min(ACTIONS_MAX));
                let bucket_action = std::mem::replace(&mut actions, rest);
                let answer = RateLimitQuotaResponse { bucket_action };
                if self.answers.send(Ok(answer)).await.is_err() {
                    return;
                }
            }
            let wakes_at = match buckets.is_empty() {
                // No assignment is due, and none is reserved.
                true => Time::MAX,
                false => now + WAKES_EVERY,
            };
            let pauses = reads_at > now;
            let next_at = match pauses {
                true => wakes_at.min(reads_at),
                false => wakes_at,
            };
            tokio::select! {
                report = timed(reports.message(), clock, &mut took), if !pauses => match report {
                    Ok(Some(report)) => self.handle(buckets, report),
                    Ok(None) | Err(_) => return,
                },
                () = buckets.changed() => {}
                () = clock.sleep_until(next_at) => {}
                () = self.edge.stopping.cancelled() => return,
            }
        }
    }
}

/// Adds the time of a future's work.
async fn timed<T>(work: impl Future<Output = T>, clock: Clock, took: &mut Duration) -> T {
    let mut work = pin!(work);
    let done = poll_fn(|cx| {
        let began = clock.now();
        let polled = work.as_mut().poll(cx);
        *took += clock.now().since(began);
        polled
    });
    done.await
}
