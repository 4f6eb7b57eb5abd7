//! A client that obeys limits: it waits for its lease, and repeats refused requests as the server says.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use doorward::layer::overload::InFlight;
use doorward::layer::{LimitLayer, RetryConfig, RetryPolicy};
use doorward::limiter::rate::Burst;
use doorward::{Client, RateLimiter, Refusal, Why};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::retry::RetryLayer;
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, service_fn};

use crate::stand;

fn rate(client: &Client, id: &str, wants: f64, span: u64) -> RateLimiter {
    let resource = client.resource(id).wants(wants).open().unwrap();
    resource.rate_limiter(Burst {
        span: Duration::from_secs(span),
        least: 1.0,
    })
}

async fn answers(_: Request<()>) -> Result<Response<()>, Infallible> {
    Ok(Response::new(()))
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_lease_in_order_until_their_deadline() {
    let (client, server) = Client::fake("c");
    let database = client.resource("db").wants(2.0).open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    // A refusal of the layer itself is not repeated.
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::new(RetryConfig::default())))
        .layer(LimitLayer::new(limiter).max_wait(Duration::from_secs(2)))
        .service(service_fn(async |request: Request<u32>| {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        }));
    let calls = (0..6).map(|number| {
        let service = service.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let answer = service.oneshot(Request::new(number)).await.unwrap();
            (answer, began.elapsed())
        })
    });
    let calls: Vec<_> = calls.collect();
    for (number, call) in calls.into_iter().enumerate() {
        let (answer, took) = call.await.unwrap();
        if number < 4 {
            let served = answer.into_body().into_inner().unwrap();
            assert_eq!(served as usize, number);
            let least = Duration::from_millis(400 * number as u64);
            assert!(took >= least, "{took:?}");
        } else {
            assert_eq!((answer.status().as_u16(), took.as_secs()), (503, 2));
            let told = Refusal::of_response(answer.status(), answer.headers()).unwrap();
            assert!(told.retry_after >= Some(Duration::from_secs(1)), "{told}");
            let refusal = answer.extensions().get::<Refusal>().unwrap();
            assert_eq!(refusal.why, Why::Over);
        }
    }
    server.stop();
    server.set_unknown("db", "no template");
    server.start();
    let refused = service.oneshot(Request::new(9)).await.unwrap();
    let refusal = refused.extensions().get::<Refusal>().unwrap();
    assert_eq!(refusal.to_string(), "the resource is unknown: no template");
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_a_request_is_refused_at_once_and_counts_once() {
    let (client, server) = Client::fake("c");
    server.set_capacity("db", 1.0);
    let database = client.resource("db").open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    let service = LimitLayer::new(limiter).layer(service_fn(answers));
    let began = Instant::now();
    let mut served = 0;
    for _ in 0..400 {
        let answer = service.clone().oneshot(Request::new(())).await.unwrap();
        served += u32::from(answer.status() == 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(began.elapsed(), Duration::from_secs(40));
    assert!((39..=41).contains(&served), "{served}");
    let wants = database.wants();
    assert!((9.0..11.5).contains(&wants), "{wants}");
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_bound_do_not_wait() {
    let (client, _server) = Client::fake("c");
    let layer = LimitLayer::new(rate(&client, "db", 1.0, 0)).max_wait(Duration::MAX);
    let service = layer.waiting_max(2).layer(service_fn(answers));
    let calls: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(Request::new(()))))
        .collect();
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.unwrap().unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 503]);
    let answer = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(answer.status(), 200, "the places are free");
}

