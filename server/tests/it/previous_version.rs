//! Programs of the previous version beside today's, in both roles. They do not know incarnations or the granter of a
//! lease, and do not tell masterships apart.

use std::time::Duration;

use doorward_proto::doorman;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::release_result::Outcome;
use prost::Message;

use crate::driven_child::{ask, has, poll, poll_gets, the, wants};
use crate::driven_client::{Process, RESOURCE, Told};
use crate::fake_parent::{FakeParent, Streams, lease, response};
use crate::processes::{conflicts, start_quick, start_with, status};
use crate::running::{capacity, eventually, start};
use crate::upstream::child;

const CAPACITY: f64 = 100.0;

/// A refusal of the previous version, which knows four reasons.
#[derive(Clone, PartialEq, Message)]
struct PreviousRefusal {
    #[prost(string, optional, tag = "1")]
    resource_id: Option<String>,
    #[prost(enumeration = "PreviousReason", optional, tag = "2")]
    reason: Option<i32>,
    #[prost(string, optional, tag = "3")]
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum PreviousReason {
    Unspecified = 0,
    UnknownResource = 1,
    InvalidRequest = 2,
    TooMany = 3,
    NotReady = 4,
}

#[tokio::test]
async fn a_client_of_the_previous_version_gets_refreshes_shrinks_and_releases() {
    let server = start().await;
    let mut old = Process::start(&server, "old", None, 1_000).await;
    let mut new = Process::start(&server, "new", 1, 5).await;
    assert_eq!(old.asks(90.0).await, Told::Gets(90.0));
    assert_eq!(old.asks(90.0).await, Told::Gets(90.0));
    assert_eq!(new.asks(90.0).await, Told::Gets(10.0));
    assert_eq!(old.asks(90.0).await, Told::Gets(50.0));
    // The old process may still use 90, until it says that it has 50.
    assert_eq!(new.asks(90.0).await, Told::Gets(10.0));
    assert_eq!(old.asks(90.0).await, Told::Gets(50.0));
    assert_eq!(new.asks(90.0).await, Told::Gets(50.0));
    let late = Some(old.sequence);
    assert_eq!(old.releases(late).await[0], Outcome::OutOfOrder);
    let next = Some(old.sequence + 1);
    assert_eq!(old.releases(next).await[0], Outcome::Released);
    assert_eq!(new.asks(90.0).await, Told::Gets(90.0));
    assert_eq!(conflicts(&server).await, 0);
}

#[tokio::test]
async fn a_restart_of_a_client_of_the_previous_version_frees_what_it_had_at_once() {
    let server = start().await;
    let mut before = Process::start(&server, "old", None, 1_000).await;
    assert_eq!(before.asks(90.0).await, Told::Gets(90.0));
    let mut after = Process::start(&server, "old", None, 2_000).await;
    assert_eq!(after.asks(100.0).await, Told::Gets(100.0));
    assert_eq!(conflicts(&server).await, 0);
}

#[tokio::test]
async fn a_client_that_is_upgraded_or_downgraded_is_a_restart() {
    for (before, after) in [(None, Some(1)), (Some(1), None)] {
        let server = start_quick(Duration::from_secs(2)).await;
        let mut before = Process::start(&server, "a", before, 1_000).await;
        assert_eq!(before.asks(80.0).await, Told::Gets(80.0));
        let mut after = Process::start(&server, "a", after, 10).await;
        after.until_gets(80.0).await;
        assert_eq!(conflicts(&server).await, 0);
    }
}

#[tokio::test]
async fn a_client_of_the_previous_version_shares_with_a_process_of_its_name() {
    let server = start().await;
    let mut new = Process::start(&server, "a", 1, 1_000).await;
    let mut old = Process::start(&server, "a", None, 5).await;
    new.asks(60.0).await;
    assert_eq!(old.asks(60.0).await, Told::Gets(40.0));
    for _ in 0..3 {
        new.asks(60.0).await;
        old.asks(60.0).await;
        assert!(old.has + new.has <= CAPACITY);
    }
    assert_eq!((new.has, old.has), (50.0, 50.0));
}

#[test]
fn a_program_of_the_previous_version_reads_a_later_reason_as_unspecified() {
    let refused = doorman::Refusal {
        resource_id: Some(RESOURCE.to_owned()),
        reason: Some(Reason::AnotherProcess.into()),
        message: Some("another live process".to_owned()),
        retry_in_ms: Some(1),
    };
    let bytes = refused.encode_to_vec();
    let read = PreviousRefusal::decode(bytes.as_slice()).expect("unknown fields are passed over");
    assert_eq!(read.reason(), PreviousReason::Unspecified);
    assert_eq!(read.resource_id(), RESOURCE);
    assert!(read.message().contains("another live process"));
}

#[tokio::test]
async fn a_child_of_the_previous_version_keeps_its_lease_when_its_parent_restarts_and_grows_again()
{
    let parent = start_with(|template| {
        template.learning_mode_duration = Some(Duration::from_secs(2));
    })
    .await;
    let mut client = capacity(&parent).await;
    let mut sequence = 1_000;
    let mut next = |wanted: f64, holds: f64| {
        sequence += 1;
        ask("eu", sequence, vec![has(holds, wants(RESOURCE, wanted, 2))])
    };
    let answer = poll(&mut client, next(80.0, 60.0)).await;
    assert_eq!(the(&answer).gets.capacity, 60.0, "confirmed, no more");
    assert_eq!(the(&answer).learning, Some(true));
    let mut other = Process::start(&parent, "c", 1, 1).await;
    assert_eq!(other.asks(20.0).await, Told::Gets(0.0), "the parent learns");
    eventually("it has grown", async || {
        poll_gets(&mut client, next(80.0, 60.0)).await == 80.0
    })
    .await;
    let answer = poll(&mut client, next(80.0, 80.0)).await;
    assert_eq!(the(&answer).learning, None);
    assert_eq!(other.asks(20.0).await, Told::Gets(20.0));
}

#[tokio::test]
async fn a_restarted_child_of_the_previous_version_is_told_what_its_node_has() {
    let parent = start().await;
    let mut client = capacity(&parent).await;
    let before = ask("eu", 1_000, vec![has(60.0, wants(RESOURCE, 60.0, 2))]);
    assert_eq!(poll_gets(&mut client, before).await, 60.0);
    // The child has heard of only one of its two clients so far.
    let learning = |holds: f64| doorman::ServerCapacityResourceRequest {
        has: None,
        outstanding: Some(holds),
        learning: Some(true),
        ..wants(RESOURCE, 20.0, 1)
    };
    let answer = poll(&mut client, ask("eu", 2_000, vec![learning(20.0)])).await;
    let told = the(&answer);
    assert_eq!(told.gets.capacity, 60.0, "what it asked for before counts");
    assert_eq!(told.reserved.unwrap_or(told.gets.capacity), 60.0);
    let lasts = told.inherited_for_ms.expect("how long it has to learn");
    assert!((1..=61_000).contains(&lasts), "{lasts}");
    assert_eq!(told.predecessor_for_ms, None, "it does not say who it is");
    // A late duplicate of the child's previous process gets the lease as an answer, as ever.
    let late = ask("eu", 1_000, vec![has(60.0, wants(RESOURCE, 5.0, 2))]);
    assert_eq!(poll_gets(&mut client, late).await, 60.0);
    let learned = ask("eu", 3_000, vec![has(60.0, wants(RESOURCE, 100.0, 2))]);
    assert_eq!(poll_gets(&mut client, learned).await, CAPACITY);
    assert_eq!(conflicts(&parent).await, 0);
}

#[tokio::test]
async fn a_child_whose_server_is_upgraded_and_back_is_served_all_the_time() {
    let parent = start().await;
    let mut client = capacity(&parent).await;
    let versions = [None, Some(7), None, Some(8)];
    for (sequence, incarnation) in (1_000..).zip(versions) {
        // A process that has just started learns: it does not know yet what its predecessor handed out.
        let learns = doorman::ServerCapacityResourceRequest {
            learning: Some(true),
            ..has(60.0, wants(RESOURCE, 60.0, 2))
        };
        let request = doorman::GetServerCapacityRequest {
            incarnation,
            mastership: incarnation,
            ..ask("eu", sequence, vec![learns])
        };
        let gets = poll_gets(&mut client, request).await;
        assert_eq!(gets, 60.0, "{incarnation:?}");
    }
}

/// Answers as a parent of the previous version: 100, by a template with the given learning mode, and without today's
/// fields.
fn previous_parent(
    learning: Duration,
) -> impl FnMut(&doorman::GetServerCapacityRequest) -> crate::fake_parent::Answer {
    move |asked| {
        let answer = |of: &doorman::ServerCapacityResourceRequest| {
            let mut answer = lease(asked, of, CAPACITY);
            if let Some(algorithm) = &mut answer.algorithm {
                algorithm.learning_mode_duration = None;
                algorithm.learning_mode_duration_ms = u64::try_from(learning.as_millis()).ok();
            }
            answer
        };
        Ok(response(asked.resource.iter().map(answer).collect()))
    }
}

#[tokio::test]
async fn a_child_of_a_parent_of_the_previous_version_confirms_and_grants_nothing_fresh_while_it_learns()
 {
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(previous_parent(Duration::from_secs(2)));
    let server = child(&[&parent.address]).await;
    let mut known = Process::start(&server, "known", 1, 1_000).await;
    // The child's previous process granted this.
    known.has = 30.0;
    let mut fresh = Process::start(&server, "fresh", 2, 1_000).await;
    let mut times_learning = 0;
    eventually("it has learned", async || {
        let told = (known.asks(30.0).await, fresh.asks(50.0).await);
        let status = status(&server).await;
        let remaining_ms = status["resources"][0]["learning_remaining_ms"].as_u64();
        let is_learning = remaining_ms.is_some_and(|remaining| remaining > 0);
        if is_learning && matches!(told.0, Told::Gets(_)) {
            times_learning += 1;
            assert_eq!(told.0, Told::Gets(30.0), "confirmed");
            assert_eq!(fresh.has, 0.0, "nothing fresh");
        }
        fresh.has == 50.0
    })
    .await;
    assert!(times_learning > 0, "it learned");
    assert_eq!(known.asks(30.0).await, Told::Gets(30.0));
    assert_eq!(known.asks(40.0).await, Told::Gets(40.0), "it grows");
}

#[tokio::test]
async fn a_child_of_a_parent_of_the_previous_version_that_has_nothing_to_learn_grants_at_once() {
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(previous_parent(Duration::ZERO));
    let server = child(&[&parent.address]).await;
    let mut client = Process::start(&server, "a", 1, 1_000).await;
    client.until_gets(50.0).await;
    let status = status(&server).await;
    assert_eq!(status["conflicts"], serde_json::json!([]));
    assert_eq!(status["parent"]["problem"], serde_json::Value::Null);
}
