//! Limits of the queue, in messages and in bytes.

use super::*;

fn answer(bytes: usize) -> ChildMessage {
    wire::GetServerCapacityResponse {
        ancestor: vec!["x".repeat(bytes)],
        ..wire::GetServerCapacityResponse::default()
    }
}

#[tokio::test]
async fn a_child_that_takes_nothing_has_no_more_than_so_much_waiting() {
    let (answers, mut outgoing) = channel();
    let sent = (0..1_000).take_while(|_| answers.try_send(answer(10)).is_ok());
    assert_eq!(sent.count(), BACKLOG_MAX);
    for _ in 0..BACKLOG_MAX {
        outgoing.next().await.expect("it was sent").expect("well");
    }
    let large = BACKLOG_BYTES_MAX / 4;
    let sent = (0..1_000).take_while(|_| answers.try_send(answer(large)).is_ok());
    assert_eq!(sent.count(), 4);
    outgoing.next().await.expect("it was sent").expect("well");
    assert_eq!(answers.try_send(answer(1)), Ok(()));
    drop(outgoing);
    assert_eq!(answers.try_send(answer(1)), Err(NotSent::Closed(())));
}

#[tokio::test]
async fn a_child_that_took_nothing_hears_why_its_stream_ends_after_all_that_it_was_sent() {
    let (answers, mut outgoing) = channel();
    while answers.try_send(answer(10)).is_ok() {}
    assert!(answers.end(RpcStatus::aborted("replaced")));
    assert!(
        !answers.end(RpcStatus::aborted("late")),
        "the first word counts"
    );
    assert!(answers.ending().is_some());
    drop(answers);
    for _ in 0..BACKLOG_MAX {
        outgoing.next().await.expect("it was sent").expect("well");
    }
    let status = outgoing
        .next()
        .await
        .expect("an answer")
        .expect_err("the end");
    assert_eq!(status.message(), "replaced");
    assert!(outgoing.next().await.is_none());
}

#[tokio::test]
async fn a_stream_of_whose_end_nobody_says_anything_ends_in_order() {
    let (answers, mut outgoing) = channel();
    drop(answers);
    assert!(outgoing.next().await.is_none());
}
