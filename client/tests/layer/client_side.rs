//! A client that obeys limits: it waits for its lease, and repeats refused requests as the server says.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use doorward::layer::{LimitLayer, RetryConfig, RetryPolicy};
use doorward::limiter::rate::Burst;
use doorward::{Client, Refusal, Why};
use http_body_util::Either;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::retry::RetryLayer;
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, service_fn};

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_lease_in_order_until_their_deadline() {
    let (client, server) = Client::fake("c");
    let database = client.resource("db").wants(2.0).open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    let service = ServiceBuilder::new()
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
            let Either::Right(served) = answer.into_body() else {
                panic!("{number} is refused");
            };
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
async fn a_place_is_taken_until_the_answer_and_what_a_refused_request_took_comes_back() {
    let (client, server) = Client::fake("c");
    server.set_capacity("db", 2.0);
    let open = |id| client.resource(id).wants(2.0).open().unwrap();
    let (database, places) = (open("db"), open("places").concurrency_limiter());
    let rate = database.rate_limiter(Burst {
        span: Duration::from_secs(1),
        least: 1.0,
    });
    let gate = Arc::new(Semaphore::new(0));
    let layer = LimitLayer::new(rate.clone())
        .and(places.clone())
        .max_wait(Duration::from_secs(1));
    let held = gate.clone();
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let gate = held.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(Response::new(()))
        }
    }));
    let send = || tokio::spawn(service.clone().oneshot(Request::new(())));
    let served = [send(), send()];
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(places.in_flight(), 2);
    // It finds no place. The burst of the rate is left for others.
    let refused = send().await.unwrap().unwrap();
    assert_eq!(refused.status(), 503);
    assert!(rate.try_acquire(3).is_ok());
    gate.add_permits(2);
    for call in served {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(places.in_flight(), 0);
    // A request that goes away while it waits for the rate gives its place back.
    let gone = send();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(places.in_flight(), 1);
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(places.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_one_lease_refuses_costs_nothing_of_another() {
    let (client, server) = Client::fake("c");
    server.set_capacity("nothing", 0.0);
    let open = |id| client.resource(id).wants(5.0).open().unwrap();
    let [plenty, nothing] = ["plenty", "nothing"].map(|id| {
        let burst = Burst {
            span: Duration::from_secs(1),
            least: 1.0,
        };
        open(id).rate_limiter(burst)
    });
    let service = LimitLayer::new(plenty.clone())
        .and(nothing)
        .layer(service_fn(async |_: Request<()>| {
            Ok::<_, Infallible>(Response::new(()))
        }));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let refused = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(plenty.try_acquire(6).is_ok());
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
