//! A server of HTTP behind rules.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Request, Response};
use doorward::layer::{BuildError, LimitLayer, Limits};
use doorward::rules::source::Retriever;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use sfv::{BareItem, List, ListEntry, Parser};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::stand::{app, builder, limits, request, rules, send, statuses, text};

/// Two requests of each user, and no more for an hour.
const TWO: &str = "- key: user\n  rate_limit: {rate: 2/h, algorithm: token_bucket, burst: 2}\n";

fn with(fields: &str) -> String {
    format!("{TWO}  {fields}\n")
}

#[tokio::test]
async fn each_caller_has_a_limit_of_its_own() {
    let app = app(&limits(TWO));
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
    assert_eq!(statuses(&app, "bob", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_refusal_says_why_and_when_to_come_back() {
    let app = app(&limits(TWO));
    let allowed = send(&app, request("ann")).await;
    assert!(allowed.headers().get("ratelimit").is_none());
    statuses(&app, "ann", 1).await;
    let refused = send(&app, request("ann")).await;
    let headers = refused.headers().clone();
    let after: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1_800..=1_801).contains(&after), "{after}");
    for (name, parameter, value) in [("ratelimit-policy", "q", 2), ("ratelimit", "r", 0)] {
        let list = Parser::new(headers[name].as_bytes())
            .parse::<List>()
            .unwrap();
        let [ListEntry::Item(item)] = list.as_slice() else {
            panic!("{name}: {list:?}");
        };
        assert!(matches!(&item.bare_item, BareItem::String(it) if it.as_str() == "api.user"));
        assert!(matches!(item.params[parameter], BareItem::Integer(it) if i64::from(it) == value));
    }
    assert_eq!(headers["content-type"], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(&text(refused).await).unwrap();
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"][0], "api.user");
}

#[tokio::test]
async fn allowed_answers_have_the_headers_by_switch() {
    let limits = builder().headers_on_all_answers().load(rules(TWO)).unwrap();
    let answer = send(&app(&limits), request("ann")).await;
    assert_eq!(
        answer.headers()["ratelimit-policy"],
        r#""api.user";q=2;w=3600"#
    );
    assert!(answer.headers().get("retry-after").is_none());
}

#[tokio::test]
async fn each_action_has_its_answer() {
    let to = HeaderValue::from_static("https://example.com/busy");
    for (action, status, header, body) in [
        ("drop", 429, Some(("connection", "close")), ""),
        ("degrade", 200, None, "less"),
        (
            "redirect",
            307,
            Some(("location", "https://example.com/busy")),
            "",
        ),
    ] {
        let rules = rules(&with(&format!("action: {action}")));
        let limits = builder().redirect_to(to.clone()).load(rules).unwrap();
        let app = app(&limits);
        statuses(&app, "ann", 2).await;
        let answer = send(&app, request("ann")).await;
        assert_eq!(answer.status(), status, "{action}");
        if let Some((name, value)) = header {
            assert_eq!(answer.headers()[name], value, "{action}");
        }
        assert_eq!(text(answer).await, body, "{action}");
    }
    let app = app(&limits(&with("action: redirect")));
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429], "no target");
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_keep_their_order_and_a_dropped_one_passes_nobody() {
    let wait = "- key: user
  action: wait
  max_wait: 10s
  rate_limit: {rate: 1/s, algorithm: token_bucket, burst: 1}
";
    let app = app(&limits(wait));
    let began = tokio::time::Instant::now();
    let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
    let mut calls = Vec::new();
    for number in 0..12 {
        let (app, done) = (app.clone(), done.clone());
        let mut call = Box::pin(async move {
            let status = app.oneshot(request("ann")).await.unwrap().status();
            done.send((number, status.as_u16())).unwrap();
        });
        // Each request is decided before the next one comes. The fourth one is dropped.
        if !is_ready(&mut call).await && number != 3 {
            calls.push(tokio::spawn(call));
        }
    }
    for call in calls {
        call.await.unwrap();
    }
    drop(done);
    let mut order = Vec::new();
    while let Some(it) = finished.recv().await {
        order.push(it);
    }
    // The last one would have its turn after 11 s.
    let refused = [(0, 200), (11, 429)];
    let waited = [1, 2, 4, 5, 6, 7, 8, 9, 10].map(|number| (number, 200));
    assert_eq!(order, [&refused[..], &waited[..]].concat());
    let took = began.elapsed().as_secs_f64();
    assert!((9.0..=10.1).contains(&took), "{took}");
}

/// The inner service has one place, which its readiness takes. So a call of another service than the ready one would
/// wait for ever.
#[tokio::test(start_paused = true)]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    let wait = "- key: user
  action: wait
  max_wait: 10s
  rate_limit: {rate: 1/s, algorithm: token_bucket, burst: 1}
";
    let answer = service_fn(async |_: Request<Body>| {
        Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
    });
    let inner = ConcurrencyLimit::new(answer, 1);
    let limited = LimitLayer::new(limits(wait)).layer(inner);
    let (buffer, worker) = Buffer::pair(limited, 10);
    tokio::spawn(worker);
    let calls = (0..3).map(|_| buffer.clone().oneshot(request("ann")));
    let answers = tokio::time::timeout(Duration::from_secs(60), futures(calls)).await;
    for answer in answers.unwrap() {
        assert_eq!(answer.unwrap().status(), 200);
    }
}

