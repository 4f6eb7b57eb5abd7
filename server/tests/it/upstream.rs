//! A server below the root. Its parent does things that real parents do never or seldom.

use std::time::Duration;

use doorward_engine::templates::Templates;
use doorward_proto::doorman;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::{ServerCapacityResourceRequest, ServerCapacityResourceResponse};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::clock;
use doorward_server::rpc::convert;
use doorward_server::status::{ParentLink, ParentNews};
use doorward_server::transports::parent;
use tonic::transport::Channel;

use crate::fake_parent::{FakeParent, Streams, Way, lease, response};
use crate::logs::Logs;
use crate::running::{
    asked, asked_with, capacity, config, eventually, get, gets, only, request, started, status_of,
    templates,
};

const ROUND: Duration = Duration::from_millis(10);
const SLOW_ROUND: Duration = Duration::from_millis(100);

/// Starts the node `eu`, without templates of its own.
pub(crate) async fn child(addresses: &[&str]) -> Server {
    child_with(addresses, Templates::default()).await
}

async fn child_with(addresses: &[&str], templates: Templates) -> Server {
    started(child_config(addresses, templates)).await
}

pub(crate) fn child_config(addresses: &[&str], templates: Templates) -> ServerConfig {
    let given: Vec<String> = addresses.iter().map(|a| (*a).to_owned()).collect();
    ServerConfig {
        node_name: "eu".to_owned(),
        templates,
        parent: Some(parent::ParentTransportConfig {
            servers: given.into(),
            round: ROUND,
            slow_round: SLOW_ROUND,
        }),
        ..config()
    }
}

pub(crate) fn news(server: &Server) -> ParentNews {
    server
        .state()
        .parent
        .borrow()
        .clone()
        .expect("it has a parent")
}

pub(crate) async fn until_link(server: &Server, link: ParentLink) {
    eventually(&format!("the link is {link:?}"), async || {
        news(server).link == link
    })
    .await;
}

/// Checks how many times a message was logged.
#[track_caller]
pub(crate) fn check_count(logs: &Logs, text: &str, count: usize) {
    assert_eq!(logs.count(text), count, "{text}:\n{}", logs.text());
}

/// Asks for `r` as a client until the server grants `gets`.
pub(crate) async fn until_gets(client: &mut CapacityClient<Channel>, wants: f64, gets: f64) {
    let mut last = None;
    let what = format!("{gets} of {wants}");
    eventually(&what, async || {
        let has = last.map(|has| asked_with("r", wants, has));
        let response = get(client, "a", vec![has.unwrap_or(asked("r", wants))]).await;
        last = response.response.first().map(|r| r.gets.capacity);
        last == Some(gets)
    })
    .await;
}

#[tokio::test]
async fn the_parent_is_asked_for_what_holders_ask_for_and_told_what_they_have() {
    let mut parent = FakeParent::start(Streams::Served).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    let (way, greeting) = parent.next().await;
    assert_eq!((way, greeting.resource.len()), (Way::Stream, 0));
    assert_eq!(greeting.server_id, "eu");

    assert_eq!(gets(&mut client, "a", asked("r", 30.0)).await, 30.0);
    let (way, first) = parent.next_ask().await;
    assert_eq!((way, first.height), (Way::Stream, Some(1)));
    assert_eq!(first.server_id, "eu");
    let [r] = first.resource.as_slice() else {
        panic!("not one resource: {first:?}");
    };
    assert_eq!((r.resource_id.as_str(), r.has), ("r", None));
    assert_eq!(r.outstanding, Some(0.0));
    let [band] = r.wants.as_slice() else {
        panic!("not one priority: {r:?}");
    };
    assert_eq!((band.num_clients, band.wants), (1, 30.0));
    assert_eq!((&*band.level, &*band.demand), (&[30.0][..], &[30.0][..]));

    get(&mut client, "b", vec![asked("r", 10.0)]).await;
    let mut before = first.sequence.expect("ours");
    let second = loop {
        let (_, ask) = parent.next_ask().await;
        let sequence = ask.sequence.expect("ours");
        assert!(sequence > before, "{sequence} after {before}");
        before = sequence;
        assert_eq!(ask.resource.len(), 1, "nobody asks for anything else");
        if ask.resource[0].wants[0].num_clients == 2 {
            break ask.resource[0].clone();
        }
    };
    let has = second.has.expect("a lease");
    assert_eq!((has.capacity, second.outstanding), (30.0, Some(30.0)));
    assert!((1..=60_000).contains(&has.expires_in_ms.expect("ours")));
    assert_eq!(second.wants[0].level, [10.0, 30.0]);
    assert_eq!(second.wants[0].demand, [20.0, 40.0]);
}

