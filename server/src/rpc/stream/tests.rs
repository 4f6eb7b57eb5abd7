//! Messages of many resources: children hear the last decisions, and others are served in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::id::ResourceId;
use doorward_engine::node::Config;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_replica::ReplicaConfig;
use tokio_stream::StreamExt;
use tokio_test::{assert_pending, task};

use super::*;
use crate::clock::Clock;
use crate::replica_handle::ReplicaHandle;
use crate::rpc::child_outbox::{Outgoing, channel};

/// More resources than are parsed between two yields. With the slow clock, the node's lock is released after each.
const RESOURCES: usize = 200;

/// Returns a time 1 ms later on each call, so that each resource takes long for the node.
fn slow() -> Instant {
    static READ: AtomicU64 = AtomicU64::new(0);
    let beginning = Instant::now() - Duration::MAX;
    beginning + Duration::from_millis(READ.fetch_add(1, Ordering::Relaxed))
}

/// A master with 100 of each resource.
struct Parent {
    state: Arc<ServerState>,
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
        let config = ReplicaConfig {
            push_round: Duration::ZERO,
            ..config.into()
        };
        let node = Arc::new(ReplicaHandle::new(config, templates, Clock::start_by(slow)));
        let master = Mastership::Master { epoch: Some(1) };
        node.change(|node, now| node.handle_mastership(master, now));
        let text = String::new;
        let state = Arc::new(ServerState::new(text(), text(), text(), node));
        Self { state }
    }

    /// Opens a stream for a child.
    fn open(&self, name: &str) -> Child {
        let (outbox, heard) = channel();
        Child {
            name: name.to_owned(),
            stream: ChildStream::open(Arc::clone(&self.state), outbox),
            heard,
            has: BTreeMap::new(),
        }
    }

    /// Returns what a child may use of each resource.
    fn books(&self, child: &str) -> BTreeMap<String, f64> {
        let of = |resource: usize| {
            let id = ResourceId::new(&resource_id(resource)).unwrap();
            let children = self
                .state
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

/// Both sides of a stream.
struct Child {
    name: String,
    stream: ChildStream,
    heard: Outgoing,
    /// Amount that it heard last, for each resource.
    has: BTreeMap<String, f64>,
}

impl Child {
    /// Asks for `wants` of each resource on its stream.
    async fn ask(&mut self, wants: f64) {
        let request = asks_of(&self.name, wants);
        let parsed = parse(&self.stream.state, &request, None).await.unwrap();
        self.stream.handle(parsed.0, parsed.1).await;
        // In a server, the timer's task does that.
        let node = Arc::clone(self.stream.state.node());
        node.work_until(|_| false).await;
        self.deliver();
    }

    /// Sends what the replica has for it, until its stream ends.
    fn deliver(&mut self) {
        while let Ok(task) = self.stream.tasks.try_recv() {
            if !self.stream.send(task) {
                return;
            }
        }
    }

    /// Reads all messages. Returns their number.
    async fn hear(&mut self) -> usize {
        self.deliver();
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
    let (mut first, mut second) = (parent.open("first"), parent.open("second"));
    first.ask(100.0).await;
    first.hear().await;
    assert_eq!(first.has.values().sum::<f64>(), 100.0 * RESOURCES as f64);
    // Each child asks and gets pushes while the other one takes more or less.
    let asks = async |child: &mut Child, wants: [f64; 2]| {
        // The requests of one child are answered one after the other.
        for wants in wants {
            child.ask(wants).await;
        }
    };
    tokio::join!(
        asks(&mut second, [80.0, 30.0]),
        asks(&mut first, [90.0, 60.0])
    );
    parent.state.node().work_until(|_| false).await;
    assert!(first.hear().await > 2, "it was pushed to");
    assert_eq!(first.has, parent.books("first"));
}

#[tokio::test]
async fn what_is_pushed_waits_for_an_answer_that_has_begun() {
    let parent = Parent::new();
    let mut first = parent.open("first");
    first.ask(100.0).await;
    let decisions = || {
        let node = parent.state.node();
        node.read(|node, _| node.counters().decisions)
    };
    {
        let before = decisions();
        let mut asks = task::spawn(first.ask(90.0));
        // The request is parsed first, a few resources at a time.
        while decisions() == before {
            assert_pending!(asks.poll(), "some of it is decided");
        }
        // Another child takes its share of all resources, by a call of its own.
        let request = asks_of("second", 80.0);
        let parsed = parse(&parent.state, &request, None).await.unwrap();
        decide(&parent.state, parsed).await.unwrap();
        asks.await;
    }
    parent.state.node().work_until(|_| false).await;
    first.hear().await;
    assert_eq!(first.has, parent.books("first"));
}

#[tokio::test]
async fn clients_are_served_in_the_middle_of_an_answer() {
    let parent = Parent::new();
    let mut child = parent.open("child");
    let node = parent.state.node();
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
    let (mut former, mut later) = (parent.open("child"), parent.open("child"));
    tokio::join!(former.ask(1.0), async {
        while former_has_not_begun(&parent) {
            tokio::task::yield_now().await;
        }
        later.ask(1.0).await;
    });
    former.deliver();
    let Child {
        stream, mut heard, ..
    } = former;
    // The task that serves the stream sees its end.
    drop(stream);
    let replaced = heard.next().await.unwrap();
    assert!(replaced.is_err(), "{replaced:?}");

    later.hear().await;
    let node = parent.state.node();
    let epoch = Some(2);
    tokio::join!(later.ask(2.0), async {
        tokio::task::yield_now().await;
        node.change(|node, now| node.handle_mastership(Mastership::Master { epoch }, now));
    });
    let first = later.heard.next().await.unwrap().unwrap();
    assert!(
        first.response.is_empty(),
        "no capacity of an older mastership"
    );
}

/// Returns whether no request of a child was worked on.
fn former_has_not_begun(parent: &Parent) -> bool {
    let node = parent.state.node();
    node.read(|node, _| node.counters().decisions == 0)
}
