//! A server below the root whose parent refuses its requests, or answers nonsense.

use std::collections::BTreeSet;

use doorward_proto::doorman;
use doorward_proto::doorman::refusal::Reason;
use doorward_server::status::ParentLink;
use tokio::task::JoinSet;
use tonic::Status;

use crate::fake_parent::{FakeParent, Streams, answer_each, generous, lease, refuse, response};
use crate::logs::Logs;
use crate::running::{asked, asked_with, capacity, eventually, get, gets, status_of};
use crate::upstream::{check_count, child, news, until_gets};

#[tokio::test]
async fn a_resource_that_the_parent_does_not_know_is_unknown_here() {
    let logs = Logs::start();
    let mut parent = FakeParent::start(Streams::Served).await;
    parent.answer(refuse(Reason::UnknownResource));
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    for _ in 0..5 {
        let response = get(&mut client, "a", vec![asked("r", 30.0)]).await;
        assert_eq!(response.refused[0].reason(), Reason::UnknownResource);
    }
    assert_eq!(parent.count_asks()["messages"], 1, "it is remembered");
    check_count(&logs, "the parent refuses it", 1);
}

#[tokio::test]
async fn what_else_the_parent_refuses_is_said_to_be_the_parents() {
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(refuse(Reason::TooMany));
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("r", 30.0)]).await;
    let message = response.refused[0].message();
    assert!(message.contains("parent refuses it"), "{message}");
    let retry_in_ms = response.refused[0].retry_in_ms();
    assert!((5_000..7_000).contains(&retry_in_ms), "{retry_in_ms}");
}

#[tokio::test]
async fn a_parent_that_is_not_ready_is_asked_again_soon() {
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(refuse(Reason::NotReady));
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("r", 30.0)]).await;
    assert_eq!(response.refused[0].reason(), Reason::NotReady);
    parent.answer(generous);
    assert_eq!(gets(&mut client, "a", asked("r", 30.0)).await, 30.0);
}

#[tokio::test]
async fn clients_that_hear_not_ready_together_are_told_different_times_to_come_back() {
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(refuse(Reason::NotReady));
    let server = child(&[&parent.address]).await;
    let client = capacity(&server).await;
    let ask = |number: usize| {
        let mut client = client.clone();
        async move {
            let asks = ["r", "q"].map(|resource| asked(resource, 1.0));
            let response = get(&mut client, &format!("c{number}"), asks.to_vec()).await;
            let times = response.refused.iter().map(|refused| {
                assert_eq!(refused.reason(), Reason::NotReady);
                refused.retry_in_ms()
            });
            times.collect::<BTreeSet<u64>>()
        }
    };
    let calls: JoinSet<_> = (0..10).map(ask).collect();
    let told = calls.join_all().await;
    // A client asks again at one time for all resources that were refused together.
    assert!(told.iter().all(|times| times.len() == 1), "{told:?}");
    let times: BTreeSet<u64> = told.into_iter().flatten().collect();
    let in_time = times.iter().all(|time| (1_000..2_000).contains(time));
    assert!(in_time, "{times:?}");
    assert_eq!(times.len(), 10, "{times:?}");
}

#[tokio::test]
async fn nonsense_is_passed_over_and_said_once() {
    let logs = Logs::start();
    let mut parent = FakeParent::start(Streams::Served).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("r", 40.0)]).await;
    until_gets(&mut client, 40.0, 40.0).await;
    let (_, ask) = parent.next_ask().await;
    // If the server asks again meanwhile, it gets no better answer.
    parent.answer(|ask| answer_each(ask, |_| -1.0));
    let sane = lease(&ask, &ask.resource[0], 40.0);
    let [
        mut negative,
        mut over,
        mut bad_parameter,
        mut never_asked,
        mut no_id,
    ] = [&sane; 5].map(Clone::clone);
    negative.gets.capacity = -1.0;
    over.gets = doorman::Lease {
        expires_in_ms: None,
        refresh_in_ms: None,
        expiry_time: 1_000_000_000,
        ..sane.gets
    };
    let algorithm = bad_parameter.algorithm.as_mut().unwrap();
    algorithm.parameters.push(doorman::NamedParameter {
        name: "shrink".to_owned(),
        value: Some("perhaps".to_owned()),
    });
    never_asked.resource_id = "never asked".to_owned();
    no_id.resource_id = "\u{7}".to_owned();
    let all = [negative.clone(), over, bad_parameter, never_asked, no_id];
    for nonsense in all {
        parent.push(Ok(response(vec![nonsense]))).await;
    }
    eventually("it is said", async || logs.count("makes no sense") > 0).await;
    // The stream keeps the order: once this message has arrived, all earlier ones have.
    let mark = doorman::GetServerCapacityResponse {
        ancestor: vec!["mark".to_owned()],
        ..response(Vec::new())
    };
    eventually("all have arrived", async || {
        parent.push(Ok(mark.clone())).await;
        status_of(server.state(), None, 0).ancestors == ["mark"]
    })
    .await;
    check_count(&logs, "makes no sense", 1);
    check_count(&logs, "never asked", 0);
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.resources.len(), 1);
    assert_eq!(status.resources[0].capacity, 40.0);
    let now = gets(&mut client, "a", asked_with("r", 40.0, 40.0)).await;
    assert_eq!(now, 40.0);

    parent.answer(|ask| answer_each(ask, |_| 20.0));
    until_gets(&mut client, 40.0, 20.0).await;
    let (_, ask) = parent.next_ask().await;
    negative.sequence = ask.sequence.map(|sequence| sequence + 1_000_000_000);
    parent.push(Ok(response(vec![negative]))).await;
    let is_news = async || logs.count("makes no sense") == 2;
    eventually("it is news again", is_news).await;
}

#[tokio::test]
async fn a_parent_that_refuses_everything_says_why_on_the_board() {
    let logs = Logs::start();
    let mut parent = FakeParent::start(Streams::Served).await;
    parent.answer(|_| Err(Status::failed_precondition("you are my parent")));
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    eventually("that is told", async || {
        // A client has to ask the server for something.
        get(&mut client, "a", vec![asked("r", 30.0)]).await;
        news(&server).problem.is_some()
    })
    .await;
    let problem = news(&server).problem.unwrap();
    assert!(problem.contains("you are my parent"), "{problem}");
    assert_eq!(news(&server).link, ParentLink::Down);
    check_count(&logs, "cannot be asked", 1);
    let asks: usize = parent.count_asks().values().sum();
    assert!(asks <= 6, "{asks} requests");
}
