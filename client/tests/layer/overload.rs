//! A router behind overload control, alone and together with rules and a lease.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response};
use axum::routing::get;
use axum::{Extension, Router};
use doorward::Client;
use doorward::layer::overload::{Cost, CriticalityLayer, InFlight, OverloadCall, criticality};
use doorward::layer::{LimitLayer, Limits, Overload};
use doorward::limiter::rate::Burst;
use doorward::overload::{Config, Criticality};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::stand::{limits, send, text};

/// A service that serves one request at once, each until it may go on.
struct Gated {
    app: Router,
    overload: Overload,
    gate: Arc<Semaphore>,
}

impl Gated {
    fn new(waiting_max: usize, with: impl FnOnce(LimitLayer) -> LimitLayer) -> Self {
        let config = Config {
            fixed_limit: Some(1),
            waiting_max,
            // Requests wait until the test lets them go on.
            max_wait: Duration::from_secs(600),
            ..Config::default()
        };
        let gate = Arc::new(Semaphore::new(0));
        let handler = {
            let gate = gate.clone();
            move |request: Request<Body>| async move {
                if let Ok(permit) = gate.acquire().await {
                    permit.forget();
                }
                if let Some(cost) = request.headers().get("cost") {
                    let units = cost.to_str().unwrap().parse().unwrap();
                    request.extensions().get::<Cost>().unwrap().set(units);
                }
                criticality().map_or("none", Criticality::name)
            }
        };
        let overload = Overload::with_config("test", config);
        let app = Router::new().route("/", get(handler));
        let app = app.layer(with(LimitLayer::new(overload.clone())));
        Self {
            app,
            overload,
            gate,
        }
    }

    /// Sends a request, and lets it come to its place.
    async fn start(&self, headers: &[(&str, &str)]) -> JoinHandle<Response<Body>> {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let app = self.app.clone();
        let call = tokio::spawn(async move { send(&app, request).await });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        call
    }

    fn let_go(&self, requests: usize) {
        self.gate.add_permits(requests);
    }
}

const CRITICAL: (&str, &str) = ("x-doorward-criticality", "CRITICAL");

