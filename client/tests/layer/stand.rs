//! A router behind rules, and requests to it.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use axum::routing::get;
use doorward::layer::{Degraded, LimitLayer, Limits, LimitsBuilder};
use doorward::rules::{Address, Part, Rules};
use tower::ServiceExt as _;

pub fn rules(descriptors: &str) -> Rules {
    let text = format!("domain: api\ndescriptors:\n{descriptors}");
    Rules::load(&[("api.yaml", &text)]).unwrap()
}

pub fn builder() -> LimitsBuilder {
    Limits::builder("api")
        .part("user", Part::Header("x-user".to_owned()))
        .part("remote_address", Part::Address(Address::peer()))
        .part("path", Part::Path(Vec::new()))
}

pub fn limits(descriptors: &str) -> Limits {
    builder().load(rules(descriptors)).unwrap()
}

/// A service that answers "full", or "less" to a request that is to be served less.
pub fn app(limits: &Limits) -> Router {
    let handler = |request: Request<Body>| async move {
        match request.extensions().get::<Degraded>() {
            Some(_) => "less",
            None => "full",
        }
    };
    Router::new()
        .route("/", get(handler))
        .layer(LimitLayer::new(limits.clone()))
}

pub fn request(user: &str) -> Request<Body> {
    let peer: SocketAddr = "192.0.2.1:4000".parse().unwrap();
    let request = Request::get("/").header("x-user", user);
    request
        .extension(ConnectInfo(peer))
        .body(Body::empty())
        .unwrap()
}

pub async fn send(app: &Router, request: Request<Body>) -> Response<Body> {
    app.clone().oneshot(request).await.unwrap()
}

/// Sends requests of a user, and returns the statuses.
pub async fn statuses(app: &Router, user: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        let response = send(app, request(user)).await;
        statuses.push(response.status().as_u16());
    }
    statuses
}

pub async fn text(response: Response<Body>) -> String {
    let body = axum::body::to_bytes(response.into_body(), 10_000).await;
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}
