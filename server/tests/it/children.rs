//! A server as a parent. The tests drive its children by hand.

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::{GetServerCapacityRequest, GetServerCapacityResponse, Lease};
use doorward_server::app::Server;
use doorward_server::limits::ServerLimit;
use doorward_session::close_reason::CloseReason;
use tonic::Code;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::bad_input::RawRequest;
use crate::driven_child::{
    Child, PROMPT, ask, has, old, poll, poll_gets, refused_both_ways, says_why, the, wants,
};
use crate::logs::Logs;
use crate::plans;
use crate::running::{
    asked, asked_with, capacity, channel, check_lines, config, eventually, get, gets, start,
    started, status_of,
};

fn lose_mastership(server: &Server) {
    let there = Mastership::Elsewhere {
        master_address: "there:6970".to_owned(),
        epoch: Some(9),
    };
    let node = server.state().node();
    node.change(|node, now| node.handle_mastership(there, now));
}

#[tokio::test]
async fn a_stream_tells_what_a_call_tells() {
    let (one, other) = (start().await, start().await);
    let asks = || vec![wants("fair/x", 60.0, 3), wants("bands", 9.0, 3)];
    let request = || ask("eu", 7, asks());
    let timeless = |mut response: GetServerCapacityResponse| {
        for told in &mut response.response {
            assert!(told.gets.expires_in_ms.is_some_and(|left| left > 59_000));
            told.gets = Lease {
                capacity: told.gets.capacity,
                ..Lease::default()
            };
        }
        response
    };
    let called = timeless(poll(&mut capacity(&one).await, request()).await);
    let streamed = timeless(Child::open(&other).await.ask(request()).await);
    assert_eq!(called, streamed);
    assert_eq!(called.ancestor, ["root"]);
    let x = &called.response[0];
    assert_eq!((x.gets.capacity, x.share), (60.0, Some(60.0)));
    assert_eq!(x.sequence, Some(7));
    assert!(x.algorithm.is_some() && x.safe_capacity.is_some());
    assert_eq!(called.response[1].band.len(), 1);
}

#[tokio::test]
async fn what_changes_is_told_without_asking() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let mut eu = Child::open(&server).await;
    let all = || wants("fair/x", 100.0, 1);
    assert_eq!(eu.gets(ask("eu", 5, vec![all()])).await, 100.0);
    get(&mut client, "c", vec![asked("fair/x", 100.0)]).await;
    let told = eu.told().await;
    assert_eq!(the(&told).gets.capacity, 50.0);
    assert_eq!(the(&told).sequence, Some(5), "its newest request");
    // The client gets its part only once the child has less.
    let waits = || asked_with("fair/x", 100.0, 0.0);
    assert_eq!(gets(&mut client, "c", waits()).await, 0.0);
    let answer = eu.ask(ask("eu", 6, vec![has(50.0, all())])).await;
    assert_eq!(the(&answer).gets.capacity, 50.0);
    assert_eq!(the(&answer).sequence, Some(6));
    assert_eq!(gets(&mut client, "c", waits()).await, 50.0);
    // The same in the other direction.
    get(&mut client, "c", vec![asked_with("fair/x", 20.0, 20.0)]).await;
    let mut last = eu.told().await;
    while the(&last).gets.capacity < 80.0 {
        last = eu.told().await;
    }
    assert_eq!(the(&last).gets.capacity, 80.0);
    assert_eq!(the(&last).sequence, Some(6));
}

#[tokio::test]
async fn a_greeting_is_enough_to_be_known() {
    let server = start().await;
    let mut eu = Child::open(&server).await;
    let answer = eu.ask(ask("eu", None, Vec::new())).await;
    assert_eq!((answer.response.len(), answer.refused.len()), (0, 0));
    assert_eq!(answer.ancestor, ["root"]);
    // The child gets a lease by a call. From then on the parent tells it of changes on the stream.
    let mut client = capacity(&server).await;
    poll(&mut client, ask("eu", 1, vec![wants("fair/x", 100.0, 1)])).await;
    get(&mut client, "c", vec![asked("fair/x", 100.0)]).await;
    assert_eq!(the(&eu.told().await).gets.capacity, 50.0);
}

