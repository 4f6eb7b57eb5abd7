//! The limits of a tonic server that takes no layer.

use tonic::service::Interceptor;
use tonic::{Request, Status};

use crate::layer::limits::Limits;
use crate::layer::request::{Decided, degrade, read_head};

/// Limits as an interceptor of tonic: see [`Limits::interceptor`].
#[derive(Clone, Debug)]
pub struct RulesInterceptor {
    limits: Limits,
}

impl Limits {
    /// Returns an interceptor for a tonic server that takes no [layer](crate::layer::LimitLayer). It decides by metadata and
    /// by the address of the caller (feature `tonic`). Tonic tells an interceptor no method, so the path is empty.
    ///
    /// An interceptor cannot wait. A call that a rule would make wait is refused, with the time of the wait. A shared
    /// rule without a lease, such as that of a new key, answers by its `on_failure`. A call that a layer of the same
    /// limits has decided passes, so each call counts once.
    ///
    /// ```
    /// # fn run(limits: doorward::layer::Limits) {
    /// let (_reporter, health) = tonic_health::server::health_reporter();
    /// let limited = tonic::service::interceptor::InterceptedService::new(health, limits.interceptor());
    /// # drop(limited);
    /// # }
    /// ```
    pub fn interceptor(&self) -> RulesInterceptor {
        RulesInterceptor {
            limits: self.clone(),
        }
    }
}

impl Interceptor for RulesInterceptor {
    fn call(&mut self, mut call: Request<()>) -> Result<Request<()>, Status> {
        let limits = &*self.limits.inner;
        if Decided::is_marked(call.extensions_mut(), limits.number) {
            return Ok(call);
        }
        let headers = call.metadata().as_ref();
        let decision = read_head(headers, call.extensions(), ("POST", ""), |request| {
            limits.decide(request, false)
        });
        if !decision.is_allowed {
            return Err(limits.refuse_grpc(&decision));
        }
        degrade(decision.advice, call.extensions_mut());
        Ok(call)
    }
}
