//! A server of a previous version refuses the later of two processes with one client id: the client waits, and keeps
//! what it has.

use std::sync::Arc;
use std::time::Duration;

use doorward::limiter::rate::Burst;
use doorward::{Mode, ResourceError};
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
            rate.acquire(1),
            gate.acquire(1),
            resource.wait_for_lease(PATIENCE)
        )
    };
    let (rate, gate, lease) = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert!(rate.is_ok());
    assert!(gate.is_ok());
    assert!(lease.is_ok());
}

#[tokio::test]
async fn a_timeout_meanwhile_gives_the_servers_reason() {
    let server = FakeServer::master([another_process()]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    while resource.problem().is_none() {
        tokio::task::yield_now().await;
    }
    let nothing = resource.wait_for_lease(Duration::from_millis(1)).await;
    assert!(
        matches!(nothing, Err(ResourceError::NotConnected(_))),
        "{nothing:?}"
    );
    let limiter = resource.rate_limiter(Burst::default());
    let refusal = limiter.try_acquire(1).unwrap_err();
    assert!(refusal.retry_after.is_some(), "{refusal:?}");
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
    let Err(ResourceError::NotConnected(reason)) = nothing else {
        panic!("{nothing:?}");
    };
    assert!(reason.contains("gone"), "{reason}");
}
