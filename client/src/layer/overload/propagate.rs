//! The criticality of a request goes on to the calls that are made on its behalf.

use std::future::Future;
use std::task::{Context, Poll};

use http::{HeaderName, HeaderValue, Request};
use tower_layer::Layer;
use tower_service::Service;

use crate::overload::Criticality;
use crate::overload::criticality::HEADER;

tokio::task_local! {
    static CRITICALITY: Criticality;
}

/// A layer of a client: it adds the criticality of the request that is being served to each call, unless the call has
/// one.
#[derive(Clone, Copy, Debug, Default)]
pub struct CriticalityLayer;

/// A client behind a [`CriticalityLayer`].
#[derive(Clone, Debug)]
pub struct CriticalityService<S>(S);

/// Returns the criticality of the request that this task serves.
pub fn criticality() -> Option<Criticality> {
    CRITICALITY.try_with(|tier| *tier).ok()
}

/// Runs a future on behalf of a request. A spawned task does not know the request that spawned it: wrap its future.
pub fn with_criticality<F: Future>(
    criticality: Criticality,
    future: F,
) -> impl Future<Output = F::Output> {
    CRITICALITY.scope(criticality, future)
}

impl<S> Layer<S> for CriticalityLayer {
    type Service = CriticalityService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CriticalityService(inner)
    }
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for CriticalityService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(tier) = criticality() {
            let name = HeaderName::from_static(HEADER);
            let value = HeaderValue::from_static(tier.name());
            request.headers_mut().entry(name).or_insert(value);
        }
        self.0.call(request)
    }
}
