//! A layer that bounds the calls of one method that are in progress.
//!
//! After an outage all clients return at once. A late answer is wasted work: its client has given up, and asks again.
//! So the server [refuses](overload::busy) calls of the method at once while too many are in progress.
//!
//! A call is in progress once its message has arrived ([`RequestBody`] sees to that), so a client that opens calls and
//! sends nothing keeps no other client away. A call that waits counts only for a short time, because it costs the
//! machine nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::calls::CallService;
use crate::limit::Limit;
use crate::overload;
use crate::request_body::RequestBody;

/// Longest time for which a waiting call counts.
const COUNTS_MAX: Duration = Duration::from_secs(2);

/// A call in progress.
#[derive(Debug)]
struct CallPermit(Arc<Limit>);

impl CallPermit {
    /// Counts a call until the permit is dropped. None: too many are in progress.
    fn take(calls: &Arc<Limit>) -> Option<Self> {
        calls.take(1).then(|| Self(Arc::clone(calls)))
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}

/// Services with a limit on calls in progress.
#[derive(Debug)]
pub struct Bounded<S> {
    services: S,
    path: &'static str,
    calls: Arc<Limit>,
}

impl<S> Bounded<S> {
    /// Counts the calls of `path` in `calls`.
    pub fn new(services: S, path: &'static str, calls: Arc<Limit>) -> Self {
        calls.take_up();
        Self {
            services,
            path,
            calls,
        }
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
        let counts = (request.uri().path() == self.path).then(|| {
            CallPermit::take(&self.calls).ok_or_else(|| {
                let number = request.body().door().refuse(&self.calls);
                overload::busy(self.calls.max(), number)
            })
        });
        let counts = counts.transpose();
        let counted = counts.map(|counts| (self.services.answer(request), counts));
        async move {
            let (answer, permit) = match counted {
                Ok(counted) => counted,
                Err(status) => return status.into_http(),
            };
            // Most calls never wait, and need no timer.
            let mut counts = permit.map(|permit| (permit, None));
            let mut answer = pin!(answer);
            poll_fn(|cx| {
                let answer = answer.as_mut().poll(cx);
                if let (true, Some((_, over))) = (answer.is_pending(), &mut counts) {
                    let over = over.get_or_insert_with(|| Box::pin(sleep(COUNTS_MAX)));
                    if over.as_mut().poll(cx).is_ready() {
                        counts = None;
                    }
                }
                answer
            })
            .await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::caller_id::CallerId;
    use crate::door::Door;
    use crate::door_limits::testing::limits;
    use crate::limit::LimitTexts;
    use crate::paths::Paths;

    const METHOD: &str = "/service/method";

    /// A service that never answers.
    struct Waits;

    impl CallService<Body> for Waits {
        async fn answer(&self, _: Request<RequestBody<Body>>) -> Response<Body> {
            std::future::pending().await
        }
    }

    /// Returns a call with an empty body.
    fn nothing() -> RequestBody<Body> {
        let looking = Arc::new(Semaphore::new(1));
        let door = Door::new(limits(1, 1), Paths::default(), looking);
        let connection = door.admit(CallerId::of(Ipv4Addr::LOCALHOST.into()), None);
        RequestBody::new(Body::empty(), door, connection.unwrap(), false)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_for_long_does_not_keep_others_away() {
        let calls = Arc::new(Limit::new(LimitTexts::default()));
        calls.set_max(1);
        let service = Bounded::new(Waits, METHOD, Arc::clone(&calls));
        let request = Request::builder().uri(METHOD).body(nothing()).unwrap();
        let waiting = tokio::spawn(async move { service.answer(request).await });
        // The paused clock advances by itself while all tasks are idle.
        tokio::time::sleep(COUNTS_MAX / 2).await;
        assert!(CallPermit::take(&calls).is_none(), "it counts");
        tokio::time::sleep(COUNTS_MAX).await;
        assert!(CallPermit::take(&calls).is_some(), "it counts no more");
        waiting.abort();
    }
}
