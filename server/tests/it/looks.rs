//! A look at a server holds up no client, however much the server holds. Each look is short, and no worker waits for it
//! or makes its text.

use std::sync::{Arc, mpsc};
use std::thread;

use doorward_engine::id::ResourceId;
use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{CheckRulesRequest, CheckRulesResponse, GetStatusRequest};
use doorward_server::limits::ServerLimit;
use doorward_server::methods::CHECK_RULES;
use doorward_server::metrics::Metrics;
use doorward_server::metrics::format::Format;
use doorward_server::replica_handle::ReplicaHandle;
use doorward_server::status::listing::{
    LEASES_PER_LOOK, RESOURCES_ADDED_PER_LOOK, RESOURCES_PER_LOOK,
};
use doorward_server::status::{Query, ServerState};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tonic::client::Grpc;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

use crate::running::{
    PATIENCE, admin, asked, capacity, channel, eventually, get, page, start, status_of,
};
use crate::status_pages::{ask, numbered, root};

/// Returns the sum of a histogram, in seconds, and the number of its durations.
fn seen(histogram: &Histogram) -> (f64, u64) {
    let mut registry = Registry::default();
    registry.register("it", "It", histogram.clone());
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let sum = value("it_sum ").unwrap().parse().unwrap();
    (sum, value("it_count ").unwrap().parse().unwrap())
}

/// Counts how many times `act` takes the node's lock.
fn holds<T>(node: &ReplicaHandle, act: impl FnOnce() -> T) -> u64 {
    let held = || seen(&node.lock_times().held).1;
    let before = held();
    act();
    held() - before
}

#[test]
fn metrics_and_a_short_status_take_few_looks_whatever_the_server_holds() {
    for resources in [1_500, 6_000] {
        let state = Arc::new(root(String::new()));
        for part in 0..resources / 500 {
            let ids = numbered(resources).skip(part * 500).take(500);
            ask(&state, "a", ids);
        }
        let metrics = Metrics::new(&state);
        let status = holds(state.node(), || {
            let status = state.answer(&Query::default());
            assert_eq!(status.resources_count, Some(resources as u64));
            assert_eq!(status.leases_count, Some(resources as u64));
        });
        let scrape = holds(state.node(), || metrics.render(Format::Plain).unwrap());
        let added = resources.div_ceil(RESOURCES_ADDED_PER_LOOK) as u64;
        assert!((added..added + 10).contains(&status), "{status}");
        let listed = doorward_server::metrics::RESOURCES_MAX.div_ceil(RESOURCES_PER_LOOK) as u64;
        let least = listed + added;
        assert!((least..least + added + 20).contains(&scrape), "{scrape}");
    }
}

#[test]
fn a_page_of_resources_or_leases_is_read_a_little_at_a_time() {
    let state = root(String::new());
    ask(&state, "a", numbered(1_000));
    let resources = holds(state.node(), || {
        assert_eq!(status_of(&state, None, 0).resources.len(), 1_000);
    });
    let parts = 1_000_u64.div_ceil(RESOURCES_PER_LOOK as u64);
    assert!(resources >= parts, "{resources}");
    for client in 0..1_000 {
        ask(&state, &format!("c{client}"), numbered(1));
    }
    let id = ResourceId::new(&numbered(1).next().unwrap()).unwrap();
    let leases = holds(state.node(), || {
        let status = status_of(&state, Some(&id), usize::MAX);
        assert_eq!(status.resources[0].leases.len(), 1_001);
    });
    let parts = 1_001_u64.div_ceil(LEASES_PER_LOOK as u64);
    assert!(leases >= parts, "{leases}");
    // So is one that is searched for a holder that is not there.
    let searched = holds(state.node(), || {
        assert_eq!(state.leases(&id, 1, "nobody"), []);
    });
    assert!(searched >= parts, "{searched}");
}

#[tokio::test]
async fn while_somebody_who_looks_waits_for_the_lock_the_only_worker_serves_others() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/a", 1.0)]).await;
    let mut admin = admin(&server).await;
    for path in ["/status", "/tree?id=fair%2Fa", "/metrics", "by gRPC"] {
        let (holds, is_held) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let node = Arc::clone(server.state().node());
        let holder = thread::spawn(move || {
            node.read(|_, _| {
                holds.send(()).unwrap();
                released.recv_timeout(PATIENCE).is_ok()
            })
        });
        is_held.recv().unwrap();
        let looks = async {
            if path.starts_with('/') {
                assert_eq!(page(&server, path).await.0, 200, "{path}");
            } else {
                let status = admin.get_status(GetStatusRequest::default()).await.unwrap();
                assert_eq!(status.into_inner().resources.len(), 1);
            }
        };
        let asks = async {
            while server.state().node().waiting() == 0 && !holder.is_finished() {
                tokio::task::yield_now().await;
            }
            assert_eq!(page(&server, "/healthz").await.0, 200);
            // The receiver is gone if the page took too long.
            let _ = release.send(());
        };
        tokio::join!(looks, asks);
        let was_released = holder.join().unwrap();
        assert!(was_released, "{path}: the worker waited for the lock");
    }
}

