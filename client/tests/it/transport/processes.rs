//! Two processes with one client id: a restart is waited out, a lasting conflict is an error.

use std::sync::Arc;
use std::time::Duration;

use doorward_client::limiter::rate::Burst;
use doorward_client::{AcquireError, Mode, ResourceError};
use doorward_proto::doorman;
use tonic::Status;

use crate::transport::fake_server::{Answer, FakeServer, lease, refused};
use crate::transport::{Failures, PATIENCE, client, opened};

/// Returns a refusal because of another process, with a time as short as a client accepts.
fn another_process() -> Answer {
    let mut answer = refused(doorman::refusal::Reason::AnotherProcess);
    if let Ok(response) = &mut answer {
        response.refused[0].retry_in_ms = Some(1);
    }
    answer
}

fn told() -> AcquireError {
    AcquireError::AnotherProcess {
        client_id: "c".to_owned(),
    }
}

#[tokio::test]
async fn acquire_fails_when_another_process_goes_on() {
    let server = FakeServer::master([another_process()]).await;
    // The first answer does not count yet, and a later one does.
    let client = client(&server.address).restart_overlap(Duration::from_millis(1));
    let client = client.connect().await.unwrap();
    // No mode allows anything then.
    let resource = client.resource("r").wants(10.0).mode(Mode::Optimistic);
    let resource = resource.open().unwrap();
    let limiters = (
        resource.rate_limiter(Burst::default()),
        resource.concurrency_limiter(),
    );
    let (rate, gate) = &limiters;
    // These wait from before the answer, two of a kind.
    let waiting = async {
        tokio::join!(
            rate.acquire(1e6),
            rate.acquire(1e6),
            gate.acquire_many(99),
            gate.acquire_many(99),
            resource.wait_for_lease(PATIENCE),
        )
    };
    let acquired = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!((acquired.0, acquired.1), (Err(told()), Err(told())));
    assert_eq!(acquired.2.err(), Some(told()));
    assert_eq!(acquired.3.err(), Some(told()));
    let problem = ResourceError::AnotherProcess {
        resource: "r".to_owned(),
        client_id: "c".to_owned(),
    };
    assert_eq!(acquired.4, Err(problem.clone()));
    assert_eq!(resource.problem(), Some(problem));
    assert_eq!(rate.try_acquire(1.0), Err(told()));
    assert_eq!(gate.try_acquire().err(), Some(told()));
    assert_eq!(
        told().to_string(),
        "another running process has the client id \"c\"; give each process an id of its own, or stop one of them"
    );
}

#[tokio::test]
async fn acquire_waits_until_the_previous_process_has_ended() {
    let server = FakeServer::master([another_process(), lease(1e6, 60_000)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    let (rate, gate) = (
        resource.rate_limiter(Burst::default()),
        resource.concurrency_limiter(),
    );
    let waiting = async {
        tokio::join!(
            rate.acquire(1.0),
            gate.acquire(),
            resource.wait_for_lease(PATIENCE)
        )
    };
    let (rate, gate, lease) = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(rate, Ok(()));
    assert!(gate.is_ok());
    assert!(lease.is_ok());
}

#[tokio::test]
async fn a_timeout_during_a_restart_names_the_other_process() {
    let server = FakeServer::master([another_process()]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    while resource.problem().is_none() {
        tokio::task::yield_now().await;
    }
    let nothing = resource.wait_for_lease(Duration::from_millis(1)).await;
    assert!(
        matches!(nothing, Err(ResourceError::AnotherProcess { .. })),
        "{nothing:?}"
    );
    let limiter = resource.rate_limiter(Burst::default());
    let later = limiter.try_acquire(1.0);
    assert!(
        matches!(later, Err(AcquireError::RetryAfter { .. })),
        "{later:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_gone_is_the_reason_and_not_the_other_process_of_before() {
    let gone = Err(Status::unavailable("gone"));
    let server = FakeServer::master([another_process(), gone]).await;
    let failures = Arc::new(Failures::default());
    let client = client(&server.address).hooks(failures.clone());
    let client = client.connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    failures.until(&client, |_| true).await;
    let nothing = resource.wait_for_lease(Duration::from_millis(1)).await;
    assert!(
        matches!(nothing, Err(ResourceError::NotConnected(_))),
        "{nothing:?}"
    );
}
