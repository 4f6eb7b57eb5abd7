//! Plain HTTP: any program with a client for it can limit its callers, or itself.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /json` | the decision about a `RateLimitRequest`, as envoyproxy/ratelimit gives it: 200, or 429 |
//! | `POST /v1/check` | the decision about a request, with its reason: 200, 429, or 503 without a lease |
//! | `POST /v1/charge` | 204: counts units that were used in fact, or gives them back |
//! | `POST /v1/lease` | a lease, for a program that throttles itself |
//! | `DELETE /v1/lease` | 204: releases the lease |
//! | `POST /v1/reserve` | amounts of budgets, all or none, under a key: 200, or 429 |
//! | `POST /v1/settle` | what a reservation used |
//! | `POST /v1/refund` | gives all of a reservation back |
//!
//! An error is a [`problem`]. Bodies of `/v1` have the type `application/json`, which no page of another site
//! can send; `/json` takes any type, and refuses pages by their `Origin`. Shared limits are divided fairly among
//! callers: a caller is `client` of the body, or else of the header `x-doorward-client`, or else an address.

mod budget;
mod check;
mod envoy;
mod lease;
mod peer;
mod problem;

pub use problem::BODY_BYTES_MAX;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;

use crate::edge::Edge;
use crate::rls::NOT_LOADED;

/// Returns the doors of an edge. The address of a caller is the `CallerId` that a door sets, or else axum's
/// `ConnectInfo<SocketAddr>`.
pub fn router(edge: Arc<Edge>) -> Router {
    Router::new()
        .route("/json", post(envoy::answer))
        .route("/v1/check", post(check::check))
        .route("/v1/charge", post(check::charge))
        .route("/v1/lease", post(lease::lease).delete(lease::release))
        .route("/v1/reserve", post(budget::reserve))
        .route("/v1/settle", post(budget::settle))
        .route("/v1/refund", post(budget::refund))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&edge),
            when_loaded,
        ))
        .with_state(edge)
}

/// Passes requests on as soon as rules have been read.
async fn when_loaded(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    match edge.is_loaded() {
        true => next.run(request).await,
        false => (StatusCode::SERVICE_UNAVAILABLE, NOT_LOADED).into_response(),
    }
}