#[tokio::test]
async fn what_the_last_client_releases_is_given_back() {
    let mut parent = FakeParent::start(Streams::Served).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("r", 30.0)]).await;
    let release = doorman::ReleaseCapacityRequest {
        budget: Vec::new(),
        incarnation: None,
        client_id: "a".to_owned(),
        resource_id: vec!["r".to_owned()],
        sequence: None,
    };
    client.release_capacity(release).await.expect("served");
    loop {
        let (_, ask) = parent.next_ask().await;
        let r = &ask.resource[0];
        if r.wants.iter().all(|band| band.wants == 0.0) {
            assert_eq!((r.has, r.outstanding), (None, Some(0.0)));
            break;
        }
    }
    eventually("it is forgotten", async || {
        status_of(server.state(), None, 0).resources.is_empty()
    })
    .await;
    assert_eq!(parent.count_asks().get("messages"), None);
}

#[tokio::test]
async fn a_parent_that_knows_no_streams_is_polled_and_no_faster_than_its_floor() {
    let logs = Logs::start();
    let mut parent = FakeParent::start(Streams::Unknown).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    until_link(&server, ParentLink::Poll).await;
    assert_eq!(news(&server).problem, None);
    let began = tokio::time::Instant::now();
    // The client always has something new to ask for.
    let mut wants = 0.0;
    while began.elapsed() < 5 * SLOW_ROUND {
        wants = wants % 50.0 + 1.0;
        get(&mut client, "a", vec![asked("r", wants)]).await;
    }
    until_gets(&mut client, 50.0, 50.0).await;
    let asks = parent.count_asks();
    let rounds = began.elapsed().as_millis() / SLOW_ROUND.as_millis();
    let calls = u128::try_from(asks["calls"]).unwrap();
    let possible = 2..=rounds + 2;
    assert!(possible.contains(&calls), "{calls} in {rounds} rounds");
    assert_eq!(asks.len(), 1, "{asks:?}");
    check_count(&logs, "does not work; it is polled", 1);
    check_count(&logs, "cannot be asked", 0);
}

#[tokio::test]
async fn a_stream_that_stalls_is_noticed_and_polling_takes_over() {
    let logs = Logs::start();
    let mut parent = FakeParent::start(Streams::Silent).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    let began = tokio::time::Instant::now();
    until_gets(&mut client, 30.0, 30.0).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(news(&server).link, ParentLink::Poll);
    check_count(&logs, "no answer on the stream within 2s", 1);
    check_count(&logs, "cannot be asked", 0);
    assert!(parent.count_asks()["calls"] <= 3);
}

#[tokio::test]
async fn a_parent_that_wants_to_be_asked_at_once_is_asked_in_rounds() {
    let mut parent = FakeParent::start(Streams::Served).await;
    parent.answer(|ask| {
        let hasty = |asked| {
            let mut told = lease(ask, asked, 30.0);
            told.gets.refresh_in_ms = Some(0);
            told
        };
        Ok(response(ask.resource.iter().map(hasty).collect()))
    });
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    until_gets(&mut client, 30.0, 30.0).await;
    // A round passes between two messages, however soon the parent wants the next one.
    let since = tokio::time::Instant::now();
    for _ in 0..6 {
        parent.next_ask().await;
    }
    assert!(since.elapsed() >= 4 * ROUND, "{:?}", since.elapsed());
    parent.answer(|ask| {
        let ahead = |asked| ServerCapacityResourceResponse {
            sequence: ask.sequence.map(|sequence| sequence + 1),
            ..lease(ask, asked, 30.0)
        };
        Ok(response(ask.resource.iter().map(ahead).collect()))
    });
    // An answer whose sequence is ahead of the request does not make the server ask without end.
    parent.count_asks();
    for wants in [40.0, 41.0, 42.0, 43.0] {
        get(&mut client, "a", vec![asked_with("r", wants, 30.0)]).await;
        parent.next_ask().await;
    }
    let more = parent.count_asks();
    let messages = more.get("messages").copied();
    assert!(messages.is_none_or(|it| it <= 4), "{more:?}");
}

#[tokio::test]
async fn a_slow_parent_is_waited_for() {
    let mut parent = FakeParent::start(Streams::Served).await;
    parent.keeps_waiting(true);
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    let asking = tokio::spawn(async move { gets(&mut client, "a", asked("r", 30.0)).await });
    parent.next_ask().await;
    assert!(!asking.is_finished(), "nothing is known yet");
    parent.keeps_waiting(false);
    assert_eq!(asking.await.unwrap(), 30.0);
    assert_eq!(news(&server).link, ParentLink::Stream);
}

