//! Refusals of calls that the server has no capacity for, each with a retry delay.
//!
//! After an outage all clients return at once. A late answer is wasted work: its client has given up, and asks again.
//! So the server refuses `GetCapacity` at once while [`CALLS_MAX`] calls of it are in progress. It answers
//! `RESOURCE_EXHAUSTED` with a retry delay in milliseconds in the trailer [`PUSHBACK`] (gRFC A6). The delays are spread
//! evenly over [`PUSHBACK_SPREAD`], so that clients refused together do not return together.
//!
//! A call is in progress once its message has arrived ([`RequestBody`] sees to that), so a client that opens calls and
//! sends nothing keeps no other client away. A call that waits for the parent counts only for a short time, because it
//! costs the machine nothing. The server refuses no other calls: a release frees capacity, child servers ask for many
//! clients and are few, and an operator who looks for a problem must get an answer.

use std::future::{Future, poll_fn};
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::time::{millis, spread};
use tokio::time::Sleep;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::door::calls::CallService;
use crate::door::request_body::RequestBody;
use crate::limits::ServerLimit;
use crate::metrics::Metrics;
use crate::status::ServerState;

/// Method whose calls may be refused.
const METHOD: &str = "/doorman.Capacity/GetCapacity";

/// Default limit on calls in progress: more than a server that keeps up ever has.
pub const CALLS_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Longest time for which a waiting call counts.
const COUNTS_MAX: Duration = Duration::from_secs(2);

/// Trailer with the retry delay in milliseconds (gRFC A6).
pub const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Range of retry delays. It excludes the upper end.
pub const PUSHBACK_SPREAD: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Returns the retry delay of the `number`th refused call.
pub fn pushback(number: u64) -> Duration {
    spread::evenly(number, PUSHBACK_SPREAD)
}

/// Returns the answer to the `number`th call beyond a limit: a retry delay, and the flag that sets the limit.
pub fn exhausted(limit: ServerLimit, number: u64) -> RpcStatus {
    let after = pushback(number);
    let message = format!(
        "there are too many {}; try again in {after:.1?} ({})",
        limit.what(),
        limit.flag()
    );
    with_pushback(message, after)
}

/// Calls in progress, counted in the limits of the server.
#[derive(Debug)]
pub struct CallsInProgress {
    max: NonZeroUsize,
    metrics: Arc<Metrics>,
    state: Arc<ServerState>,
}

impl CallsInProgress {
    /// Allows at most `max` calls at once.
    pub fn new(max: NonZeroUsize, metrics: Arc<Metrics>, state: Arc<ServerState>) -> Arc<Self> {
        let limits = state.limits();
        limits.set_max(
            ServerLimit::Calls,
            u64::try_from(max.get()).unwrap_or(u64::MAX - 1),
        );
        limits.set_used(ServerLimit::Calls, 0);
        Arc::new(Self {
            max,
            metrics,
            state,
        })
    }

    /// Counts a call until the permit is dropped.
    ///
    /// # Errors
    ///
    /// The answer to the call, if too many are in progress.
    fn begin(self: &Arc<Self>) -> Result<CallPermit, RpcStatus> {
        let limits = self.state.limits();
        if limits.take(ServerLimit::Calls, 1) {
            return Ok(CallPermit(Arc::clone(self)));
        }
        let now = self.state.node().clock().now();
        limits.refuse(ServerLimit::Calls, now.since(Time::ZERO));
        Err(refusal(self.max.get(), self.metrics.count_call_refused()))
    }
}

/// A call in progress.
#[derive(Debug)]
pub struct CallPermit(Arc<CallsInProgress>);

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.state.limits().give_back(ServerLimit::Calls, 1);
    }
}

fn refusal(max: usize, number: u64) -> RpcStatus {
    let after = pushback(number);
    let message = format!("the server is busy with {max} calls; try again in {after:.1?}");
    with_pushback(message, after)
}

/// Returns the answer to the `number`th call that another limit refuses.
pub fn full(problem: String, number: u64) -> RpcStatus {
    with_pushback(problem, pushback(number))
}

/// Returns the last status of the `number`th answer that its client does not read.
pub fn unread(number: u64) -> RpcStatus {
    let after = pushback(number);
    let message =
        format!("this address does not read its answers; read them, and try again in {after:.1?}");
    with_pushback(message, after)
}

/// Returns the answer to the `number`th call whose message does not arrive in time.
pub fn late(patience: Duration, number: u64) -> RpcStatus {
    let message = format!("no complete message within {patience:?}");
    come_back(RpcStatus::deadline_exceeded(message), pushback(number))
}

fn with_pushback(message: String, after: Duration) -> RpcStatus {
    come_back(RpcStatus::resource_exhausted(message), after)
}

