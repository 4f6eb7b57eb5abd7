//! Messages of many resources: children hear the last decisions, and others are served in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use doorward_clock::Instant;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::Via;
use doorward_engine::node::Config;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use tokio_stream::StreamExt;
use tokio_test::{assert_pending, task};

use super::*;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::node_handle::NodeHandle;
use crate::rpc::child_outbox::{Outgoing, channel};
use crate::rpc::stream;

/// More resources than are parsed between two yields. With the slow clock, the node's lock is released after each.
const RESOURCES: usize = 200;

/// Returns a time 1 ms later on each call, so that each resource takes long for the node.
fn slow() -> Instant {
    static READ: AtomicU64 = AtomicU64::new(0);
    let beginning = Instant::now() - Duration::MAX;
    beginning + Duration::from_millis(READ.fetch_add(1, Ordering::Relaxed))
}

/// A master with 100 of each resource, and the streams of its children.
struct Parent {
    board: Arc<Board>,
    metrics: Metrics,
    streams: Arc<StreamsHandle>,
}

impl Parent {
    fn new() -> Self {
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("*".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(5)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        }])
        .unwrap();
        let config = Config {
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let node = Arc::new(NodeHandle::new(config, templates, Clock::start_by(slow)));
        let master = Mastership::Master { epoch: Some(1) };
        node.change(|node, now| node.handle_mastership(master, now));
        let text = String::new;
        let board = Arc::new(Board::new(text(), text(), text(), node));
        Self {
            metrics: Metrics::new(&board),
            streams: Arc::new(StreamsHandle::new(Arc::clone(&board), Duration::ZERO)),
            board,
        }
    }

    /// Opens the stream of a child.
    fn open(&self, name: &str) -> Child<'_> {
        let (answers, heard) = channel();
        let mut stream = self.streams.connect(answers);
        let child = HolderName::new(name).unwrap();
        stream.greet(&child, &asks_of(name, 0.0), None);
        Child {
            parent: self,
            name: name.to_owned(),
            stream,
            heard,
            has: BTreeMap::new(),
        }
    }

    /// Returns what a child may use of each resource.
    fn books(&self, child: &str) -> BTreeMap<String, f64> {
        let of = |resource: usize| {
            let id = ResourceId::new(&resource_id(resource)).unwrap();
            let children = self
                .board
                .node()
                .read(|node, now| node.child_snapshots(&id, now));
            let mut its = children
                .into_iter()
                .filter(|it| it.holder.name.as_str() == child);
            (resource_id(resource), its.next().unwrap().granted)
        };
        (0..RESOURCES).map(of).collect()
    }
}

/// The child's side of a stream.
struct Child<'a> {
    parent: &'a Parent,
    name: String,
    stream: Connected,
    heard: Outgoing,
    /// Amount that it heard last, for each resource.
    has: BTreeMap<String, f64>,
}

impl Child<'_> {
    /// Asks for `wants` of each resource on its stream.
    async fn ask(&self, wants: f64) {
        let request = asks_of(&self.name, wants);
        let parsed = stream::parse(&self.parent.metrics, &request, None)
            .await
            .unwrap();
        let place = self.stream.place().await.unwrap();
        let decide = stream::decide(&self.parent.board, parsed, Via::Stream);
        self.stream.answer(&self.name, place, decide).await;
    }

    /// Reads all queued messages. Returns their number.
    async fn hear(&mut self) -> usize {
        let mut messages = 0;
        let mut heard = task::spawn(&mut self.heard);
        while let Poll::Ready(Some(message)) = heard.poll_next() {
            messages += 1;
            for answer in message.unwrap().response {
                self.has.insert(answer.resource_id, answer.gets.capacity);
            }
        }
        messages
    }
}

fn resource_id(number: usize) -> String {
    format!("r{number:03}")
}

/// Returns the request of a child that has one client.
fn asks_of(child: &str, wants: f64) -> wire::GetServerCapacityRequest {
    let ask = |number| wire::ServerCapacityResourceRequest {
        resource_id: resource_id(number),
        wants: vec![wire::PriorityBandAggregate {
            num_clients: 1,
            wants,
            ..wire::PriorityBandAggregate::default()
        }],
        ..wire::ServerCapacityResourceRequest::default()
    };
    wire::GetServerCapacityRequest {
        server_id: child.to_owned(),
        resource: (0..RESOURCES).map(ask).collect(),
        ..wire::GetServerCapacityRequest::default()
    }
}

