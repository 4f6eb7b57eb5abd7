//! The interceptor of one tonic service. It cannot wait, so a request that would wait is refused with the time to come
//! back.

use doorward_rules::Advice;
use http::{Method, Uri};
use tonic::service::Interceptor;
use tonic::{GrpcMethod, Request, Status};

use crate::limits::Limits;
use crate::request::{Degraded, with_request};

/// An interceptor that limits the calls of a tonic service by rules. Its rules see metadata, the address of the caller
/// and, if tonic tells it, the method; a [`RulesLayer`](crate::RulesLayer) always sees the method and can wait.
#[derive(Clone)]
pub struct RulesInterceptor {
    limits: Limits,
}

impl RulesInterceptor {
    /// Creates an interceptor of these limits.
    pub const fn new(limits: Limits) -> Self {
        Self { limits }
    }
}

impl Interceptor for RulesInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let limits = &self.limits.inner;
        let method = request.extensions().get::<GrpcMethod<'static>>();
        let path = method.map(|it| format!("/{}/{}", it.service(), it.method()));
        let uri = path
            .and_then(|path| Uri::try_from(path).ok())
            .unwrap_or_default();
        let headers = request.metadata().clone().into_headers();
        let decision = with_request(&Method::POST, &uri, &headers, request.extensions(), |it| {
            limits.decide(it)
        });
        if !decision.is_allowed || matches!(decision.advice, Advice::ProceedAfter(_)) {
            return Err(limits.refuse_grpc(&decision));
        }
        if decision.advice == Advice::Degrade {
            request.extensions_mut().insert(Degraded);
        }
        Ok(request)
    }
}