#[tokio::test]
async fn a_child_that_takes_nothing_is_cut_off_and_others_are_served() {
    let logs = Logs::start();
    let mut config = config();
    config.push_round = Duration::from_millis(1);
    let server = started(config).await;
    // This stream has a window of a few bytes. The child does not read it, so it soon takes no more.
    let narrow = Endpoint::from_shared(format!("http://{}", server.grpc_address()))
        .expect("an address")
        .initial_stream_window_size(64)
        .connect()
        .await
        .expect("it listens");
    let mut stuck = Child::open_on(narrow).await;
    let all = || vec![wants("fair/x", 100.0, 1)];
    stuck.send(ask("stuck", 1, all())).await;
    let mut eu = Child::open(&server).await;
    eu.ask(ask("eu", 1, all())).await;
    let mut sequence = 1;
    eventually("it is cut off", async || {
        sequence += 1;
        let more = if sequence % 2 == 0 { 10.0 } else { 90.0 };
        let asked = has(0.0, wants("fair/x", more, 1));
        eu.send(ask("eu", sequence, vec![asked])).await;
        // Skips answers and unasked messages, up to the answer to this request.
        while the(&eu.told().await).sequence != Some(sequence) {}
        logs.count("takes nothing from its stream") > 0
    })
    .await;
    assert_eq!(logs.count("takes nothing from its stream"), 1);
    // The child still has its lease, and the message that was sent before.
    assert!(stuck.next().await.expect("in order").is_some());
    let status = stuck.end().await.expect("it is told why");
    assert_eq!(status.code(), Code::ResourceExhausted);
    says_why(&status, CloseReason::Full);
    let mut again = Child::open(&server).await;
    again.ask(ask("stuck", 2, all())).await;
}

#[tokio::test]
async fn a_child_that_vanishes_is_noticed() {
    let logs = Logs::start();
    let server = start().await;
    let mut eu = Child::open(&server).await;
    eu.ask(ask("eu", 1, vec![wants("fair/x", 100.0, 1)])).await;
    drop(eu);
    eventually("the stream ends", async || {
        logs.count("the stream of a child server ended") == 1
    })
    .await;
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.resources[0].children_count, 1, "its lease lasts");
}

#[tokio::test]
async fn a_child_of_the_old_kind_is_served() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let request = || ask("old", None, vec![old(wants("fair/x", 90.0, 3))]);
    let answer = poll(&mut client, request()).await;
    let told = the(&answer);
    assert_eq!((told.gets.capacity, told.sequence), (90.0, None));
    assert!(told.gets.expiry_time > 1_700_000_000 && told.gets.refresh_interval >= 1);
    let waits = gets(&mut client, "c", asked("fair/x", 90.0)).await;
    assert_eq!(waits, 10.0);
    // Three clients of the child and one client of this server get 25 each. The child does not say when it has shrunk.
    assert_eq!(poll_gets(&mut client, request()).await, 75.0);
    let more = gets(&mut client, "c", asked_with("fair/x", 90.0, 10.0)).await;
    assert_eq!(more, 25.0);
}

