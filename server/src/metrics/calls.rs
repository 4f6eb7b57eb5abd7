//! Number and duration of answered calls.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tonic::Code;

/// Paths of the methods that are counted by name.
const METHODS: [&str; 18] = [
    "/doorman.Capacity/GetCapacity",
    "/doorman.Capacity/GetServerCapacity",
    "/doorman.Capacity/Discovery",
    "/doorman.Capacity/ReleaseCapacity",
    "/doorward.v1.CapacityStream/StreamServerCapacity",
    "/doorward.admin.v1.Admin/GetStatus",
    "/doorward.admin.v1.Rules/List",
    "/doorward.admin.v1.Rules/Get",
    "/doorward.admin.v1.Rules/Check",
    "/doorward.admin.v1.Rules/Apply",
    "/doorward.admin.v1.Rules/Delete",
    "/doorward.admin.v1.Rules/History",
    "/doorward.admin.v1.Rules/Watch",
    "/doorward.admin.v1.Rules/ListInstances",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// A method as it is counted: a known one, or any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Position in [`METHODS`], or beyond its end.
    place: usize,
}

impl Method {
    /// Returns the method of a path.
    pub fn of(path: &str) -> Self {
        let place = METHODS.iter().position(|method| *method == path);
        Self {
            place: place.unwrap_or(METHODS.len()),
        }
    }

    /// Returns whether the method exists.
    pub fn is_known(self) -> bool {
        self.place < METHODS.len()
    }

    /// Returns its name in labels.
    pub fn name(self) -> &'static str {
        let path = METHODS.get(self.place);
        path.map_or("other", |path| path.trim_start_matches('/'))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

/// Answered calls by method and code.
#[derive(Debug)]
pub(super) struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    seconds: Family<MethodLabels, Histogram>,
    /// Handles for the code OK, which nearly all calls have. They save a look-up for each call.
    of_ok: [OnceLock<(Counter, Histogram)>; METHODS.len() + 1],
}

impl CallMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let calls = Family::<CallLabels, Counter>::default();
        let seconds = Family::<MethodLabels, Histogram>::new_with_constructor(|| {
            // 32 µs to 1 s, in steps of 2.
            Histogram::new(exponential_buckets(0.000_032, 2.0, 16))
        });
        registry.register("rpcs", "Calls answered, by method and code", calls.clone());
        registry.register(
            "rpc_duration_seconds",
            "How long calls took in the server",
            seconds.clone(),
        );
        Self {
            calls,
            seconds,
            of_ok: Default::default(),
        }
    }

    /// Notes an answered call.
    pub(super) fn observe(&self, method: Method, code: Code, took: Duration) {
        let took = took.as_secs_f64();
        match self.of_ok.get(method.place) {
            Some(of_ok) if code == Code::Ok => {
                let (calls, seconds) = of_ok.get_or_init(|| self.of(method, code));
                calls.inc();
                seconds.observe(took);
            }
            _ => {
                let (calls, seconds) = self.of(method, code);
                calls.inc();
                seconds.observe(took);
            }
        }
    }

    fn of(&self, method: Method, code: Code) -> (Counter, Histogram) {
        let (method, code) = (method.name(), code_name(code));
        let calls = self.calls.get_or_create(&CallLabels { method, code });
        let seconds = self.seconds.get_or_create(&MethodLabels { method });
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
