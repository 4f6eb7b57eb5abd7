//! Servers in learning mode, and servers that send `decided`, as a program sees them.

use std::time::Duration;

use doorward::state::ClientConfig;
use doorward::{Capacity, Client, LimitedBy, Mode, Source};
use doorward_proto::doorman;
use tokio_stream::StreamExt;

use crate::transport::fake_server::{Answer, FakeServer, lease, with};
use crate::transport::{PATIENCE, opened};

/// Returns a lease of a server that learns for 41 s more, with a refresh interval in milliseconds.
fn learning(capacity: f64, refresh_in_ms: u64) -> Answer {
    with(lease(capacity, refresh_in_ms), |response| {
        response.limited_by = Some(doorman::LimitedBy::Learning.into());
        response.learning_for_ms = Some(41_000);
    })
}

#[tokio::test]
async fn a_resource_at_zero_says_that_the_server_learns_and_for_how_long() {
    let server = FakeServer::master([learning(0.0, 60_000)]).await;
    let (_client, resource) = opened(&server, Mode::Pessimistic).await;
    let before = resource.holding();
    assert_eq!((before.limited_by, before.learning_for), (None, None));
    assert_eq!(resource.wait_for_lease(PATIENCE).await, Ok(Capacity::NONE));
    let holding = resource.holding();
    assert_eq!(
        (holding.capacity, holding.source, holding.limited_by),
        (Capacity::NONE, Source::Lease, Some(LimitedBy::Learning))
    );
    let left = holding.learning_for.unwrap();
    assert!(
        left > Duration::from_secs(10) && left <= Duration::from_secs(41),
        "{left:?}"
    );
    assert_eq!(LimitedBy::Learning.to_string(), "learning mode");
}

#[tokio::test]
async fn the_end_of_learning_mode_is_news_even_with_the_same_capacity() {
    let share = with(lease(0.0, 60_000), |response| {
        response.limited_by = Some(doorman::LimitedBy::Share.into());
    });
    let server = FakeServer::master([learning(0.0, 20), share]).await;
    let (_client, resource) = opened(&server, Mode::Pessimistic).await;
    let mut changes = resource.changes();
    let over = async {
        while let Some(holding) = changes.next().await {
            if holding.limited_by == Some(LimitedBy::Share) {
                return holding.capacity;
            }
        }
        panic!("the changes ended");
    };
    let capacity = tokio::time::timeout(PATIENCE, over).await.unwrap();
    assert_eq!(capacity, Capacity::NONE);
}

#[tokio::test]
async fn a_server_that_tells_whether_it_decided_is_told_other_wants_without_the_early_gap() {
    let decided = |decided, refresh_in_ms| {
        with(lease(8.0, refresh_in_ms), |response| {
            response.decided = Some(decided);
        })
    };
    let answers = [
        decided(true, 60_000),
        decided(false, 50),
        decided(true, 60_000),
    ];
    let mut server = FakeServer::master(answers).await;
    let config = ClientConfig {
        early_gap: Duration::from_secs(3_600),
        ..ClientConfig::default()
    };
    let client = Client::builder()
        .id("c")
        .address(&server.address)
        .config(config);
    let client = client.connect().await.unwrap();
    let resource = client.resource("r").wants(10.0).open().unwrap();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    assert_eq!(server.next_get().await.resource[0].wants, 10.0);
    resource.ask(25.0).unwrap();
    // The answered wants are those of the third request, which was decided.
    let answer = resource.wait_for_answer(25.0, PATIENCE).await;
    assert_eq!(answer, Ok(Capacity::Limited(8.0)));
    for _ in 0..2 {
        assert_eq!(server.next_get().await.resource[0].wants, 25.0);
    }
}
