//! The HTTP port: a page for people, `/status` for programs, `/metrics`, `/healthz`.
//!
//! | path | answers |
//! | --- | --- |
//! | `/`, `/resource?id=ID`, `/limits` | the page, which asks for the rest |
//! | `/page/…` | its script and style |
//! | `/status?id=ID&named=TEXT&limit=N&token=T&leases=N&limits=true&resources=false` | [`crate::status::Status`] as JSON: of one resource, or a page of up to `limit` after `token`, with up to `leases` leases each, and limits on request |
//! | `/live?…` | the same once a second, as server-sent events |
//! | `/tree?id=ID` | all servers of the tree, as `doorward tree --output json` prints them |
//! | `/history?id=ID` | [figures](crate::status::history) of ten minutes and a day |
//! | `/document?kind=templates`, `/document/plan`, `/document/apply` | [templates and rules](documents) as text, the plan of a change, and the change |
//! | `/metrics` | Prometheus, in the requested [format](crate::metrics::format) |
//! | `/json`, `/v1/…` | on an agent: [decisions by rules](doorward_edge::http) |
//! | `/healthz` | 200 as long as the process lives |
//! | `/readyz` | 200 if the server is [ready](crate::status::readiness), else 503 and the reason |
//!
//! Everything but `/document/apply` and `/v1/…` is read-only, and the page loads nothing from elsewhere. Answers are made on a thread of their own
//! ([`ServerState::look`]), never by a worker that serves calls.

mod documents;
mod origin;
mod others;
mod tree;
mod views;

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use bytes::Bytes;
use doorward_door::caller_id::CallerId;
use doorward_door::paths::Paths;
use doorward_edge::edge::Edge;
use doorward_engine::id::ResourceId;
use doorward_session::visible;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status as RpcStatus};
use tracing::error;

use crate::admin::rules_service::RulesService;
use crate::metrics::Metrics;
use crate::metrics::format::Format;
use crate::rules::store::RuleStore;
use crate::status::{self, GetStatusRequest, RESOURCES_DEFAULT, ServerState};
use crate::stored_place::StoredPlace;
use crate::web::others::Others;
use crate::web::views::{Made, Views};
use crate::yielding::{self, YieldingWriter};

/// The page and what it loads: path, type and text. A resource has a page of its own, as before.
const FILES: [(&str, &str, &str); 14] = [
    ("/", HTML, PAGE),
    ("/resource", HTML, PAGE),
    ("/limits", HTML, PAGE),
    ("/page/palette.css", CSS, doorward_pages::PALETTE),
    ("/page/base.css", CSS, doorward_pages::BASE),
    ("/page/page.css", CSS, include_str!("../page/page.css")),
    ("/page/page.js", SCRIPT, include_str!("../page/page.js")),
    ("/page/parts.js", SCRIPT, include_str!("../page/parts.js")),
    (
        "/page/resource.js",
        SCRIPT,
        include_str!("../page/resource.js"),
    ),
    ("/page/editor.js", SCRIPT, include_str!("../page/editor.js")),
    ("/page/tables.js", SCRIPT, include_str!("../page/tables.js")),
    ("/page/views.js", SCRIPT, include_str!("../page/views.js")),
    ("/page/uPlot.min.css", CSS, doorward_pages::UPLOT_STYLE),
    ("/page/uPlot.iife.min.js", SCRIPT, doorward_pages::UPLOT),
];

const PAGE: &str = include_str!("../page/page.html");
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Frequent, cheap requests.
pub const PATHS: Paths = Paths {
    vital: &["/healthz", "/readyz"],
    looks: &[],
    // A tree waits for other servers. It is made once a second, one at a time.
    with_one_message: &[
        "/",
        "/resource",
        "/limits",
        "/page/palette.css",
        "/page/base.css",
        "/page/page.css",
        "/page/page.js",
        "/page/parts.js",
        "/page/resource.js",
        "/page/editor.js",
        "/page/tables.js",
        "/page/views.js",
        "/page/uPlot.min.css",
        "/page/uPlot.iife.min.js",
        "/tree",
        "/document",
        "/document/plan",
        "/document/apply",
        "/json",
        "/v1/check",
        "/v1/charge",
        "/v1/lease",
        "/v1/reserve",
        "/v1/settle",
        "/v1/refund",
    ],
    large: &[],
    silent: &["/live"],
    open: &["/healthz", "/readyz"],
    of_all: &[],
    of_servers: &[],
    only: &[],
};

#[derive(Debug)]
struct Site {
    state: Arc<ServerState>,
    metrics: Arc<Metrics>,
    others: Arc<Others>,
    statuses: Arc<Views>,
    trees: Arc<Views>,
    /// Ends all streams.
    stop: CancellationToken,
    /// None: the templates cannot be changed here.
    templates: Option<StoredPlace>,
    rules: RulesService,
    /// One text is read, parsed or written at a time.
    turn: Arc<Mutex<()>>,
    /// One plan is made at a time.
    planning: Mutex<()>,
}

/// Parts that the HTTP port serves besides the page: decisions by rules, on an agent; and the templates and the rules
/// that operators may change.
pub type Served = (
    Option<Arc<Edge>>,
    Option<StoredPlace>,
    Option<Arc<RuleStore>>,
);

