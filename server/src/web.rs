//! The HTTP port: the status page for people, `/status` for programs, `/metrics`, `/healthz`.
//!
//! | path | answers |
//! | --- | --- |
//! | `/` | the page with every resource |
//! | `/resource?id=ID` | the page of one resource, with its leases and why each is what it is |
//! | `/limits` | the page with every limit: its use, its bound, and how often it refused something |
//! | `/status?leases=N&id=ID&limits=true` | [`crate::status::Status`] as JSON, with up to N leases a resource, and limits if they are asked for |
//! | `/metrics` | Prometheus |
//! | `/healthz` | 200 as long as the process lives |
//! | `/readyz` | 200 if the server is [ready](crate::status::readiness), else 503 and why |
//!
//! Everything is read-only, and nothing is loaded from elsewhere.

pub mod figures;
pub mod pages;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use doorward_engine::id::ResourceId;
use doorward_session::visible;
use serde::Deserialize;
use tracing::error;

use crate::metrics::{self, Metrics};
use crate::status::Board;
use crate::status::readiness::Readiness;

/// Leases shown on the page of a resource.
pub const LEASES_SHOWN: usize = 1_000;

/// Resources shown on the front page.
pub const RESOURCES_SHOWN: usize = 2_000;

#[derive(Clone, Debug)]
struct Site {
    board: Arc<Board>,
    metrics: Arc<Metrics>,
}

/// The pages of a server.
pub fn router(board: Arc<Board>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/resource", get(resource))
        .route("/limits", get(limits))
        .route("/status", get(status))
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "no such page; the pages start at /\n",
            )
        })
        .with_state(Site { board, metrics })
}

async fn index(State(site): State<Site>) -> Response {
    let status = site.board.status(None, 0);
    let limits = site.board.limit_figures();
    page(&pages::Index::new(&status, &limits, RESOURCES_SHOWN))
}

async fn limits(State(site): State<Site>) -> Response {
    let status = site.board.status_without_resources();
    let limits = site.board.limit_figures();
    page(&pages::limits::Limits::new(&status, &limits))
}

#[derive(Debug, Deserialize)]
struct ResourceQuery {
    id: String,
}

async fn resource(State(site): State<Site>, Query(query): Query<ResourceQuery>) -> Response {
    let Ok(id) = ResourceId::new(&query.id) else {
        return (StatusCode::BAD_REQUEST, "id is no resource id\n").into_response();
    };
    let status = site.board.status(Some(&id), LEASES_SHOWN);
    match status.resources.first() {
        Some(resource) => page(&pages::Resource::new(&status, resource)),
        None => {
            let missing = page(&pages::Missing::new(&status, id.as_str()));
            (StatusCode::NOT_FOUND, missing).into_response()
        }
    }
}

#[derive(Debug, Deserialize)]
struct StatusQuery {
    #[serde(default)]
    leases: usize,
    id: Option<String>,
    #[serde(default)]
    limits: bool,
}

async fn status(State(site): State<Site>, Query(query): Query<StatusQuery>) -> Response {
    let only = match query.id.as_deref().map(ResourceId::new).transpose() {
        Ok(only) => only,
        Err(error) => {
            let problem = format!("id {}\n", visible::line(&error.to_string()));
            return (StatusCode::BAD_REQUEST, problem).into_response();
        }
    };
    let mut status = site.board.status(only.as_ref(), query.leases);
    if query.limits {
        status = status.with_limits(&site.board);
    }
    match serde_json::to_string(&status) {
        Ok(json) => {
            let json = visible::json(&json).into_owned();
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Err(problem) => {
            error!(%problem, "the status cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn metrics_text(State(site): State<Site>) -> Response {
    match site.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => {
            error!("metrics cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(site): State<Site>) -> Response {
    match site.board.readiness() {
        Readiness::Ready => "ready\n".into_response(),
        Readiness::Unready(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", visible::line(&why)),
        )
            .into_response(),
    }
}

/// A page, which may load nothing, run nothing and be framed by nobody.
fn page(template: &impl Template) -> Response {
    const HEADERS: [(HeaderName, HeaderValue); 4] = [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            ),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    match template.render() {
        // Whatever text it is of: names, descriptions, problems.
        Ok(html) => (HEADERS, Html(visible::lines(&html).into_owned())).into_response(),
        Err(problem) => {
            error!(%problem, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
#[path = "web/hostile_tests.rs"]
mod hostile_tests;
