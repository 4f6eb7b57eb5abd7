//! Limiters without capacity, and limiters beside each other.

use std::time::Duration;

use doorward::limiter::rate::Burst;
use doorward::{Mode, Refusal, ResourceError, Why};
use doorward_proto::doorman::{self, refusal::Reason};
use tokio_test::{assert_pending, task};

use crate::transport::fake_server::{Answer, FakeServer, granted, lease, refused};
use crate::transport::{PATIENCE, client, opened, within_patience};

/// Returns a lease of 300 ms, refreshed after 20 ms.
fn short(capacity: f64) -> Answer {
    granted(doorman::Lease {
        granted_by: None,
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(300),
        refresh_in_ms: Some(20),
    })
}

#[track_caller]
fn check_unknown<T>(answer: Result<T, Refusal>) {
    let message = "because".to_owned();
    let why = answer.map(drop).unwrap_err().why;
    assert_eq!(why, Why::UnknownResource { message });
}

#[tokio::test]
async fn acquire_fails_for_an_unknown_resource() {
    let server = FakeServer::master([refused(Reason::UnknownResource)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    let (rate, gate) = (
        resource.rate_limiter(Burst::default()),
        resource.concurrency_limiter(),
    );
    // These wait from before the answer, two of a kind.
    let acquired = within_patience(async {
        tokio::join!(
            rate.acquire(1),
            rate.acquire(1),
            gate.acquire(1),
            gate.acquire(1)
        )
    });
    let (first, second, third, fourth) = acquired.await;
    check_unknown(first);
    check_unknown(second);
    check_unknown(third);
    check_unknown(fourth);
    check_unknown(rate.try_acquire(1));
    check_unknown(gate.try_acquire(1));
    assert!(matches!(
        resource.problem(),
        Some(ResourceError::Unknown { .. })
    ));
}

#[tokio::test]
async fn a_waiting_acquire_fails_when_the_last_lease_ends_without_a_template() {
    let server = FakeServer::master([short(0.0), refused(Reason::UnknownResource)]).await;
    let (_client, resource) = opened(&server, Mode::Pessimistic).await;
    let rate = resource.rate_limiter(Burst::default());
    let gate = resource.concurrency_limiter();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let both = within_patience(async { tokio::join!(rate.acquire(1), gate.acquire(1)) });
    let (first, second) = both.await;
    check_unknown(first);
    check_unknown(second);
}

#[tokio::test]
async fn acquire_works_by_a_lease_or_a_mode_without_a_template() {
    let gone = || refused(Reason::UnknownResource);
    let held = lease(1e6, 20);
    for (answers, mode) in [
        (vec![held, gone()], Mode::Pessimistic),
        // After the lease, the safe capacity.
        (vec![short(1e6), gone()], Mode::Safe),
        (vec![gone()], Mode::Optimistic),
    ] {
        let server = FakeServer::master(answers).await;
        let client = client(&server.address).connect().await.unwrap();
        let resource = client.resource("r").wants(10.0).mode(mode).open().unwrap();
        let gate = resource.concurrency_limiter();
        let rate = resource.rate_limiter(Burst {
            span: Duration::from_secs(1),
            least: 1.0,
        });
        within_patience(async {
            while resource.problem().is_none() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        within_patience(rate.acquire(1)).await.unwrap();
        let _permit = within_patience(gate.acquire(1)).await.unwrap();
    }
}

#[tokio::test]
async fn permits_that_are_all_out_by_the_mode_are_no_unknown_resource() {
    let server = FakeServer::master([refused(Reason::UnknownResource)]).await;
    let client = client(&server.address).connect().await.unwrap();
    let resource = client.resource("r").wants(2.0).mode(Mode::Optimistic);
    let resource = resource.open().unwrap();
    let told = resource.wait_for_lease(PATIENCE).await;
    assert!(matches!(told, Err(ResourceError::Unknown { .. })));
    let gate = resource.concurrency_limiter();
    let _both = gate.acquire(2).await.unwrap();
    assert_eq!(gate.try_acquire(1).unwrap_err().retry_after, None);
}

#[tokio::test]
async fn a_lease_of_zero_is_a_lease_and_lasts_though_the_template_is_gone() {
    let server = FakeServer::master([lease(0.0, 20), refused(Reason::UnknownResource)]).await;
    let (_client, resource) = opened(&server, Mode::Pessimistic).await;
    within_patience(async {
        while resource.problem().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let rate = resource.rate_limiter(Burst::default());
    let rate = rate.try_acquire(1).unwrap_err();
    let gate = resource.concurrency_limiter().try_acquire(1).unwrap_err();
    for refusal in [rate, gate] {
        assert!(refusal.retry_after.is_some(), "{refusal:?}");
    }
}

#[tokio::test]
async fn another_refusal_is_waited_out() {
    let answers = [refused(Reason::NotReady), lease(1e6, 60_000)];
    let server = FakeServer::master(answers).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    let rate = resource.rate_limiter(Burst::default());
    let gate = resource.concurrency_limiter();
    let both = within_patience(async { tokio::join!(rate.acquire(1), gate.acquire(1)) });
    let (first, second) = both.await;
    assert!(first.is_ok() && second.is_ok());
}

#[tokio::test]
async fn after_a_lease_of_zero_retry_after_is_when_the_next_answer_is_due() {
    for mode in [Mode::Safe, Mode::Pessimistic] {
        // The lease lasts for a minute, and is refreshed after 10 s.
        let server = FakeServer::master([lease(0.0, 10_000)]).await;
        let client = client(&server.address).connect().await.unwrap();
        let resource = client.resource("r").wants(10.0).mode(mode).open().unwrap();
        resource.wait_for_lease(PATIENCE).await.unwrap();
        let rate = resource.rate_limiter(Burst::default());
        let rate = rate.try_acquire(1).unwrap_err();
        let gate = resource.concurrency_limiter().try_acquire(1).unwrap_err();
        for refusal in [rate, gate] {
            let wait = refusal.retry_after.unwrap();
            assert!(wait <= Duration::from_secs(10), "{mode:?}: {wait:?}");
        }
    }
}

#[tokio::test]
async fn a_wait_for_one_limiter_does_not_affect_the_other() {
    let server = FakeServer::master([lease(2.0, 60_000)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let rate = resource.rate_limiter(Burst::default());
    let gate = resource.concurrency_limiter();
    let mut dear = task::spawn(rate.acquire(1_000_000));
    assert_pending!(dear.poll());
    let permit = gate.try_acquire(1).unwrap();
    let other = within_patience(gate.acquire(1)).await.unwrap();
    // And the reverse: a caller that waits for permits does not affect the rate.
    let mut many = task::spawn(gate.acquire(2));
    assert_pending!(many.poll());
    drop(dear);
    let wait = rate.try_acquire(1_000).unwrap_err().retry_after.unwrap();
    assert!(wait <= Duration::from_secs(500), "{wait:?}");
    assert_eq!(gate.try_acquire(1).unwrap_err().retry_after, None);
    drop((permit, other));
    let _both = within_patience(many).await.unwrap();
}

#[tokio::test]
async fn nothing_is_admitted_once_a_release_is_on_its_way() {
    let mut server = FakeServer::master([lease(1e6, 60_000)]).await;
    let (client, resource) = opened(&server, Mode::Safe).await;
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let rate = resource.rate_limiter(Burst::default());
    let gate = resource.concurrency_limiter();
    let closing = tokio::spawn(client.close());
    assert_eq!(server.next_release().await.resource_id, ["r"]);
    assert_eq!(rate.try_acquire(1).unwrap_err().why, Why::Closed);
    assert_eq!(gate.try_acquire(1).unwrap_err().why, Why::Closed);
    closing.await.unwrap();
}

#[tokio::test]
async fn a_lease_with_permits_out_is_not_released_when_the_client_closes() {
    let mut server = FakeServer::master([lease(5.0, 60_000)]).await;
    let (client, resource) = opened(&server, Mode::Safe).await;
    resource.wait_for_lease(PATIENCE).await.unwrap();
    let gate = resource.concurrency_limiter();
    let permit = gate.acquire(1).await.unwrap();
    client.close().await;
    assert_eq!(server.releases(), []);
    drop(permit);
}
