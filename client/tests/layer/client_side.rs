//! A client that obeys limits: it waits for its lease, and repeats refused requests as the server says.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use doorward::Client;
use doorward::Refusal;
use doorward::layer::{RetryConfig, RetryPolicy, ThrottleError, ThrottleLayer};
use doorward::limiter::rate::Burst;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::retry::RetryLayer;
use tower::{ServiceBuilder, ServiceExt as _, service_fn};

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_lease_in_order_until_their_deadline() {
    let (client, server) = Client::fake("c");
    let database = client.resource("db").wants(2.0).open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter, Duration::from_secs(2)))
        .service(service_fn(async |number: u32| Ok::<_, Infallible>(number)));
    let calls = (0..6).map(|number| {
        let service = service.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            (service.oneshot(number).await, began.elapsed())
        })
    });
    let calls: Vec<_> = calls.collect();
    for (number, call) in calls.into_iter().enumerate() {
        let (answer, took) = call.await.unwrap();
        if number < 4 {
            assert!(
                matches!(answer, Ok(it) if it as usize == number),
                "{answer:?}"
            );
            assert!(
                took >= Duration::from_millis(400 * number as u64),
                "{took:?}"
            );
        } else {
            let wait = Duration::from_secs(2);
            assert!(matches!(answer, Err(ThrottleError::TooLate(it)) if it == wait));
        }
    }
    server.stop();
    server.set_unknown("db", "no template");
    server.start();
    let refused = service.oneshot(9).await.map_err(|error| error.to_string());
    let message = "the resource is unknown: no template";
    assert_eq!(refused, Err(message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_bound_do_not_wait() {
    let (client, _server) = Client::fake("c");
    let database = client.resource("db").wants(1.0).open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    let layer = ThrottleLayer::new(limiter, Duration::from_secs(60)).waiting_max(2);
    let service = ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(async |(): ()| Ok::<_, Infallible>(())));
    let calls: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(())))
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    assert!(matches!(
        answers.as_slice(),
        [Ok(()), Ok(()), Err(ThrottleError::TooMany(2))]
    ));
    assert!(service.oneshot(()).await.is_ok(), "the places are free");
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