fn retry_after(headers: &HeaderMap) -> u64 {
    headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_request_waits_for_its_turn_and_the_handler_knows_its_criticality() {
    let gated = Gated::new(10, |layer| layer);
    let first = gated.start(&[]).await;
    let second = gated.start(&[CRITICAL]).await;
    assert_eq!((gated.overload.limit(), gated.overload.in_flight()), (1, 1));
    gated.let_go(2);
    assert_eq!(text(first.await.unwrap()).await, "NOT_CRITICAL");
    assert_eq!(text(second.await.unwrap()).await, "CRITICAL");
    assert_eq!((gated.overload.limit(), gated.overload.in_flight()), (1, 0));
}

#[tokio::test]
async fn a_critical_request_pushes_out_one_that_is_not() {
    let gated = Gated::new(1, |layer| layer);
    let first = gated.start(&[]).await;
    let pushed = gated.start(&[]).await;
    let critical = gated.start(&[CRITICAL]).await;
    let response = pushed.await.unwrap();
    assert_eq!(response.status(), 503);
    assert!((1..=3).contains(&retry_after(response.headers())));
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["status"], 503);
    gated.let_go(2);
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(critical.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_in_time_is_refused() {
    let gated = Gated::new(10, |layer| layer);
    let first = gated.start(&[]).await;
    for header in ["x-envoy-expected-rq-timeout-ms", "grpc-timeout"] {
        let value = if header == "grpc-timeout" {
            "30m"
        } else {
            "30"
        };
        let late = gated.start(&[(header, value)]).await;
        assert_eq!(late.await.unwrap().status(), 503, "{header}");
    }
    gated.let_go(1);
    assert_eq!(first.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_call_of_grpc_hears_unavailable_and_when_to_come_back() {
    let gated = Gated::new(0, |layer| layer);
    let first = gated.start(&[]).await;
    let refused = gated.start(&[("content-type", "application/grpc")]).await;
    let response = refused.await.unwrap();
    assert_eq!(response.status(), 200);
    let status = Status::from_header_map(response.headers()).unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    let delay = status.get_error_details().retry_info().unwrap().retry_delay;
    assert!(delay.unwrap() >= Duration::from_secs(1));
    gated.let_go(1);
    first.await.unwrap();
}

#[tokio::test]
async fn a_caller_that_goes_frees_its_place() {
    let gated = Gated::new(10, |layer| layer);
    let first = gated.start(&[]).await;
    let gone = gated.start(&[CRITICAL]).await;
    let last = gated.start(&[]).await;
    gone.abort();
    assert!(gone.await.is_err());
    first.abort();
    assert!(first.await.is_err());
    gated.let_go(1);
    assert_eq!(last.await.unwrap().status(), 200);
    assert_eq!((gated.overload.limit(), gated.overload.in_flight()), (1, 0));
}

#[tokio::test]
async fn a_place_belongs_to_the_work_that_goes_on_after_the_caller_has_gone() {
    let config = Config {
        fixed_limit: Some(8),
        waiting_max: 0,
        ..Config::default()
    };
    let overload = Overload::with_config("test", config);
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let gate = gate.clone();
        move |Extension(in_flight): Extension<InFlight>| async move {
            let work = tokio::spawn(async move {
                let _in_flight = in_flight;
                gate.acquire().await.unwrap().forget();
            });
            work.await.unwrap();
        }
    };
    let app = Router::new().route("/", get(handler));
    let app = app.layer(LimitLayer::new(overload.clone()));
    let mut refused = 0;
    for _ in 0..50 {
        let app = app.clone();
        let request = Request::get("/").body(Body::empty()).unwrap();
        let call = tokio::spawn(async move { send(&app, request).await });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        // The caller gives up.
        call.abort();
        refused += u32::from(call.await.is_ok());
        assert!(overload.in_flight() <= 8);
    }
    assert_eq!((overload.in_flight(), refused), (8, 42));
    gate.add_permits(8);
    while overload.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn shadow_mode_refuses_nothing() {
    let config = Config {
        first_limit: 1,
        is_shadow: true,
        ..Config::default()
    };
    let overload = Overload::with_config("test", config);
    let call = OverloadCall::default();
    let mut permits = Vec::new();
    for _ in 0..100 {
        permits.push(overload.acquire(&call).await.unwrap());
    }
    assert_eq!(overload.in_flight(), 100);
}

#[tokio::test]
async fn a_request_that_overload_refuses_costs_nothing_of_its_limit() {
    let two = "- key: user\n  rate_limit: {rate: 2/h, algorithm: token_bucket, burst: 2}\n";
    let limits: Limits = limits(two);
    let gated = Gated::new(1, |layer| layer.and(limits));
    let ann = ("x-user", "ann");
    let first = gated.start(&[ann]).await;
    let waiting = gated.start(&[("x-user", "eve"), CRITICAL]).await;
    for _ in 0..5 {
        let refused = gated.start(&[ann]).await;
        assert_eq!(refused.await.unwrap().status(), 503);
    }
    gated.let_go(2);
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(waiting.await.unwrap().status(), 200);
    // Nor does one whose caller goes away while it waits.
    let first = gated.start(&[("x-user", "bob")]).await;
    let gone = gated.start(&[ann]).await;
    gone.abort();
    assert!(gone.await.is_err());
    gated.let_go(1);
    assert_eq!(first.await.unwrap().status(), 200);
    let second = gated.start(&[ann]).await;
    gated.let_go(1);
    assert_eq!(second.await.unwrap().status(), 200);
    let third = gated.start(&[ann]).await;
    assert_eq!(third.await.unwrap().status(), 429);
}

#[tokio::test(start_paused = true)]
async fn the_lease_pays_what_a_request_really_cost() {
    let (client, server) = Client::fake("c");
    server.set_capacity("cpu", 1.0);
    let cpu = client.resource("cpu").wants(1.0).open().unwrap();
    let burst = Burst {
        span: Duration::from_secs(1_000),
        least: 1_000.0,
    };
    let lease = cpu.rate_limiter(burst);
    // The lease begins empty. Its amount grows by one a second.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let gated = Gated::new(0, {
        let lease = lease.clone();
        |layer| layer.and(lease)
    });
    let left = |lease: &doorward::RateLimiter| {
        let left = (0..200)
            .rev()
            .find_map(|units| lease.try_acquire(units).ok())
            .unwrap();
        let units = left.cost().floor();
        left.refund();
        units
    };
    let before = left(&lease);
    assert!((100..110).contains(&before), "{before}");
    let first = gated.start(&[("cost", "60")]).await;
    let refused = gated.start(&[]).await;
    assert_eq!(refused.await.unwrap().status(), 503);
    gated.let_go(1);
    assert_eq!(first.await.unwrap().status(), 200);
    let after = left(&lease);
    assert!(
        (before - 60..before - 50).contains(&after),
        "{before} {after}"
    );
    // The next request is predicted to cost more than before.
    assert!(gated.overload.predicted_cost("GET /") > 10.0);
}

#[tokio::test]
async fn criticality_goes_on_to_calls_on_behalf_of_the_request() {
    let heard = service_fn(async |request: Request<()>| {
        let header = request.headers().get(CRITICAL.0);
        let header = header.map(|value| value.to_str().unwrap().to_owned());
        Ok::<_, std::convert::Infallible>(header)
    });
    let client = CriticalityLayer.layer(heard);
    let call = |own: Option<&str>| {
        let request = Request::get("/");
        let request = match own {
            Some(own) => request.header(CRITICAL.0, own),
            None => request,
        };
        client.clone().oneshot(request.body(()).unwrap())
    };
    assert_eq!(call(None).await.unwrap(), None);
    let high = Criticality::High;
    let inherited = doorward::layer::overload::with_criticality(high, call(None));
    assert_eq!(inherited.await.unwrap().as_deref(), Some("HIGH"));
    let own = doorward::layer::overload::with_criticality(high, call(Some("LOW")));
    assert_eq!(own.await.unwrap().as_deref(), Some("LOW"));
}

#[test]
fn metrics_tell_what_became_of_requests() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let gated = Gated::new(1, |layer| layer);
            let first = gated.start(&[]).await;
            let pushed = gated.start(&[]).await;
            let critical = gated.start(&[CRITICAL]).await;
            gated.let_go(2);
            for call in [first, pushed, critical] {
                call.await.unwrap();
            }
        });
    });
    let snapshot = snapshotter.snapshot().into_vec();
    let count = |tier: &str, outcome: &str| {
        let labels = [("service", "test"), ("tier", tier), ("outcome", outcome)];
        let found = snapshot.iter().find(|(key, ..)| {
            let key = key.key();
            let has = |(name, value): &(&str, &str)| {
                key.labels()
                    .any(|label| label.key() == *name && label.value() == *value)
            };
            key.name() == "doorward_overload_requests_total" && labels.iter().all(has)
        });
        match found {
            Some((.., DebugValue::Counter(count))) => *count,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(count("NOT_CRITICAL", "admitted"), 1);
    assert_eq!(count("NOT_CRITICAL", "pushed_out"), 1);
    assert_eq!(count("CRITICAL", "admitted"), 1);
    let names: Vec<_> = snapshot.iter().map(|(key, ..)| key.key().name()).collect();
    for name in [
        "waited_total",
        "limit",
        "in_flight",
        "waiting",
        "predicted_cost",
        "cost",
    ] {
        let name = format!("doorward_overload_{name}");
        assert!(names.contains(&name.as_str()), "{name}");
    }
}
