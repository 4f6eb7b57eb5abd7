//! A server with as many calls in progress as it allows. They wait for a parent that does not answer.

use std::time::Duration;

use doorward_door::overload::{PUSHBACK, PUSHBACK_SPREAD};
use doorward_engine::templates::Templates;
use doorward_proto::doorman::{DiscoveryRequest, GetCapacityRequest, ReleaseCapacityRequest};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::limits::ServerLimit;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::fake_parent::{FakeParent, Streams};
use crate::running::{admin, asked, capacity, eventually, request};
use crate::upstream::child_config;

/// Returns the retry delay in a refusal.
fn pushback(status: &Status) -> Duration {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    let told = status.metadata().get(PUSHBACK).expect("a time");
    Duration::from_millis(told.to_str().unwrap().parse().unwrap())
}

fn asks() -> GetCapacityRequest {
    request("a", vec![asked("fair/x", 10.0)])
}

/// A server that takes one call at a time, and callers that always have one in progress.
struct Busy {
    server: Server,
    /// The parent that does not answer.
    _parent: FakeParent,
    callers: JoinSet<()>,
}

impl Busy {
    async fn start() -> Self {
        let parent = FakeParent::start(Streams::Served).await;
        parent.keeps_waiting(true);
        let config = child_config(&[&parent.address], Templates::default());
        let mut bounds = config.bounds.clone();
        bounds.insert(ServerLimit::Calls, 1);
        let server = Server::start(ServerConfig { bounds, ..config })
            .await
            .expect("free ports");
        let mut callers = JoinSet::new();
        for _ in 0..2 {
            let mut client = capacity(&server).await;
            callers.spawn(async move {
                loop {
                    // The server refuses one of the two callers, which is the purpose of this setup.
                    let _ = client.get_capacity(asks()).await;
                    tokio::task::yield_now().await;
                }
            });
        }
        Self {
            server,
            _parent: parent,
            callers,
        }
    }

    /// Makes calls until the server refuses one for lack of room, and returns the refusal.
    async fn refused(&self) -> Status {
        let mut client = capacity(&self.server).await;
        let mut refused = None;
        eventually("a call is refused", async || {
            refused = client.get_capacity(asks()).await.err();
            refused.is_some()
        })
        .await;
        refused.expect("it was refused")
    }
}

#[tokio::test]
async fn a_call_too_many_is_told_when_to_come_back_and_whatever_else_is_called_is_served() {
    let busy = Busy::start().await;
    let (least, most) = PUSHBACK_SPREAD;
    let (first, second) = (
        pushback(&busy.refused().await),
        pushback(&busy.refused().await),
    );
    assert!((least..most).contains(&first), "{first:?}");
    assert!((least..most).contains(&second), "{second:?}");
    assert_ne!(first, second, "they do not come back together");

    let mut client = capacity(&busy.server).await;
    client.discovery(DiscoveryRequest {}).await.unwrap();
    let release = ReleaseCapacityRequest {
        client_id: "a".to_owned(),
        resource_id: vec!["fair/x".to_owned()],
        ..ReleaseCapacityRequest::default()
    };
    client.release_capacity(release).await.unwrap();
    let status = doorward_proto::admin::v1::GetStatusRequest::default();
    admin(&busy.server).await.get_status(status).await.unwrap();
    let metrics = crate::running::metrics(&busy.server).await;
    for counter in [
        "doorward_calls_refused_total ",
        "doorward_limit_refused_total{limit=\"calls\"} ",
    ] {
        let refused = metrics.lines().find_map(|line| line.strip_prefix(counter));
        assert!(refused.is_some_and(|count| count != "0"), "{metrics}");
    }
    assert!(metrics.contains("doorward_limit_max{limit=\"calls\"} 1.0\n"));
}

#[tokio::test]
async fn callers_that_go_make_room() {
    let mut busy = Busy::start().await;
    busy.refused().await;
    busy.callers.shutdown().await;
    let mut client = capacity(&busy.server).await;
    eventually("there is room", async || {
        client.get_capacity(asks()).await.is_ok()
    })
    .await;
}