#[tokio::test]
async fn what_a_child_heard_last_is_what_was_decided_last() {
    let parent = Parent::new();
    let mut first = parent.open("first");
    let second = parent.open("second");
    first.ask(100.0).await;
    first.hear().await;
    assert_eq!(first.has.values().sum::<f64>(), 100.0 * RESOURCES as f64);
    // Each child asks and gets pushes while the other one takes more or less.
    let push = || parent.streams.push();
    let asks = async |child: &Child<'_>, wants: [f64; 2]| {
        // The requests of one child are answered one after the other.
        for wants in wants {
            child.ask(wants).await;
        }
    };
    tokio::join!(
        asks(&second, [80.0, 30.0]),
        push(),
        push(),
        asks(&first, [90.0, 60.0]),
        push(),
        push(),
    );
    while parent.board.node().read(|node, _| node.has_pushes()) {
        push().await;
    }
    assert!(first.hear().await > 2, "it was pushed to");
    assert_eq!(first.has, parent.books("first"));
}

#[tokio::test]
async fn what_is_pushed_waits_for_an_answer_that_has_begun() {
    let parent = Parent::new();
    let mut first = parent.open("first");
    first.ask(100.0).await;
    {
        let decisions = || {
            parent
                .board
                .node()
                .read(|node, _| node.counters().decisions)
        };
        let before = decisions();
        let mut asks = task::spawn(first.ask(90.0));
        // The request is parsed first, a few resources at a time.
        while decisions() == before {
            assert_pending!(asks.poll(), "some of it is decided");
        }
        // Another child takes its share of all resources, by a call of its own.
        let request = asks_of("second", 80.0);
        let parsed = stream::parse(&parent.metrics, &request, None)
            .await
            .unwrap();
        stream::decide(&parent.board, parsed, Via::Poll)
            .await
            .unwrap();
        let mut push = task::spawn(parent.streams.push());
        for _ in 0..1_000 {
            assert_pending!(push.poll(), "it waits");
        }
        asks.await;
        push.await;
    }
    while parent.board.node().read(|node, _| node.has_pushes()) {
        parent.streams.push().await;
    }
    first.hear().await;
    assert_eq!(first.has, parent.books("first"));
}

#[tokio::test]
async fn clients_are_served_in_the_middle_of_an_answer() {
    let parent = Parent::new();
    let mut child = parent.open("child");
    let node = parent.board.node();
    let looks = async {
        let mut seen = Vec::new();
        for _ in 0..RESOURCES {
            seen.push(node.read(|node, _| node.resources_count()));
            tokio::task::yield_now().await;
        }
        seen
    };
    let ((), seen) = tokio::join!(child.ask(1.0), looks);
    let between = seen
        .iter()
        .filter(|count| (1..RESOURCES).contains(*count))
        .count();
    assert!(between >= 2, "{seen:?}");
    assert_eq!(child.hear().await, 1, "one answer all the same");
    assert_eq!(child.has.len(), RESOURCES);
}

#[tokio::test]
async fn a_stream_that_ends_in_the_middle_of_an_answer_hears_nothing_of_it() {
    let parent = Parent::new();
    let former = parent.open("child");
    let mut later = None;
    tokio::join!(former.ask(1.0), async {
        tokio::task::yield_now().await;
        later = Some(parent.open("child"));
    });
    let Child {
        stream, mut heard, ..
    } = former;
    // The task that serves the stream sees its end.
    stream.over().await;
    drop(stream);
    let replaced = heard.next().await.unwrap();
    assert!(replaced.is_err(), "{replaced:?}");

    let mut child = later.unwrap();
    tokio::join!(child.ask(2.0), async {
        tokio::task::yield_now().await;
        parent.streams.end_older(u64::MAX);
    });
    let first = child.heard.next().await.unwrap().unwrap();
    assert!(
        first.response.is_empty(),
        "no capacity of an older mastership"
    );
}
