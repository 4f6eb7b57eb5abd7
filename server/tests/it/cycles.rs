//! A server that is its own ancestor. It takes nothing from itself, knows of the cycle, and tells others.

use doorward_engine::messages::Cycle;
use doorward_proto::doorman;
use doorward_server::rpc::cycle;

use crate::driven_child::{Child, ask};
use crate::fake_parent::{Ask, FakeParent, Streams, generous};
use crate::logs::Logs;
use crate::running::{asked, capacity, eventually, get, only, page, status_of};
use crate::upstream::child;

#[tokio::test]
async fn nothing_is_taken_from_oneself() {
    let logs = Logs::start();
    let parent = FakeParent::start(Streams::Served).await;
    let in_cycle = |ask: &Ask| {
        Ok(doorman::GetServerCapacityResponse {
            ancestor: vec!["emea".to_owned(), "eu".to_owned(), "root".to_owned()],
            ..generous(ask)?
        })
    };
    parent.answer(in_cycle);
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    for _ in 0..3 {
        let response = get(&mut client, "a", vec![asked("r", 30.0)]).await;
        let message = response.refused[0].message();
        assert!(message.contains("parent refuses it"), "{message}");
    }
    let status = status_of(server.state(), None, 0);
    assert!(status.is_in_cycle);
    assert_eq!(status.resources[0].capacity, 0.0);
    assert_eq!(logs.count("emea → eu → root"), 1, "{}", logs.text());
    parent.answer(generous);
    // The next answer, about any resource, names no cycle.
    let response = get(&mut client, "b", vec![asked("q", 30.0)]).await;
    assert_eq!(only(&response).gets.capacity, 30.0);
    assert!(!status_of(server.state(), None, 0).is_in_cycle);
    assert_eq!(logs.count("its own ancestor no more"), 1, "{}", logs.text());
}

#[tokio::test]
async fn who_is_refused_as_its_own_ancestor_knows_it_and_who_is_above_it() {
    let logs = Logs::start();
    let parent = FakeParent::start(Streams::Served).await;
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let refused = Cycle {
        child: "eu".to_owned(),
        node: "emea".to_owned(),
        path: names(&["emea", "apac", "eu"]),
    };
    parent.answer(move |_| Err(cycle::refusal(&refused)));
    let server = child(&[&parent.address]).await;
    eventually("it knows", async || server.state().is_in_cycle()).await;
    let status = status_of(server.state(), None, 0);
    assert!(status.is_in_cycle);
    assert_eq!(status.ancestors, ["emea", "apac"]);
    let metrics = crate::running::metrics(&server).await;
    assert!(metrics.contains("doorward_is_in_cycle 1.0\n"), "{metrics}");
    let (code, _, why) = page(&server, "/readyz").await;
    assert_eq!(code, 503);
    assert!(why.contains("emea → apac → eu"), "{why}");
    assert_eq!(
        logs.count("would come from itself, by way of its parent"),
        1
    );

    // A server that was a child before, and asks for nothing, hears of the cycle, too.
    let mut apac = Child::open(&server).await;
    apac.send(ask("apac", 1, Vec::new())).await;
    let error = apac.next().await.expect_err("refused");
    let heard = cycle::heard(&error).expect("the way");
    assert_eq!(
        heard.ancestor,
        names(&["eu", "emea", "apac"]) as Vec<String>
    );

    parent.answer(generous);
    eventually("that is over", async || !server.state().is_in_cycle()).await;
    assert_eq!(logs.count("its own ancestor no more"), 1, "{}", logs.text());
}