#[tokio::test(start_paused = true)]
async fn a_place_is_taken_until_the_answer_or_as_long_as_the_work_has_it() {
    let (client, server) = Client::fake("c");
    server.set_capacity("places", 2.0);
    let places = client.resource("places").wants(2.0).open().unwrap();
    let places = places.concurrency_limiter();
    let gate = Arc::new(Semaphore::new(0));
    let layer = LimitLayer::new(rate(&client, "db", 2.0, 1))
        .and(places.clone())
        .max_wait(Duration::from_secs(1));
    let held = gate.clone();
    let service = layer.layer(service_fn(move |request: Request<()>| {
        let gate = held.clone();
        async move {
            let work = request.extensions().get::<InFlight>().unwrap().clone();
            tokio::spawn(async move {
                let _until_the_end = work;
                gate.acquire().await.unwrap().forget();
            });
            Ok::<_, Infallible>(Response::new(()))
        }
    }));
    let send = || tokio::spawn(service.clone().oneshot(Request::new(())));
    for _ in 0..2 {
        assert_eq!(send().await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(places.in_flight(), 2);
    assert_eq!(send().await.unwrap().unwrap().status(), 503);
    gate.add_permits(2);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(places.in_flight(), 0);
}

/// Each way in which a request that a lease let pass is not served.
#[tokio::test(start_paused = true)]
async fn what_a_request_took_that_is_not_served_comes_back() {
    let (client, server) = Client::fake("c");
    server.set_capacity("nothing", 0.0);
    // It comes in once in 1,000 s.
    let slow = rate(&client, "slow", 0.001, 0);
    tokio::time::sleep(Duration::from_secs(1_001)).await;
    let head = || {
        let (parts, _) = stand::request("ann").into_parts();
        Request::from_parts(parts, ())
    };
    let once = "- key: user\n  rate_limit: {rate: 1/h, algorithm: token_bucket, burst: 1}\n";
    let [limits, twice] = [(); 2].map(|()| stand::limits(once));
    let nothing = rate(&client, "nothing", 1.0, 0);
    let all = LimitLayer::new(limits.clone()).and(slow.clone());
    // Refused by a later lease, at once and after a wait.
    for wait in [0, 5] {
        let layer = all.clone().and(nothing.clone());
        let service = layer.max_wait(Duration::from_secs(wait));
        let service = service.layer(service_fn(answers));
        let refused = service.clone().oneshot(head()).await.unwrap();
        assert_eq!(refused.status(), 503);
        // The caller goes away.
        let gone = tokio::spawn(service.oneshot(head()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        gone.abort();
        let _ended = gone.await;
    }
    // Refused by other rules.
    let layer = LimitLayer::new(limits.clone()).and(twice.clone());
    assert_eq!(
        LimitLayer::new(twice)
            .layer(service_fn(answers))
            .oneshot(head())
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(
        layer
            .layer(service_fn(answers))
            .oneshot(head())
            .await
            .unwrap()
            .status(),
        429
    );
    // So all is there, and the same limits count once.
    let service = all.and(limits).layer(service_fn(answers));
    let statuses = [
        service
            .clone()
            .oneshot(head())
            .await
            .unwrap()
            .status()
            .as_u16(),
        service.oneshot(head()).await.unwrap().status().as_u16(),
    ];
    assert_eq!(statuses, [200, 429]);
    assert!(slow.try_acquire(1).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_grpc_that_the_lease_refuses_is_unavailable() {
    let (client, server) = Client::fake("c");
    server.set_capacity("nothing", 0.0);
    let layer = LimitLayer::new(rate(&client, "nothing", 1.0, 0));
    let call = Request::builder().header("content-type", "application/grpc");
    let answer = layer
        .layer(service_fn(answers))
        .oneshot(call.body(()).unwrap());
    let answer = answer.await.unwrap();
    assert!(answer.extensions().get::<Refusal>().is_some());
    let status = Status::from_header_map(answer.headers()).unwrap();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(Refusal::of_status(&status).unwrap().retry_after >= Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_repeated_when_the_server_says() {
    let began = Instant::now();
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::new(RetryConfig::default())))
        .service(service_fn(async |_: Request<()>| {
            let refused = began.elapsed() < Duration::from_secs(5);
            let mut response = Response::new(());
            if refused {
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response
                    .headers_mut()
                    .insert("retry-after", "5".parse().unwrap());
            }
            Ok::<_, Infallible>(response)
        }));
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), 200);
    let took = began.elapsed();
    assert!((5.0..5.11).contains(&took.as_secs_f64()), "{took:?}");
}

#[tokio::test]
async fn what_may_be_repeated_and_how_often() {
    let status = |code: Code, delay: Option<u64>| {
        let mut details = ErrorDetails::new();
        if let Some(delay) = delay {
            details.set_retry_info(Some(Duration::from_secs(delay)));
        }
        Status::with_error_details(code, "", details)
    };
    let wait = |seconds: u64| {
        let retry_after = Some(Duration::from_secs(seconds));
        Some(Refusal::over(retry_after))
    };
    let untold = Some(Refusal::over(None));
    for (status, expected) in [
        (status(Code::ResourceExhausted, Some(3)), wait(3)),
        (status(Code::ResourceExhausted, None), None),
        (status(Code::Unavailable, None), untold.clone()),
        (status(Code::Unavailable, Some(1)), wait(1)),
        (status(Code::Internal, Some(1)), None),
        (status(Code::Ok, None), None),
    ] {
        assert_eq!(Refusal::of_status(&status), expected, "{status:?}");
    }
    // Waits that double, up to four; each is a part of its backoff.
    let mut policy = RetryPolicy::new(RetryConfig::default());
    for most in [100, 200, 400, 800] {
        let waited = policy.next_wait(untold.clone()).unwrap();
        assert!(waited <= Duration::from_millis(most), "{waited:?}");
    }
    assert_eq!(policy.next_wait(untold.clone()), None);
    let policy = RetryPolicy::new(RetryConfig::default());
    assert_eq!(policy.clone().next_wait(wait(31)), None, "too long a wait");
    // The budget of all clones ends: a hundred in ten seconds without other requests.
    let repeated = (0..1_000).filter(|_| policy.clone().next_wait(untold.clone()).is_some());
    assert_eq!(repeated.count(), 100);
}
