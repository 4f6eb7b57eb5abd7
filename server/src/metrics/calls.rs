//! Number and duration of answered calls.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tonic::Code;

use crate::methods::ALL;
use crate::metrics::families::Labels;

/// Answered calls by method and code.
#[derive(Debug)]
pub(super) struct CallMetrics {
    calls: Family<Labels<'static, 2>, Counter>,
    seconds: Family<Labels<'static, 1>, Histogram>,
    /// Handles for the code OK, which nearly all calls have. They save a look-up for each call.
    of_ok: [OnceLock<(Counter, Histogram)>; ALL.len() + 1],
}

impl CallMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let calls = Family::<Labels<'static, 2>, Counter>::default();
        let seconds = Family::<Labels<'static, 1>, Histogram>::new_with_constructor(|| {
            // 32 µs to 1 s, in steps of 2.
            Histogram::new(exponential_buckets(0.000_032, 2.0, 16))
        });
        registry.register("rpcs", "Calls answered, by method and code", calls.clone());
        let help = "How long calls took in the server";
        registry.register("rpc_duration_seconds", help, seconds.clone());
        Self {
            calls,
            seconds,
            of_ok: Default::default(),
        }
    }

    /// Notes an answered call of one of all [methods](ALL), or of any other one.
    pub(super) fn observe(&self, method: Option<usize>, code: Code, took: Duration) {
        let took = took.as_secs_f64();
        let of_ok = self.of_ok.get(method.unwrap_or(ALL.len()));
        let of_others = OnceLock::new();
        let handles = of_ok.filter(|_| code == Code::Ok).unwrap_or(&of_others);
        let (calls, seconds) = handles.get_or_init(|| self.of(method, code));
        calls.inc();
        seconds.observe(took);
    }

    fn of(&self, method: Option<usize>, code: Code) -> (Counter, Histogram) {
        let path = method.and_then(|method| ALL.get(method));
        let method = path.map_or("other", |path| path.trim_start_matches('/'));
        let labels = [("method", method), ("code", code_name(code))];
        let calls = self.calls.get_or_create(&labels);
        let seconds = self.seconds.get_or_create(&[("method", method)]);
        (calls.clone(), seconds.clone())
    }
}

/// Returns the code as gRPC's documentation spells it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