#[tokio::test]
async fn a_doorman_parent_is_understood() {
    let parent = FakeParent::start(Streams::Unknown).await;
    let ends = clock::wall() + Duration::from_secs(30);
    let expiry_time = i64::try_from(ends.as_secs()).unwrap();
    parent.answer(move |ask| {
        let gets = doorman::Lease {
            capacity: 25.0,
            expiry_time,
            refresh_interval: 5,
            ..doorman::Lease::default()
        };
        let old = |asked: &ServerCapacityResourceRequest| ServerCapacityResourceResponse {
            resource_id: asked.resource_id.clone(),
            gets,
            safe_capacity: Some(3.0),
            ..ServerCapacityResourceResponse::default()
        };
        Ok(response(ask.resource.iter().map(old).collect()))
    });
    let server = child_with(&[&parent.address], templates()).await;
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", vec![asked("fair/x", 40.0)]).await;
    let told = only(&response);
    assert_eq!((told.gets.capacity, told.safe_capacity), (25.0, Some(3.0)));
    let left = ends.saturating_sub(clock::wall()) + Duration::from_secs(1);
    let expires_in = Duration::from_millis(told.gets.expires_in_ms.unwrap());
    assert!(expires_in <= left, "{expires_in:?} of {left:?}");
    assert!(told.gets.expiry_time <= expiry_time);
    assert_eq!(news(&server).link, ParentLink::Poll);

    // The server does not know a resource that its parent says nothing of.
    parent.answer(|_| Ok(doorman::GetServerCapacityResponse::default()));
    let response = get(&mut client, "a", vec![asked("fair/y", 40.0)]).await;
    assert_eq!(response.refused[0].reason(), Reason::UnknownResource);
}

#[tokio::test]
async fn how_long_it_learns_the_log_tells_once_the_parent_has_told() {
    let logs = Logs::start();
    let parent = FakeParent::start(Streams::Served).await;
    parent.answer(|ask| {
        let inherits = |asked| {
            let mut lease = lease(ask, asked, 10.0);
            lease.inherited_for_ms = Some(40_900);
            if let Some(algorithm) = &mut lease.algorithm {
                algorithm.learning_mode_duration = Some(60);
            }
            lease
        };
        Ok(response(ask.resource.iter().map(inherits).collect()))
    });
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    for client_id in ["a", "b"] {
        get(&mut client, client_id, vec![asked("r", 1.0)]).await;
    }
    let status = status_of(server.state(), None, 0);
    let told = status.resources[0].learning.as_deref().expect("it learns");
    assert!(told.contains("the templates of the root say"), "{told}");
    check_count(&logs, "learning mode began", 1);
    check_count(&logs, "lasts=\"40.", 1);
}

#[tokio::test]
async fn very_many_resources_are_asked_for_on_one_stream() {
    let mut parent = FakeParent::start(Streams::Served).await;
    let server = child(&[&parent.address]).await;
    let mut client = capacity(&server).await;
    until_link(&server, ParentLink::Stream).await;
    let many = |part: usize| {
        let ids = (part * 1_000..(part + 1) * 1_000).map(|number| format!("r{number}"));
        ids.map(|id| asked(&id, 1.0)).collect::<Vec<_>>()
    };
    let node = server.state().node();
    node.change(|node, now| {
        for part in 0..10 {
            let asks = request("a", many(part));
            let (asks, _) = convert::get_capacity(asks, None, clock::wall()).unwrap();
            node.handle_get_capacity(&asks, now);
        }
    });
    eventually("all are leased", async || {
        let capacity: f64 = node.read(|node, now| {
            let resources = node.snapshots_after(None, usize::MAX, now);
            resources.iter().map(|resource| resource.capacity).sum()
        });
        capacity == 10_000.0
    })
    .await;
    assert_eq!(news(&server).link, ParentLink::Stream);
    assert_eq!(parent.count_asks().get("calls"), None);
    let response = get(&mut client, "a", many(3)).await;
    assert_eq!(response.response.len(), 1_000);
}

#[tokio::test]
async fn a_child_that_shuts_down_ends_its_stream() {
    let parent = FakeParent::start(Streams::Served).await;
    let server = child(&[&parent.address]).await;
    until_link(&server, ParentLink::Stream).await;
    assert!(parent.has_stream());
    assert!(server.shutdown().await);
    eventually("the stream ends", async || !parent.has_stream()).await;
}
