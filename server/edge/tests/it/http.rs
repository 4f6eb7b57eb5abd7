//! Plain HTTP, without sockets.

mod budget;
mod check;
mod hostile;
mod json;
mod lease;
mod settle;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use doorward::rules::Rules;
use doorward_door::caller_id::CallerId;
use doorward_edge::clock::Wall;
use doorward_edge::edge::Edge;
use doorward_edge::node::{Later, Node};
use doorward_edge::records::Records;
use doorward_engine::amount::Amount;
use doorward_engine::messages::{
    ClientLease, GetCapacity, GetCapacityReply, LimitedBy, Refusal, RefusalReason, ReleaseCapacity,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

const SECOND: i64 = 1_000_000_000;

/// A node that grants a capacity of each resource, or gives another answer.
#[derive(Debug)]
pub(crate) struct FakeNode {
    answer: Answering,
    pub(crate) asked: Mutex<Vec<GetCapacity>>,
    pub(crate) released: Mutex<Vec<ReleaseCapacity>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Answering {
    Grants(f64),
    Learns(f64),
    Refuses(RefusalReason),
    NotMaster(Mastership),
    StartsAnew,
}

impl FakeNode {
    pub(crate) fn new(answer: Answering) -> Arc<Self> {
        Arc::new(Self {
            answer,
            asked: Mutex::default(),
            released: Mutex::default(),
        })
    }

    fn reply(&self, request: &GetCapacity) -> Option<Outcome<GetCapacityReply>> {
        let mut reply = GetCapacityReply::default();
        for ask in &request.asks {
            let (capacity, learning_for) = match &self.answer {
                Answering::Grants(capacity) => (*capacity, None),
                Answering::Learns(capacity) => (*capacity, Some(Duration::from_secs(20))),
                Answering::Refuses(reason) => {
                    let refusal = Refusal::new(ask.resource.clone(), *reason);
                    reply.refused.push(refusal);
                    continue;
                }
                Answering::NotMaster(mastership) => {
                    return Some(Outcome::NotMaster(mastership.clone()));
                }
                Answering::StartsAnew => return None,
            };
            reply.leases.push(ClientLease {
                budget: None,
                resource: ask.resource.clone(),
                capacity: Amount::new(capacity).unwrap(),
                expires_in: Duration::from_secs(60),
                refresh_in: Duration::from_millis(4500),
                safe_capacity: None,
                granted_by: None,
                limited_by: match learning_for {
                    Some(_) => LimitedBy::Learning,
                    None => LimitedBy::Share,
                },
                learning_for,
                decided: true,
                sequence: None,
            });
        }
        Some(Outcome::Served(reply))
    }
}

impl Node for FakeNode {
    fn get_capacity(&self, request: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>> {
        let reply = self.reply(&request);
        self.asked.lock().unwrap().push(request);
        Box::pin(std::future::ready(reply))
    }

    fn release(&self, request: ReleaseCapacity) -> Later<'_, ()> {
        self.released.lock().unwrap().push(request);
        Box::pin(std::future::ready(()))
    }
}

/// The doors of an edge, at a time that a test sets.
pub(crate) struct Site {
    pub(crate) router: Router,
    pub(crate) edge: Arc<Edge>,
    clock: Arc<AtomicI64>,
}

/// An answer, as a program sees it. A body that is not JSON is null.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Site {
    /// Serves a document of rules. The time begins with 1970.
    pub(crate) fn new(rules: &str, node: Arc<impl Node + 'static>) -> Self {
        let rules = Rules::load(&[("rules.yaml", rules)]).unwrap();
        let clock = Arc::new(AtomicI64::new(0));
        let edge = Edge::within(
            256 << 20,
            node,
            rules,
            Wall::Set(Arc::clone(&clock)),
            Records::default(),
        );
        let router = doorward_edge::http::router(Arc::clone(&edge));
        Self {
            router,
            edge,
            clock,
        }
    }

    pub(crate) fn with_rules(rules: &str) -> Self {
        Self::new(rules, FakeNode::new(Answering::StartsAnew))
    }

    pub(crate) fn set_time(&self, nanos: i64) {
        self.clock.store(nanos, Ordering::Relaxed);
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(request("POST", path, body)).await
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }

    /// Checks that the answer is a problem of this status, and that its detail has these words.
    #[track_caller]
    pub(crate) fn check_problem(&self, name: &str, status: u16, words: &str) {
        assert_eq!(self.status, status, "{name}: {}", self.body);
        let kind = self.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{name}");
        assert_eq!(self.body["status"], status, "{name}");
        assert!(!self.body["title"].as_str().unwrap().is_empty(), "{name}");
        let detail = self.body["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{name}: {detail:?} lacks {words:?}");
    }
}

/// Makes a request with a JSON body, from an address.
pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .extension(CallerId::of([192, 0, 2, 1].into()));
    request.body(body.into()).unwrap()
}
