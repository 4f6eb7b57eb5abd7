//! Defence against pages of other sites in a browser that reaches this server.
//!
//! A site can let its name point at this server's address (DNS rebinding), and then read the pages as if they were its
//! own. So the Host of a request must be an address or a name of this server. And a request that another site makes
//! changes nothing.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use doorward_door::caller_id::CallerId;

use crate::status::ServerState;
use crate::web::PATHS;

/// Refuses requests of other sites.
pub(super) async fn check(
    State(state): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response {
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        // Another program on the way may go by the other one (RFC 9112, section 3.2).
        return (StatusCode::BAD_REQUEST, "give one Host header\n").into_response();
    }
    let is_probe = PATHS.vital.contains(&request.uri().path());
    // No browser reaches a Unix socket.
    let is_local = request.extensions().get() == Some(&CallerId::UNIX);
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    // A browser tells the origin of a request that changes something.
    let is_of_browser = only_reads || request.headers().contains_key(header::ORIGIN);
    if is_of_browser && !is_probe && !is_local && !is_own_host(&state, request.headers()) {
        let problem = "this server does not know that it has this name; give it by --http-host\n";
        return (StatusCode::MISDIRECTED_REQUEST, problem).into_response();
    }
    if !only_reads && is_of_other_site(request.headers()) {
        let problem = "a page of another site may not do this\n";
        return (StatusCode::FORBIDDEN, problem).into_response();
    }
    next.run(request).await
}

/// Returns whether a request is for this machine by its own name, and of a page from there, if it is of any.
pub(super) fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let text = |name| {
        let value = headers.get(name);
        value.map(|value| value.to_str().unwrap_or_default())
    };
    let Some(host) = text(header::HOST) else {
        return true;
    };
    let of_page = text(header::ORIGIN).map(|origin| origin.split_once("://").map(|(_, it)| it));
    let name = without_port(host).trim_matches(['[', ']']);
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (is_loopback || name.eq_ignore_ascii_case("localhost"))
        && of_page.is_none_or(|it| it == Some(host))
}

fn is_own_host(state: &ServerState, headers: &HeaderMap) -> bool {
    // A program without a Host is no browser.
    let Some(host) = headers.get(header::HOST) else {
        return true;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let (host, security) = (without_port(host), state.security.get());
    host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || host.eq_ignore_ascii_case(without_port(state.address()))
        || security.is_some_and(|security| security.has_http_host(host))
}

/// Returns the host without a port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => host,
    }
}

fn is_of_other_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}
