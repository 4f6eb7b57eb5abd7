//! A driver with nothing but a queue of messages: a root and a leaf below it. It has no rule of its own, and every call
//! of a client and every change at the root takes its way.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, Incarnation, ResourceId};
use doorward_engine::messages::{
    Ask, GetCapacity, GetCapacityReply, GetServerCapacity, GetServerCapacityReply, Via,
};
use doorward_engine::node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use doorward_replica::{
    ChildMessage, ClientAnswer, FromParent, Output, ParentConfig, Replica, ReplicaConfig, ToChild,
    ToParent,
};
use doorward_session::address::Address;
use doorward_session::child_streams::ChildStreams;
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use doorward_session::parent_session::{ConnectionNumber, Transport};

/// A message on its way.
enum Message {
    ToRoot(ConnectionNumber, ToParent),
    ToLeaf(ConnectionNumber, FromParent),
}

struct Driver {
    root: Replica,
    leaf: Replica,
    now: Time,
    mail: VecDeque<Message>,
    connection: ConnectionNumber,
    /// The stream of the leaf at the root.
    stream: Option<u64>,
    /// Whether the root supports streams.
    has_streams: bool,
    /// Answers to calls that waited.
    answered: Vec<Outcome<GetCapacityReply>>,
}

fn templates(capacity: f64) -> Templates {
    Templates::parse(&[TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(capacity),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap()
}

impl Driver {
    fn new(has_streams: bool) -> Self {
        let config = |name: &str| node::Config {
            name: name.to_owned(),
            ..node::Config::default()
        };
        let second = Duration::from_secs(1);
        let parent = ParentConfig {
            addresses: [Address::parse("root:1").unwrap()].into(),
            round: Duration::from_millis(50),
            slow_round: second,
        };
        let leaf = ReplicaConfig {
            parent: Some(parent),
            ..config("leaf").into()
        };
        let mut driver = Self {
            root: Replica::new(config("root").into(), templates(100.0)),
            leaf: Replica::new(leaf, Templates::default()),
            now: Time::ZERO + second,
            mail: VecDeque::new(),
            connection: ConnectionNumber::default(),
            stream: None,
            has_streams,
            answered: Vec::new(),
        };
        driver.root.handle_alone(None, driver.now);
        driver.leaf.handle_alone(None, driver.now);
        driver
    }

    /// Plays for some time.
    fn play(&mut self, length: Duration) {
        let end = self.now + length;
        loop {
            self.drain();
            if let Some(message) = self.mail.pop_front() {
                self.deliver(message);
                continue;
            }
            let timeouts = [self.root.poll_timeout(), self.leaf.poll_timeout()];
            match timeouts.into_iter().flatten().min() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
        }
        self.now = end;
    }

    /// The contract: advance until ready, then take all outputs.
    fn drain(&mut self) {
        for replica in [&mut self.root, &mut self.leaf] {
            while replica
                .advance(self.now, Duration::from_secs(9))
                .is_pending()
            {}
        }
        self.take_outputs();
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.root.poll_output() {
            let event = match output {
                Output::Child(_, ToChild::Answer { reply, .. } | ToChild::Push { reply, .. }) => {
                    FromParent::Reply {
                        call: None,
                        reply,
                        invalid: Vec::new(),
                    }
                }
                Output::Child(_, ToChild::End(end)) => {
                    self.stream = None;
                    FromParent::Closed(ConnectionEnd::ByParent(end.reason()))
                }
                _ => continue,
            };
            self.mail.push_back(Message::ToLeaf(self.connection, event));
        }
        while let Some(output) = self.leaf.poll_output() {
            match output {
                Output::Parent(ToParent::Connect { connection, .. }) => {
                    self.connection = connection;
                    let event = FromParent::Connected;
                    self.mail.push_back(Message::ToLeaf(connection, event));
                }
                Output::Parent(task) => self.mail.push_back(Message::ToRoot(self.connection, task)),
                Output::Call(_, outcome) => self.answered.push(outcome),
                _ => {}
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        let (on, task) = match message {
            Message::ToLeaf(on, event) => return self.leaf.handle_parent(on, event),
            Message::ToRoot(on, task) => (on, task),
        };
        let event = match task {
            ToParent::Discover => {
                FromParent::Discovered(self.root.node().mastership(self.now).clone())
            }
            ToParent::Open if self.has_streams => {
                self.stream = Some(self.root.handle_stream_opened(self.now));
                FromParent::Opened
            }
            ToParent::Open => FromParent::Closed(ConnectionEnd::Unimplemented),
            ToParent::Send(request) => {
                if let Some(stream) = self.stream {
                    let message = ChildMessage::Request(request);
                    self.root.handle_stream_message(stream, message, self.now);
                }
                return;
            }
            ToParent::Call(request) => self.call(&request),
            ToParent::Close => {
                let number = self.stream.unwrap_or(0);
                return self.root.change_streams(|it| it.handle_gone(number));
            }
            ToParent::Connect { .. } | ToParent::Report(_) => return,
        };
        self.mail.push_back(Message::ToLeaf(on, event));
    }

    fn call(&mut self, request: &GetServerCapacity) -> FromParent {
        let ask =
            |node: &mut node::Node, now| node.handle_get_server_capacity(request, Via::Poll, now);
        let Ok(Outcome::Served(reply)) = self.root.change(ask, self.now) else {
            panic!("the root is the master");
        };
        FromParent::Reply {
            call: request.sequence,
            reply,
            invalid: Vec::new(),
        }
    }

    /// Asks the leaf for a client. Returns what it gets, or `None` if the call waits.
    fn ask(&mut self, client: &str, wants: f64) -> Option<f64> {
        self.ask_for("r", client, wants)
    }

    /// Asks for that resource.
    fn ask_for(&mut self, resource: &str, client: &str, wants: f64) -> Option<f64> {
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(client).unwrap(),
            sequence: None,
            asks: vec![Ask {
                budget: None,
                resource: ResourceId::new(resource).unwrap(),
                priority: 0,
                weight: Subclients::ONE,
                wants: Amount::new(wants).unwrap(),
                has: None,
            }],
        };
        let mut answers = Answers::to_client(&request);
        loop {
            let next = self
                .leaf
                .answer_client_next(&request, &mut answers, self.now);
            match next {
                Poll::Pending => {}
                Poll::Ready(ClientAnswer::Final(outcome)) => return Some(gets(&outcome)),
                Poll::Ready(ClientAnswer::Waits(_)) => return None,
            }
        }
    }
}

fn gets(outcome: &Outcome<GetCapacityReply>) -> f64 {
    match outcome {
        Outcome::Served(reply) => reply.leases.iter().map(|it| it.capacity.get()).sum(),
        Outcome::NotMaster(_) => f64::NAN,
    }
}

/// Time in which all messages arrive.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn the_first_call_of_a_client_waits_for_the_parent_and_is_answered() {
    for has_streams in [true, false] {
        let mut driver = Driver::new(has_streams);
        assert_eq!(driver.ask("a", 30.0), None, "the leaf has nothing yet");
        driver.play(SOON);
        let answered: Vec<f64> = driver.answered.iter().map(gets).collect();
        assert_eq!(answered, [30.0], "with streams: {has_streams}");
        let status = driver.leaf.parent_status().unwrap();
        assert!(status.has_answered);
        let transport = match has_streams {
            true => Transport::Stream,
            false => Transport::Calls,
        };
        let session = driver.leaf.parent_session().unwrap();
        assert_eq!(session.answers(), Some(transport));
    }
}

#[test]
fn a_change_at_the_root_is_pushed_to_the_leaf() {
    let mut driver = Driver::new(true);
    driver.ask("a", 80.0);
    driver.play(SOON);
    assert_eq!(driver.ask("a", 80.0), Some(80.0));
    let active = driver.root.node().active_templates();
    let prepared = PreparedTemplates::new(active, templates(50.0));
    assert_eq!(driver.root.handle_templates(prepared, driver.now), 1);
    driver.play(Duration::from_secs(20));
    assert_eq!(driver.ask("a", 80.0), Some(50.0));
}

#[test]
fn a_call_is_answered_after_a_second_if_the_parent_answers_nothing() {
    let mut driver = Driver::new(true);
    assert_eq!(driver.ask("a", 30.0), None);
    driver.drain();
    driver.mail.clear();
    driver.play(Duration::from_millis(999));
    assert!(driver.answered.is_empty());
    driver.play(Duration::from_millis(1));
    let answered: Vec<f64> = driver.answered.iter().map(gets).collect();
    assert_eq!(answered, [0.0], "refused as not ready");
}

#[test]
fn a_call_that_waits_is_tried_again_whenever_the_parent_answers_until_its_second_is_over() {
    let mut driver = Driver::new(true);
    driver.ask("a", 30.0);
    driver.play(SOON);
    driver.answered.clear();
    // The parent answers about `r` only.
    assert_eq!(driver.ask_for("other", "b", 1.0), None);
    driver.drain();
    for _ in 0..9 {
        let event = FromParent::Reply {
            call: None,
            reply: GetServerCapacityReply::default(),
            invalid: Vec::new(),
        };
        driver.mail.clear();
        driver.leaf.handle_parent(driver.connection, event);
        driver.play(Duration::from_millis(100));
        assert!(driver.answered.is_empty());
    }
    driver.mail.clear();
    driver.play(Duration::from_millis(100));
    assert_eq!(driver.answered.len(), 1);
}

#[test]
fn a_call_does_not_wait_for_an_unreachable_parent() {
    let mut driver = Driver::new(true);
    driver.drain();
    driver.mail.clear();
    let unreachable = FromParent::Closed(ConnectionEnd::Unreachable);
    driver.leaf.handle_parent(driver.connection, unreachable);
    driver.drain();
    assert_eq!(driver.ask("a", 30.0), Some(0.0));
}

#[test]
fn a_leaf_grants_nothing_more_while_another_process_has_a_newer_start() {
    let mut driver = Driver::new(true);
    driver.ask("a", 60.0);
    driver.play(SOON);
    assert_eq!(driver.ask("a", 30.0), Some(30.0));
    assert_eq!(driver.ask("b", 10.0), Some(10.0));
    driver.drain();
    driver.mail.clear();
    let older = ConnectionEnd::ByParent(CloseReason::OlderMaster);
    driver
        .leaf
        .handle_parent(driver.connection, FromParent::Closed(older));
    driver.drain();
    // Clients go on with the leases that they have.
    for (client, wants) in [("b", 30.0), ("c", 5.0)] {
        assert_eq!(driver.ask(client, wants), Some(0.0));
    }
    // The other one is gone.
    driver.play(Duration::from_secs(90));
    driver.ask("c", 5.0);
    driver.play(SOON);
    assert_eq!(driver.ask("c", 5.0), Some(5.0));
}

#[test]
fn a_stream_ends_when_the_root_stops() {
    let mut driver = Driver::new(true);
    driver.ask("a", 30.0);
    driver.play(SOON);
    assert!(driver.stream.is_some());
    driver.root.change_streams(ChildStreams::handle_stopping);
    driver.play(Duration::from_millis(10));
    assert_eq!(driver.stream, None);
    assert_eq!(driver.root.children_count(), 0);
}

#[test]
fn a_node_that_is_started_anew_forgets_its_work_and_its_child_comes_back() {
    let mut driver = Driver::new(true);
    driver.ask("a", 30.0);
    driver.play(SOON);
    let before = driver.connection;
    // A request that is not worked on yet.
    driver.ask("b", 30.0);
    while !driver.root.is_answering(driver.stream.unwrap()) {
        for replica in [&mut driver.leaf, &mut driver.root] {
            let _more = replica.advance(driver.now, Duration::ZERO);
        }
        driver.take_outputs();
        match driver.mail.pop_front() {
            Some(message) => driver.deliver(message),
            None => driver.now = driver.leaf.poll_timeout().unwrap(),
        }
    }
    driver.root.restart(Incarnation::FIRST, driver.now);
    assert!(!driver.root.is_answering(driver.stream.unwrap()));
    driver.play(SOON);
    assert!(driver.connection > before);
    assert_eq!(driver.root.children_count(), 1);
    assert!(driver.root.node().mastership(driver.now).is_master());
}
