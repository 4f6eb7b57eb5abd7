//! A request as overload control sees it: its operation, user, criticality and timeout; and the report of its cost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Extensions, HeaderMap, Request};

use crate::layer::overload::Overload;
use crate::layer::request::{Login, is_grpc, peer};
use crate::overload::criticality::HEADER;
use crate::overload::{Ask, Criticality};

/// Milliseconds that Envoy waits for the answer to a request.
const ENVOY_TIMEOUT: &str = "x-envoy-expected-rq-timeout-ms";

/// A request.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverloadCall<'a> {
    /// Name of the operation, and of its class if it has classes. Like requests have the same name.
    pub operation: &'a str,
    /// Name of the user. Requests of one user are served or refused together, for a minute at a time.
    pub user: Option<&'a str>,
    /// Tier.
    pub criticality: Criticality,
    /// Time after which the answer is useless. Without it, the request waits for at most a second.
    pub timeout: Option<Duration>,
}

/// Report of what a request cost. A handler finds it in the extensions of the request, and reports before it answers: a
/// report during the body of the answer is too late. Without a report, a request costs the milliseconds that it takes.
#[derive(Clone, Debug)]
pub struct Cost(Arc<AtomicU64>);

impl Cost {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(f64::NAN.to_bits())))
    }

    /// Sets the cost, in any unit; all requests of a service have the same one.
    pub fn set(&self, units: f64) {
        self.0.store(units.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<f64> {
        let units = f64::from_bits(self.0.load(Ordering::Relaxed));
        (units.is_finite() && units >= 0.0).then_some(units)
    }
}

impl Overload {
    /// Reads the head of a request that has come now.
    pub(crate) fn read(&self, request: &Request<()>) -> Ask {
        let criticality = request.headers().get(HEADER);
        let criticality = criticality.map(|name| Criticality::parse(name.as_bytes()));
        self.ask(&OverloadCall {
            operation: &operation(request),
            user: user(request.extensions()).as_deref(),
            criticality: criticality.unwrap_or_default(),
            timeout: timeout(request.headers()),
        })
    }
}

/// Returns the method, and the path as it was matched by axum; the path of gRPC is that of its method.
fn operation(request: &Request<()>) -> String {
    let (method, path) = (request.method(), request.uri().path());
    if is_grpc(request.headers()) {
        return path.to_owned();
    }
    #[cfg(feature = "axum")]
    if let Some(path) = request.extensions().get::<axum::extract::MatchedPath>() {
        return format!("{method} {}", path.as_str());
    }
    format!("{method} {path}")
}

/// Returns the user that a layer found, or else the caller's address.
fn user(extensions: &Extensions) -> Option<String> {
    let login = extensions.get::<Login>().map(|login| login.0.clone());
    login.or_else(|| peer(extensions).map(|peer: SocketAddr| peer.ip().to_string()))
}

/// Returns the time for which the caller waits, if it says so: by `grpc-timeout`, or through Envoy.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let envoy = || Some(Duration::from_millis(text(ENVOY_TIMEOUT)?.parse().ok()?));
    text("grpc-timeout").and_then(grpc_timeout).or_else(envoy)
}

/// Parses a timeout: up to eight digits and a unit. Source: the gRPC protocol over HTTP/2.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(count * 3_600),
        'M' => Duration::from_secs(count * 60),
        'S' => Duration::from_secs(count),
        'm' => Duration::from_millis(count),
        'u' => Duration::from_micros(count),
        'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_grpc() {
        let millis = |count| Some(Duration::from_millis(count));
        for (text, expected) in [
            ("250m", millis(250)),
            ("2S", millis(2_000)),
            ("1M", millis(60_000)),
            ("1H", millis(3_600_000)),
            ("5000u", millis(5)),
            ("7000000n", millis(7)),
            ("99999999m", millis(99_999_999)),
            ("100000000m", None),
            ("m", None),
            ("", None),
            ("-1S", None),
            ("1s", None),
            ("1é", None),
        ] {
            assert_eq!(grpc_timeout(text), expected, "{text:?}");
        }
    }
}