#[tokio::test]
async fn a_demand_that_is_none_is_refused_by_name_and_the_rest_is_served() {
    let server = start().await;
    let mut levels_fall = wants("fair/levels-fall", 2.0, 2);
    levels_fall.wants[0].level = vec![2.0, 1.0];
    levels_fall.wants[0].demand = vec![1.0, 2.0];
    let invalid = [
        levels_fall,
        wants("fair/negative", -1.0, 2),
        has(-1.0, wants("fair/has", 1.0, 1)),
    ];
    let valid = [wants("fair/x", 60.0, 3), wants("nowhere", 60.0, 3)];
    let request = || ask("eu", 1, [&invalid[..], &valid].concat());
    let called = poll(&mut capacity(&server).await, request()).await;
    let streamed = Child::open(&server).await.ask(request()).await;
    for response in [called, streamed] {
        assert_eq!(response.response.len(), 1);
        assert_eq!(response.response[0].resource_id, "fair/x");
        assert_eq!(response.refused.len(), 1 + invalid.len(), "{response:?}");
        for refused in response.refused {
            let (resource, message) = (refused.resource_id(), refused.message());
            if resource == "nowhere" {
                assert_eq!(refused.reason(), Reason::UnknownResource);
            } else {
                assert_eq!(refused.reason(), Reason::InvalidRequest);
                assert!(message.contains(resource), "{refused:?}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_is_its_own_child() {
    let server = start().await;
    let request = ask("root", 1, vec![wants("fair/x", 60.0, 3)]);
    for status in refused_both_ways(&server, request).await {
        assert_eq!(status.code(), Code::FailedPrecondition);
        says_why(&status, CloseReason::Cycle);
        let text = status.message();
        assert!(text.contains("root cannot be a child of root"), "{text}");
        assert!(text.contains("--node and --parent"), "{text}");
    }
    assert_eq!(status_of(server.state(), None, 0).resources.len(), 0);
}

#[tokio::test]
async fn a_request_about_too_many_resources_is_refused_as_a_whole() {
    let server = start().await;
    let asks = (0..1_001).map(|number| wants(&format!("fair/{number}"), 1.0, 1));
    let request = ask("eu", 1, asks.collect());
    for status in refused_both_ways(&server, request).await {
        assert_eq!(status.code(), Code::InvalidArgument);
        says_why(&status, CloseReason::Malformed);
        assert!(status.message().contains("split it"), "{status}");
    }
    assert_eq!(status_of(server.state(), None, 0).resources.len(), 0);
}

#[tokio::test]
async fn streams_are_counted() {
    let server = start().await;
    let mut children = Vec::new();
    for name in ["eu", "us"] {
        let mut child = Child::open(&server).await;
        let request = ask(name, 1, vec![wants("fair/x", 10.0, 1)]);
        child.ask(request).await;
        children.push(child);
    }
    let text = crate::running::metrics(&server).await;
    let method = "doorward.v1.CapacityStream/StreamServerCapacity";
    let calls = format!("doorward_rpcs_total{{method=\"{method}\",code=\"OK\"}} 2");
    check_lines(&text, &[&calls, "doorward_children 2.0"]);
}

#[tokio::test]
async fn a_follower_sends_children_to_the_master() {
    let server = start().await;
    let mut eu = Child::open(&server).await;
    eu.ask(ask("eu", 1, vec![wants("fair/x", 10.0, 1)])).await;
    lose_mastership(&server);
    // The server tells the child at once, and unasked.
    let told = eu.told().await.mastership.expect("not the master");
    assert_eq!((told.master_address(), told.epoch()), ("there:6970", 9));
    let status = eu.end().await.expect("it is told why");
    assert_eq!(status.code(), Code::Aborted);
    says_why(&status, CloseReason::NotMaster);

    let mut late = Child::open(&server).await;
    let answer = late.ask(ask("eu", 2, Vec::new())).await;
    let mastership = answer.mastership.expect("not the master");
    assert_eq!(mastership.master_address(), "there:6970");
    says_why(
        &late.end().await.expect("it is told why"),
        CloseReason::NotMaster,
    );
}

#[tokio::test]
async fn a_childs_older_master_takes_nothing_from_its_newer_one() {
    let server = start().await;
    let of = |epoch, sequence, amount| GetServerCapacityRequest {
        epoch: Some(epoch),
        ..ask("eu", sequence, vec![wants("fair/x", amount, 1)])
    };
    let mut older = Child::open(&server).await;
    assert_eq!(older.gets(of(7, 1_000, 10.0)).await, 10.0);
    // The clock of the newer process is behind that of its predecessor. The epoch decides.
    let mut newer = Child::open(&server).await;
    assert_eq!(newer.gets(of(8, 50, 20.0)).await, 20.0);
    assert_eq!(older.end().await.map(|end| end.code()), Some(Code::Aborted));

    let mut again = Child::open(&server).await;
    again.send(of(7, 2_000, 90.0)).await;
    let refused = again.end().await.expect("it is told why");
    says_why(&refused, CloseReason::OlderMaster);
    let text = refused.message();
    assert!(text.contains("a newer master of eu"), "{text}");
    let mut client = capacity(&server).await;
    let polled = poll_gets(&mut client, of(7, 3_000, 90.0)).await;
    assert_eq!(polled, 20.0, "out of order: nothing is changed");
    assert_eq!(newer.gets(of(8, 51, 30.0)).await, 30.0);
}

#[tokio::test]
async fn a_status_tells_where_child_servers_are_and_keeps_those_that_are_gone() {
    let server = start().await;
    let addressed = |text: &str| GetServerCapacityRequest {
        address: Some(text.to_owned()),
        ..ask("eu", 1, vec![wants("fair/x", 10.0, 3)])
    };
    let mut eu = Child::open(&server).await;
    eu.ask(addressed("10.0.0.7:6970")).await;
    // Of the previous release.
    let mut client = capacity(&server).await;
    let older = ask("us", 1, vec![wants("fair/x", 10.0, 4)]);
    client.get_server_capacity(older).await.unwrap();
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.address, server.grpc_address().to_string());
    let [eu_told, us] = status.children.try_into().unwrap();
    assert_eq!(
        (eu_told.child.as_str(), eu_told.state.as_str()),
        ("eu", "streaming")
    );
    assert_eq!(
        (eu_told.address(), eu_told.clients_count),
        ("10.0.0.7:6970", 3.0)
    );
    assert_eq!((us.child.as_str(), us.state.as_str()), ("us", "polling"));
    assert_eq!((us.address, us.clients_count), (None, 4.0));

    drop(eu);
    eventually("its stream is gone", async || {
        let status = status_of(server.state(), None, 0);
        let eu = &status.children[0];
        eu.state == "gone" && eu.leases_remaining_ms.is_some_and(|left| left > 1_000)
    })
    .await;
    let mut request = plans::request(60.0);
    let cut = request
        .templates()
        .replace("capacity: 60", "capacity: 60, subclients_max: 2");
    request.templates = Some(cut);
    let plan = plans::plan(&server, request).await.unwrap();
    assert_eq!(plan.gone_children, ["eu"]);
    let counted = plan.resources[0].children.iter();
    let counted: Vec<_> = counted
        .map(|it| (it.clients_count, it.counted_clients))
        .collect();
    assert_eq!(counted, [(3.0, 2.0), (4.0, 2.0)]);
    // A text that is no address is not passed on.
    let mut evil = Child::open(&server).await;
    evil.ask(addressed("\u{1b}[2J:1")).await;
    assert_eq!(status_of(server.state(), None, 0).children[0].address, None);
}

#[tokio::test]
async fn streams_do_not_hold_up_a_shutdown() {
    let server = start().await;
    let mut idle = Child::open(&server).await;
    idle.ask(ask("eu", 1, vec![wants("fair/x", 10.0, 1)])).await;
    let mut silent = Child::open(&server).await;
    let ending = tokio::time::timeout(PROMPT, server.shutdown()).await;
    assert!(ending.expect("at once"));
    for child in [&mut idle, &mut silent] {
        let status = child.end().await.expect("it is told why");
        assert_eq!(status.code(), Code::Unavailable);
        says_why(&status, CloseReason::Stopping);
        assert!(status.message().contains("shutting down"), "{status}");
    }
}

#[tokio::test]
async fn streams_end_with_a_server_that_is_dropped() {
    let server = start().await;
    let mut eu = Child::open(&server).await;
    eu.ask(ask("eu", 1, vec![wants("fair/x", 10.0, 1)])).await;
    drop(server);
    assert!(eu.end().await.is_some());
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_the_childs_mistake() {
    let server = start().await;
    let mut grpc = tonic::client::Grpc::new(channel(&server).await);
    grpc.ready().await.expect("ready");
    let path = PathAndQuery::from_static("/doorward.v1.CapacityStream/StreamServerCapacity");
    let codec = ProstCodec::<RawRequest, GetServerCapacityResponse>::default();
    // In both messages, field 1 is the name of the caller.
    let request = RawRequest {
        client_id: vec![0xff, 0xfe],
        resource: Vec::new(),
    };
    let request = tonic::Request::new(tokio_stream::once(request));
    let answers = grpc.streaming(request, path, codec).await.expect("opened");
    let mut answers = answers.into_inner();
    let ended = tokio::time::timeout(PROMPT, answers.message()).await;
    let status = ended.expect("at once").expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("UTF-8"), "{status}");
}

#[tokio::test]
async fn streams_of_child_servers_are_as_many_as_there_may_be_whether_they_ask_or_not() {
    // The server sees all children at one address.
    let mut config = config();
    config.bounds.insert(ServerLimit::ChildServersPerAddress, 1);
    let server = started(config).await;
    let mut first = Child::open(&server).await;
    // The child asks for nothing.
    first.ask(ask("eu", 1, Vec::new())).await;
    let mut second = Child::open(&server).await;
    second.send(ask("us", 1, Vec::new())).await;
    let refused = second.end().await.expect("refused");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    says_why(&refused, CloseReason::TooManyOfAddress);
    let flag = "--child-servers-per-address-max";
    assert!(refused.message().contains(flag), "{refused}");
    // A newer stream of a child that has one takes the place of the older stream.
    let mut again = Child::open(&server).await;
    again.ask(ask("eu", 2, Vec::new())).await;
}