/// Runs calls at once, and returns their answers.
async fn futures<T: Send + 'static>(
    calls: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let calls: Vec<_> = calls.map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    answers
}

/// The server does not tell the addresses of callers, and a rule is by them. This is a debug build.
#[tokio::test]
async fn a_limit_by_address_without_one_fails_with_the_remedy() {
    let rule = |key| format!("- key: {key}\n  rate_limit: {{rate: 2/h}}\n");
    for (key, expected) in [("user", 200), ("remote_address", 500)] {
        let app = app(&limits(&rule(key)));
        let request = Request::get("/").body(Body::empty()).unwrap();
        let answer = send(&app, request).await;
        assert_eq!(answer.status(), expected, "{key}");
        if expected == 500 {
            let text = text(answer).await;
            assert!(
                text.contains("into_make_service_with_connect_info"),
                "{text}"
            );
        }
    }
}

/// Rules count on tokio's clock, which tests pause.
#[tokio::test(start_paused = true)]
async fn a_day_of_a_limit_takes_a_test_no_time() {
    let app = app(&limits(
        "- key: user\n  rate_limit: {rate: 2/day, algorithm: sliding_log}\n",
    ));
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
}

/// Polls once, and returns whether the future is ready.
async fn is_ready(call: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        let poll = std::pin::Pin::new(&mut *call).poll(context);
        std::task::Poll::Ready(poll.is_ready())
    })
    .await
}

#[tokio::test]
async fn several_layers_of_the_same_limits_count_a_request_once() {
    let limits = limits(TWO);
    let app = app(&limits).layer(LimitLayer::new(limits.clone()));
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
    let other = self::limits(TWO);
    let app = self::app(&limits).layer(LimitLayer::new(other));
    assert_eq!(statuses(&app, "bob", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn rules_change_while_requests_come() {
    let limits = limits(TWO);
    let app = app(&limits);
    statuses(&app, "ann", 2).await;
    let free = rules("- key: user\n  rate_limit: {unlimited: true}\n");
    limits.replace(free).unwrap();
    assert_eq!(statuses(&app, "ann", 3).await, [200; 3]);
}

#[tokio::test(start_paused = true)]
async fn rules_follow_their_file_and_the_last_good_ones_stay() {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    let write = |descriptors: &str| {
        let text = format!("domain: api\ndescriptors:\n{descriptors}");
        std::fs::write(file.path(), text).unwrap();
    };
    write(TWO);
    let retriever = Retriever::file(file.path()).start().await.unwrap();
    let limits = builder().follow(retriever).unwrap();
    let app = app(&limits);
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
    let versions = limits.status().unwrap().versions;
    for (descriptors, expected, problem) in [
        (
            "- key: team\n  rate_limit: {unlimited: true}\n",
            429,
            "use team",
        ),
        ("- key: [\n", 429, "invalid"),
        ("- key: user\n  rate_limit: {unlimited: true}\n", 200, ""),
    ] {
        write(descriptors);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(statuses(&app, "ann", 1).await, [expected], "{descriptors}");
        let status = limits.status().unwrap();
        assert_eq!(status.versions == versions, expected == 429);
        let told = status.problem.unwrap_or_default();
        assert!(told.contains(problem), "{told}");
        assert_eq!(told.is_empty(), problem.is_empty(), "{told}");
    }
}

#[test]
fn decisions_are_counted_by_rule_and_outcome() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let text = format!(
        "{}- key: remote_address\n  detailed_metric: true\n  rate_limit: {{rate: 9/h, algorithm: token_bucket, burst: 9}}\n- key: path\n  shadow_mode: true\n  rate_limit: {{rate: 0/s}}\n",
        TWO
    );
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let answers = runtime
            .unwrap()
            .block_on(async { statuses(&app(&limits(&text)), "ann", 3).await });
        assert_eq!(answers, [200, 200, 429]);
    });
    let mut counted: Vec<String> = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels = key.key().labels().map(|label| label.value().to_owned());
        let DebugValue::Counter(value) = value else {
            panic!("{value:?}");
        };
        if value > 0 {
            counted.push(format!("{} {value}", labels.collect::<Vec<_>>().join(" ")));
        }
    }
    counted.sort();
    assert_eq!(
        counted,
        [
            "api api.path shadow 3",
            "api api.remote_address allowed 3",
            "api api.user allowed 2",
            "api api.user refused 1",
        ]
    );
}

#[test]
fn limits_that_cannot_work_are_refused() {
    let check = |builder: doorward::layer::LimitsBuilder, text: &str, expected: BuildError| {
        assert_eq!(builder.load(rules(text)).err(), Some(expected));
    };
    let api = || "api".to_owned();
    let no_domain = BuildError::NoDomain {
        domain: "shop".to_owned(),
        known: api(),
    };
    check(Limits::builder("shop"), TWO, no_domain);
    let keys = BuildError::UnknownKeys {
        domain: api(),
        keys: "user".to_owned(),
    };
    check(Limits::builder("api"), TWO, keys);
    check(
        builder(),
        &with("scope: shared"),
        BuildError::NoLeases { domain: api() },
    );
}