/// Returns the pages of a server, and the answers of an agent. `stop` ends streams of events.
pub fn router(
    state: Arc<ServerState>,
    metrics: Arc<Metrics>,
    (decisions, templates, rules): Served,
    stop: CancellationToken,
) -> Router {
    let others = Arc::new(Others::new(Arc::clone(&state)));
    let views = |made| Views::new(made, Arc::clone(&state), Arc::clone(&others));
    let site = Site {
        statuses: views(Made::Status),
        trees: views(Made::Tree),
        state: Arc::clone(&state),
        metrics,
        others,
        stop,
        templates,
        rules: RulesService::new(rules),
        turn: Arc::default(),
        planning: Mutex::default(),
    };
    let pages = FILES
        .into_iter()
        .fold(Router::new(), |pages, (path, kind, text)| {
            pages.route(path, get(move || async move { file(kind, text) }))
        });
    let pages = pages
        .route("/status", get(status))
        .route("/live", get(live))
        .route("/tree", get(tree))
        .route("/history", get(history))
        .route("/document", get(documents::show))
        .route("/document/plan", post(documents::plan))
        .route("/document/apply", post(documents::apply))
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(|| async {
            (
                StatusCode::NOT_FOUND,
                "no such page; the pages start at /\n",
            )
        })
        .with_state(Arc::new(site));
    let pages = match decisions {
        Some(edge) => pages.merge(doorward_edge::http::router(edge)),
        None => pages,
    };
    pages.layer(middleware::from_fn_with_state(state, origin::check))
}

/// Query of `/status`, and of the paths that need a part of it. Without a limit, the page has the usual size.
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
    named: String,
}

impl StatusQuery {
    fn request(self) -> GetStatusRequest {
        GetStatusRequest {
            resource_id: self.id,
            leases_max: self.leases,
            limits: self.limits,
            templates: self.templates,
            without_resources: self.resources == Some(false),
            limit: self.limit.unwrap_or(RESOURCES_DEFAULT),
            token: self.token,
            holder: self.holder,
            named: self.named,
        }
    }
}

fn asked(request: GetStatusRequest) -> Result<status::Query, Refused> {
    let asked = status::Query::of(request);
    asked.map_err(|problem| Refused(RpcStatus::invalid_argument(problem)))
}

async fn status(
    State(site): State<Arc<Site>>,
    Query(query): Query<StatusQuery>,
) -> Result<Response, Refused> {
    let asked = asked(query.request())?;
    let look = move |state: &ServerState| json(&state.answer(&asked));
    Ok(site.state.look(look).await)
}

async fn live(
    State(site): State<Arc<Site>>,
    Query(query): Query<StatusQuery>,
    caller: Option<Extension<CallerId>>,
) -> Result<Response, Refused> {
    let asked = asked(query.request())?;
    let answers = site.statuses.follow(asked, caller.map(|it| it.0))?;
    Ok(views::events(answers, site.stop.clone()))
}

async fn tree(
    State(site): State<Arc<Site>>,
    Query(query): Query<StatusQuery>,
    caller: Option<Extension<CallerId>>,
) -> Result<Response, Refused> {
    let asked = asked(tree::request(query.id))?;
    let mut trees = site.trees.follow(asked, caller.map(|it| it.0))?;
    let tree = trees.wait_for(|tree| !tree.is_empty()).await;
    let tree = tree.map_err(|_| RpcStatus::internal("there is no tree"))?;
    Ok(answer_of(tree.clone()))
}

async fn history(
    State(site): State<Arc<Site>>,
    Query(query): Query<StatusQuery>,
) -> Result<Response, Refused> {
    let bad = |problem| RpcStatus::invalid_argument(format!("the id {problem}"));
    let id = ResourceId::new(&query.id).map_err(bad)?;
    let chart = move |state: &ServerState| {
        let mut chart = state.history().chart(&id);
        chart.shadow = state.shadow.get().map(|it| it.news());
        json(&chart)
    };
    Ok(site.state.look(chart).await)
}

/// Returns a value as JSON in one line. Texts and numbers: none of them fails.
fn rendered(value: &impl Serialize) -> String {
    let mut written = YieldingWriter::default();
    if let Err(error) = serde_json::to_writer(&mut written, value) {
        error!(%error, "an answer cannot be written as JSON");
    }
    let json = written.into;
    // The writer only writes UTF-8.
    let json = String::from_utf8(json).unwrap_or_default();
    yielding::visible(&json, visible::json)
}

fn json(value: &impl Serialize) -> Response {
    answer_of((rendered(value) + "\n").into())
}

fn answer_of(json: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// A refusal, as text.
#[derive(Debug)]
struct Refused(RpcStatus);

impl From<RpcStatus> for Refused {
    fn from(status: RpcStatus) -> Self {
        Self(status)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let code = match self.0.code() {
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound | Code::Unimplemented => StatusCode::NOT_FOUND,
            Code::FailedPrecondition | Code::OutOfRange => StatusCode::UNPROCESSABLE_ENTITY,
            Code::Aborted => StatusCode::CONFLICT,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let text = format!("{}\n", visible::lines(self.0.message()));
        (code, text).into_response()
    }
}

async fn metrics_text(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
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

async fn ready(State(site): State<Arc<Site>>) -> Response {
    match site.state.readiness() {
        Ok(()) => match site.state.refused_rules() {
            None => "ready\n".into_response(),
            Some(why) => {
                let why = visible::line(&why);
                format!("ready; rules are refused: {why}\n").into_response()
            }
        },
        Err(why) => {
            let why = format!("{}\n", visible::line(&why));
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

/// Returns a file of the page. It loads nothing from elsewhere, and cannot be framed.
fn file(kind: &'static str, text: &'static str) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self' data:; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
