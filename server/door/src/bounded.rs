//! A layer that bounds the calls of one method that are in progress.
//!
//! After an outage all clients return at once. A late answer is wasted work: its client has given up, and asks again.
//! So the server [refuses](overload::busy) calls of the method at once while too many are in progress.
//!
//! A call is in progress once its message has arrived ([`RequestBody`] sees to that), so a client that opens calls and
//! sends nothing keeps no other client away.

use std::sync::Arc;

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::calls::CallService;
use crate::limit::Limit;
use crate::overload;
use crate::request_body::RequestBody;

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
            match counted {
                Ok((answer, _permit)) => answer.await,
                Err(status) => status.into_http(),
            }
        }
    }
}