fn come_back(mut status: RpcStatus, after: Duration) -> RpcStatus {
    status.metadata_mut().insert(PUSHBACK, millis(after).into());
    status
}

/// Services with a limit on calls in progress.
#[derive(Debug)]
pub struct Bounded<S> {
    services: S,
    calls: Arc<CallsInProgress>,
}

impl<S> Bounded<S> {
    /// Counts the calls in `calls`.
    pub fn new(services: S, calls: Arc<CallsInProgress>) -> Self {
        Self { services, calls }
    }
}

impl<S, B> CallService<B> for Bounded<S>
where
    S: CallService<B>,
    B: Send + 'static,
{
    fn answer(
        &self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let counts = if request.uri().path() == METHOD {
            self.calls.begin().map(Counts::Still)
        } else {
            Ok(Counts::NoMore)
        };
        let counted = counts.map(|counts| (self.services.answer(request), counts));
        async move {
            let (answer, mut counts) = match counted {
                Ok(counted) => counted,
                Err(status) => return status.into_http(),
            };
            let mut answer = pin!(answer);
            poll_fn(|cx| {
                let answer = answer.as_mut().poll(cx);
                if answer.is_pending() {
                    counts.poll_over(cx);
                }
                answer
            })
            .await
        }
    }
}

/// State of a call: whether it counts as in progress.
#[derive(Debug)]
enum Counts {
    /// The call counts and has not waited yet. Most calls never wait, and need no timer.
    Still(CallPermit),
    /// The call waits, and counts until the timer ends.
    Until {
        _in_progress: CallPermit,
        over: Pin<Box<Sleep>>,
    },
    /// The call does not count, or no longer.
    NoMore,
}

impl Counts {
    /// Notes that the call waits, and polls its timer.
    fn poll_over(&mut self, cx: &mut Context<'_>) {
        *self = match std::mem::replace(self, Self::NoMore) {
            Self::Still(in_progress) => {
                let over = Box::pin(tokio::time::sleep(COUNTS_MAX));
                Self::Until {
                    _in_progress: in_progress,
                    over,
                }
            }
            counts => counts,
        };
        if let Self::Until { over, .. } = self
            && over.as_mut().poll(cx).is_ready()
        {
            *self = Self::NoMore;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;
    use crate::door::Door;
    use crate::door::request_body::Size;

    #[test]
    fn whoever_is_refused_comes_back_at_another_time_than_the_others() {
        let (least, most) = PUSHBACK_SPREAD;
        let mut tenths = [0; 10];
        for number in 0..1_000 {
            let after = pushback(number);
            assert!((least..most).contains(&after), "{after:?}");
            let part = (after - least).as_secs_f64() / (most - least).as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 9"
            )]
            let tenth = (part * 10.0) as usize;
            tenths[tenth] += 1;
        }
        assert!(
            tenths.iter().all(|count| (98..=102).contains(count)),
            "{tenths:?}"
        );
    }

    /// Allows one call at once.
    fn one_at_once() -> Arc<CallsInProgress> {
        let clock = crate::clock::Clock::start();
        let (config, templates) = (doorward_engine::node::Config::default(), Default::default());
        let node = crate::replica_handle::ReplicaHandle::new(config, templates, clock);
        let text = String::new;
        let state = Arc::new(ServerState::new(text(), text(), text(), Arc::new(node)));
        CallsInProgress::new(NonZeroUsize::MIN, Arc::new(Metrics::new(&state)), state)
    }

    /// A service that never answers.
    struct Waits;

    impl CallService<Body> for Waits {
        async fn answer(&self, _: Request<RequestBody<Body>>) -> Response<Body> {
            std::future::pending().await
        }
    }

    /// Returns a call with an empty body.
    fn nothing() -> RequestBody<Body> {
        let (config, limits) = Default::default();
        let door = Door::http(config, limits, Arc::new(Semaphore::new(1)));
        let connection = door.admit("127.0.0.1:1".parse().unwrap()).unwrap();
        let size = Size {
            max: 0,
            limit: ServerLimit::MessageBytes,
        };
        RequestBody::new(Body::empty(), door, connection, size)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_for_long_does_not_keep_others_away() {
        let calls = one_at_once();
        let service = Bounded::new(Waits, Arc::clone(&calls));
        let request = Request::builder().uri(METHOD).body(nothing()).unwrap();
        let waiting = tokio::spawn(async move { service.answer(request).await });
        // The paused clock advances by itself while all tasks are idle.
        tokio::time::sleep(COUNTS_MAX / 2).await;
        assert!(calls.begin().is_err(), "it counts");
        tokio::time::sleep(COUNTS_MAX).await;
        assert!(calls.begin().is_ok(), "it counts no more");
        waiting.abort();
    }
}