// The server itself may wait for the lock on a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_wait_for_a_look_only_while_there_is_room_for_their_messages() {
    let server = start().await;
    let limits = server.state().limits();
    limits
        .of(ServerLimit::IncomingBytesPerAddress)
        .set_max(300_000);
    let (holds, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let node = Arc::clone(server.state().node());
    let holder = thread::spawn(move || {
        node.read(|_, _| {
            holds.send(()).unwrap();
            released.recv_timeout(PATIENCE).is_ok()
        })
    });
    is_held.recv().unwrap();
    let mut admin = admin(&server).await;
    let looks = tokio::spawn(async move { admin.get_status(GetStatusRequest::default()).await });
    eventually("a look waits for the lock", async || {
        server.state().node().waiting() > 0
    })
    .await;
    let client = RulesClient::new(channel(&server).await);
    let check = || {
        let (domain, text) = ("api".to_owned(), "#".repeat(200_000));
        let mut client = client.clone();
        tokio::spawn(async move { client.check(CheckRulesRequest { domain, text }).await })
    };
    let used = || limits.of(ServerLimit::IncomingBytes).used();
    let first = check();
    eventually("its message counts", async || used() > 200_000).await;
    let refused = check().await.unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    release.send(()).unwrap();
    assert!(holder.join().unwrap());
    looks.await.unwrap().unwrap();
    let checked = first.await.unwrap().unwrap_err();
    assert_eq!(checked.code(), Code::FailedPrecondition, "it has no rules");
    eventually("no message counts", async || used() == 0).await;
}

/// Otherwise a flood of large messages that are all refused costs more than what is looked at.
#[tokio::test]
async fn a_call_that_may_not_look_is_refused_before_its_message_arrives() {
    let server = start().await;
    // With this rate, any look uses up the time of the caller for long.
    let looks = server.state().limits().of(ServerLimit::LookTimePerAddress);
    looks.set_max(0);
    let mut client = RulesClient::new(channel(&server).await);
    let checked = client
        .check(CheckRulesRequest::default())
        .await
        .unwrap_err();
    assert_eq!(checked.code(), Code::FailedPrecondition, "{checked}");
    // A message that never arrives.
    let path = CHECK_RULES.parse().unwrap();
    let codec = ProstCodec::<CheckRulesRequest, CheckRulesResponse>::default();
    let mut grpc = Grpc::new(channel(&server).await);
    grpc.ready().await.unwrap();
    let never = Request::new(tokio_stream::pending());
    let refused = grpc.client_streaming(never, path, codec).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}

#[test]
fn how_long_the_lock_is_held_and_waited_for_is_counted() {
    let state = Arc::new(root(String::new()));
    let times = |state: &ServerState| {
        let times = state.node().lock_times();
        (seen(&times.held).1, seen(&times.waited))
    };
    let before = times(&state);
    for client in 0..10 {
        ask(&state, &format!("c{client}"), numbered(1));
    }
    let after = times(&state);
    assert_eq!(after.0 - before.0, 10);
    assert_eq!(after.1.1 - before.1.1, 10);
    assert_eq!(after.1.0, 0.0, "nobody else was there");

    // Another thread comes while the lock is held.
    let node = Arc::clone(state.node());
    let waits = state.node().read(|_, _| {
        let other = thread::spawn(move || node.read(|_, _| ()));
        while state.node().waiting() == 0 {
            thread::yield_now();
        }
        other
    });
    waits.join().unwrap();
    let last = times(&state);
    assert!(last.1.0 > 0.0, "{last:?}");
    assert_eq!(last.1.1, after.1.1 + 2);
    let text = Metrics::new(&state).render(Format::Plain).unwrap();
    for name in ["held", "wait"] {
        let buckets = format!("doorward_node_lock_{name}_seconds_bucket{{node=\"root\",le=");
        assert_eq!(text.matches(&buckets).count(), 20, "{name}: {text}");
        let last = format!("{buckets}\"+Inf\"}}");
        assert!(text.contains(&last), "{name}: {text}");
    }
}
