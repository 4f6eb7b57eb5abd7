//! The HTTP port: pages for people, `/status` for programs, `/metrics`, `/healthz`.
//!
//! | path | answers |
//! | --- | --- |
//! | `/?token=T` | the page of resources, a part of them if there are many |
//! | `/resource?id=ID` | the page of one resource, with its leases and the reason for each |
//! | `/limits` | the page with every limit: its use, its bound, and its refusals |
//! | `/status?id=ID&limit=N&token=T&leases=N&limits=true&resources=false` | [`crate::status::Status`] as JSON: of one resource, or a page of up to `limit` after `token`, with up to `leases` leases each, and limits on request |
//! | `/metrics` | Prometheus, in the requested [format](crate::metrics::format) |
//! | `/json`, `/v1/…` | on an agent: [decisions by rules](doorward_edge::http) |
//! | `/healthz` | 200 as long as the process lives |
//! | `/readyz` | 200 if the server is [ready](crate::status::readiness), else 503 and the reason |
//!
//! Everything else is read-only, and pages load nothing from elsewhere. Pages are made on a thread of their own
//! ([`ServerState::look`]), never by a worker that serves calls.

mod origin;
pub mod pages;

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use doorward_door::paths::Paths;
use doorward_edge::edge::Edge;
use doorward_engine::id::ResourceId;
use doorward_session::visible;
use serde::Deserialize;
use tracing::error;

use crate::metrics::Metrics;
use crate::metrics::format::Format;
use crate::status::readiness::Readiness;
use crate::status::{self, GetStatusRequest, RESOURCES_DEFAULT, ServerState, Status};
use crate::yielding::{self, YieldingWriter};

/// Largest number of leases on the page of a resource.
pub const LEASES_SHOWN: usize = 1_000;

/// Largest number of resources on the front page.
pub const RESOURCES_SHOWN: u32 = 2_000;

/// Frequent, cheap requests.
pub const PATHS: Paths = Paths {
    vital: &["/healthz", "/readyz"],
    looks: &[],
    with_one_message: &["/json", "/v1/check", "/v1/charge", "/v1/lease"],
    large: &[],
    silent: &[],
    open: &["/healthz", "/readyz"],
    of_all: &[],
    of_servers: &[],
    only: &[],
};

#[derive(Clone, Debug)]
struct Site {
    state: Arc<ServerState>,
    metrics: Arc<Metrics>,
}

/// Returns the pages of a server, and the answers of an agent.
pub fn router(state: Arc<ServerState>, metrics: Arc<Metrics>, edge: Option<Arc<Edge>>) -> Router {
    let pages = Router::new()
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
        .with_state(Site {
            state: Arc::clone(&state),
            metrics,
        });
    let pages = match edge {
        Some(edge) => pages.merge(doorward_edge::http::router(edge)),
        None => pages,
    };
    pages.layer(middleware::from_fn_with_state(state, origin::check))
}

/// Query of a page: where a list goes on, or the id of a resource.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    token: String,
    id: String,
}

async fn index(
    State(site): State<Site>,
    Query(query): Query<PageQuery>,
) -> Result<Response, BadRequest> {
    let request = GetStatusRequest {
        limit: RESOURCES_SHOWN,
        limits: true,
        token: query.token,
        ..GetStatusRequest::default()
    };
    let asked = status::Query::of(&request).map_err(BadRequest)?;
    let is_first = request.token.is_empty();
    let look = move |state: &ServerState| page(&pages::Index::new(&state.answer(&asked), is_first));
    Ok(site.state.look(look).await)
}

async fn limits(State(site): State<Site>) -> Response {
    let asked = status::Query {
        limits: true,
        ..status::Query::default()
    };
    let look = move |state: &ServerState| page(&pages::LimitsPage::new(&state.answer(&asked)));
    site.state.look(look).await
}

async fn resource(
    State(site): State<Site>,
    Query(query): Query<PageQuery>,
) -> Result<Response, BadRequest> {
    let bad = |problem| {
        BadRequest(format!(
            "the id {problem} (example: /resource?id=db/orders)"
        ))
    };
    let id = ResourceId::new(&query.id).map_err(bad)?;
    let look = move |state: &ServerState| {
        let status = state.status(Some(&id), LEASES_SHOWN);
        match status.resources.first() {
            Some(resource) => page(&pages::ResourcePage::new(&status, resource)),
            None => {
                let missing = page(&pages::Missing::new(&status, id.as_str()));
                (StatusCode::NOT_FOUND, missing).into_response()
            }
        }
    };
    Ok(site.state.look(look).await)
}

/// Query of `/status`. Without a limit, the page has the usual size.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusQuery {
    id: String,
    limit: Option<u32>,
    token: String,
    holder: String,
    leases: u32,
    limits: bool,
    templates: bool,
    resources: Option<bool>,
}

async fn status(
    State(site): State<Site>,
    Query(query): Query<StatusQuery>,
) -> Result<Response, BadRequest> {
    let asked = status::Query::of(&GetStatusRequest {
        resource_id: query.id,
        leases_max: query.leases,
        limits: query.limits,
        templates: query.templates,
        without_resources: query.resources == Some(false),
        limit: query.limit.unwrap_or(RESOURCES_DEFAULT),
        token: query.token,
        holder: query.holder,
    });
    let asked = asked.map_err(BadRequest)?;
    Ok(site
        .state
        .look(move |state| json(&state.answer(&asked)))
        .await)
}

fn json(status: &Status) -> Response {
    let mut written = YieldingWriter::<Vec<u8>>::default();
    let rendered = serde_json::to_writer(&mut written, status);
    // The writer only writes UTF-8.
    let json = rendered.map(|()| String::from_utf8(written.into_inner()));
    match json {
        Ok(Ok(json)) => {
            let mut json = yielding::visible(json, visible::json);
            json.push('\n');
            ([(header::CONTENT_TYPE, "application/json")], json).into_response()
        }
        problem => {
            error!(?problem, "the status cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Problem of an invalid query.
struct BadRequest(String);

impl IntoResponse for BadRequest {
    fn into_response(self) -> Response {
        let problem = format!("{}\n", visible::line(&self.0));
        (StatusCode::BAD_REQUEST, problem).into_response()
    }
}

async fn metrics_text(State(site): State<Site>, headers: HeaderMap) -> Response {
    let accept = headers.get_all(header::ACCEPT).iter();
    let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted_by(Some(&accept.join(",")));
    let metrics = Arc::clone(&site.metrics);
    match site.state.look(move |_| metrics.render(format)).await {
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
    match site.state.readiness() {
        Readiness::Ready => match site.state.refused_rules() {
            None => "ready\n".into_response(),
            Some(why) => {
                let why = visible::line(&why);
                format!("ready; rules are refused: {why}\n").into_response()
            }
        },
        Readiness::Unready(why) => {
            let why = format!("{}\n", visible::line(&why));
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

/// Returns a page that loads nothing, runs nothing, and cannot be framed.
fn page(template: &impl Template) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    const HEADERS: [(HeaderName, &str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    let mut written = YieldingWriter::<String>::default();
    match template.render_into(&mut written) {
        Ok(()) => {
            // All texts of the page, whatever their source: names, descriptions, problems.
            let html = yielding::visible(written.into_inner(), visible::lines);
            (HEADERS, Html(html)).into_response()
        }
        Err(problem) => {
            error!(%problem, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
#[path = "web/hostile_tests.rs"]
mod hostile_tests;
