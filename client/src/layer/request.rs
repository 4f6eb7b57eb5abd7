//! A request of a server as rules see it, and the marks that layers leave in its extensions.

use std::net::SocketAddr;

use http::{Extensions, HeaderMap};
use smallvec::SmallVec;

use crate::rules::{Advice, Request};

/// Name of the authenticated user. A layer that authenticates puts it into the extensions of a request, before the
/// rules decide: [`Part::Login`](crate::rules::Part::Login) reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login(pub String);

#[cfg(feature = "tls")]
impl Login {
    /// Returns the name in a client's certificate: its SPIFFE URI, else `dns:` and its first DNS name, else `cn:` and
    /// its common name. None: it has none of these, or several SPIFFE URIs. `der`: the certificate, as rustls returns it; tonic has it in
    /// [`Request::peer_certs`](https://docs.rs/tonic/latest/tonic/struct.Request.html#method.peer_certs). Parsing takes
    /// microseconds, so do it once for each connection.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let identity = doorward_tls::identity::Identity::of_certificate(der).ok()?;
        Some(Self(identity.to_string()))
    }
}

/// Mark of a request that is over a limit with `action: degrade`. A handler that finds it in the extensions serves
/// less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degraded;

/// Mark of a request: the numbers of the limits that have decided it.
#[derive(Clone, Default)]
pub(crate) struct Decided(SmallVec<[u64; 2]>);

impl Decided {
    /// Returns whether a request has the mark of these limits, and marks it.
    pub(crate) fn is_marked(extensions: &mut Extensions, number: u64) -> bool {
        let mark = extensions.get_or_insert_default::<Self>();
        let is_marked = mark.0.contains(&number);
        if !is_marked {
            mark.0.push(number);
        }
        is_marked
    }
}

/// Marks a request that is to be served less.
pub(crate) fn degrade(advice: Advice, extensions: &mut Extensions) {
    if advice == Advice::Degrade {
        extensions.insert(Degraded);
    }
}

/// Headers without an allocation.
const HEADERS: usize = 16;

/// Calls a function with the request as rules see it.
pub(crate) fn with_request<B, R>(
    request: &http::Request<B>,
    read: impl FnOnce(&Request<'_>) -> R,
) -> R {
    let target = (request.method().as_str(), request.uri().path());
    read_head(request.headers(), request.extensions(), target, read)
}

/// Does the same with the parts of a request; `target` is its method and path.
pub(crate) fn read_head<R>(
    headers: &HeaderMap,
    extensions: &Extensions,
    (method, path): (&str, &str),
    read: impl FnOnce(&Request<'_>) -> R,
) -> R {
    let lines = headers.iter();
    let lines = lines.map(|(name, value)| (name.as_str(), value.as_bytes()));
    let lines: SmallVec<[(&str, &[u8]); HEADERS]> = lines.collect();
    read(&Request {
        peer: peer(extensions).map(|address| address.ip()),
        method: method.as_bytes(),
        path: path.as_bytes(),
        headers: &lines,
        login: extensions.get::<Login>().map(|login| login.0.as_str()),
    })
}

/// Returns the address of the caller: a `SocketAddr` in the extensions, or what axum and tonic put there.
pub(crate) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    #[cfg(feature = "axum")]
    if let Some(info) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(info.0);
    }
    #[cfg(feature = "tonic")]
    if let Some(info) = extensions.get::<tonic::transport::server::TcpConnectInfo>() {
        return info.remote_addr();
    }
    extensions.get::<SocketAddr>().copied()
}

/// Returns whether the request is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
