//! The HTTP port: the status page for people, `/status` for programs, `/metrics`, `/healthz`.
//!
//! | path | answers |
//! | --- | --- |
//! | `/?token=T` | the page of resources, a part of them if there are many |
//! | `/resource?id=ID` | the page of one resource, with its leases and why each is what it is |
//! | `/limits` | the page with every limit: its use, its bound, and how often it refused something |
//! | `/status?id=ID&limit=N&token=T&leases=N&limits=true&resources=false` | [`crate::status::Status`] as JSON: of one resource, or a page of up to `limit` after `token`, with up to `leases` leases each, and limits if they are asked for |
//! | `/metrics` | Prometheus, in the [format](crate::metrics::format) that is asked for |
//! | `/healthz` | 200 as long as the process lives |
//! | `/readyz` | 200 if the server is [ready](crate::status::readiness), else 503 and why |
//!
//! Everything is read-only, and nothing is loaded from elsewhere.

pub mod pages;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use doorward_engine::id::ResourceId;
use doorward_session::visible;
use serde::Deserialize;
use tracing::error;

use crate::metrics::Metrics;
use crate::metrics::format::Format;
use crate::status::readiness::Readiness;
use crate::status::{self, Board, GetStatusRequest, Listed, RESOURCES_DEFAULT};

/// Leases shown on the page of a resource.
pub const LEASES_SHOWN: usize = 1_000;

/// Resources on one page of the front page.
pub const RESOURCES_SHOWN: u32 = 2_000;

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

#[derive(Debug, Deserialize)]
struct IndexQuery {
    #[serde(default)]
    token: String,
}

async fn index(State(site): State<Site>, Query(query): Query<IndexQuery>) -> Response {
    let request = GetStatusRequest {
        limit: RESOURCES_SHOWN,
        limits: true,
        token: query.token,
        ..GetStatusRequest::default()
    };
    match status::Query::of(&request) {
        Ok(asked) => page(&pages::Index::new(
            &site.board.answer(&asked),
            request.token.is_empty(),
        )),
        Err(problem) => bad_request(&problem),
    }
}

async fn limits(State(site): State<Site>) -> Response {
    let asked = status::Query {
        listed: Listed::Nothing,
        leases_max: 0,
        limits: true,
    };
    page(&pages::limits::Limits::new(&site.board.answer(&asked)))
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

/// What `/status` can be asked. Who names no limit gets a page of the usual size.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct StatusQuery {
    id: String,
    limit: u32,
    token: String,
    leases: u32,
    limits: bool,
    resources: bool,
}

impl Default for StatusQuery {
    fn default() -> Self {
        Self {
            id: String::new(),
            limit: RESOURCES_DEFAULT,
            token: String::new(),
            leases: 0,
            limits: false,
            resources: true,
        }
    }
}

async fn status(State(site): State<Site>, Query(query): Query<StatusQuery>) -> Response {
    let asked = status::Query::of(&GetStatusRequest {
        resource_id: query.id,
        leases_max: query.leases,
        limits: query.limits,
        without_resources: !query.resources,
        limit: query.limit,
        token: query.token,
    });
    let status = match asked {
        Ok(asked) => site.board.answer(&asked),
        Err(problem) => return bad_request(&problem),
    };
    match serde_json::to_string(&status) {
        Ok(json) => {
            let json = format!("{}\n", visible::json(&json));
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        Err(problem) => {
            error!(%problem, "the status cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn bad_request(problem: &str) -> Response {
    let problem = format!("{}\n", visible::line(problem));
    (StatusCode::BAD_REQUEST, problem).into_response()
}

async fn metrics_text(State(site): State<Site>, headers: HeaderMap) -> Response {
    let accept = headers.get_all(header::ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted_by(Some(&accept.join(",")));
    match site.metrics.render(format) {
        Ok(text) => {
            let head = [
                (header::CONTENT_TYPE, format.content_type()),
                (header::VARY, "accept"),
            ];
            (head, text).into_response()
        }
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
