//! Two processes of one node below a parent. No election decides between them.

use std::time::Duration;

use doorward_proto::doorman::GetServerCapacityRequest;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::{GetServerCapacityResponse, ServerCapacityResourceRequest};
use doorward_server::app::Server;
use doorward_session::close_reason::CloseReason;
use tonic::Code;

use crate::driven_child::{Child, ask, has, poll, poll_gets, says_why, the, wants};
use crate::driven_client::{Process, RESOURCE, Told};
use crate::logs::Logs;
use crate::processes::{conflicts, start_quick, start_with, status};
use crate::running::{capacity, eventually, page, start};
use crate::upstream::{check_count, child, news};

const CAPACITY: f64 = 100.0;

/// One process of the node `eu`, driven by hand.
struct Sender {
    incarnation: u64,
    sequence: u64,
    epoch: Option<u64>,
}

impl Sender {
    fn new(incarnation: u64, sequence: u64) -> Self {
        Self {
            incarnation,
            sequence,
            epoch: None,
        }
    }

    fn request(&mut self, asked: ServerCapacityResourceRequest) -> GetServerCapacityRequest {
        self.sequence = self.sequence.saturating_add(1);
        GetServerCapacityRequest {
            incarnation: Some(self.incarnation),
            // The process hands everything out by this mastership.
            mastership: Some(self.incarnation + 1_000),
            epoch: self.epoch,
            ..ask("eu", self.sequence, vec![asked])
        }
    }
}

/// Returns the demand of a process that has just begun, and has heard of no client.
fn learning(wanted: f64) -> ServerCapacityResourceRequest {
    ServerCapacityResourceRequest {
        learning: Some(true),
        ..wants(RESOURCE, wanted, 2)
    }
}

#[track_caller]
fn reason(response: &GetServerCapacityResponse) -> (Reason, Option<u64>) {
    assert_eq!(response.response, []);
    match response.refused.as_slice() {
        [refused] => (refused.reason(), refused.retry_in_ms),
        others => panic!("not one refusal: {others:?}"),
    }
}

#[tokio::test]
async fn the_later_process_of_a_node_learns_and_is_refused_once_the_first_asks_again() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let (mut first, mut second) = (Sender::new(1, 1_000), Sender::new(2, 5));
    let answer = poll(&mut client, first.request(wants(RESOURCE, 60.0, 2))).await;
    assert_eq!(the(&answer).gets.capacity, 60.0);
    assert_eq!(the(&answer).predecessor_for_ms, None);
    // The second process inherits the lease of its node, and is told how much of it may be in use already.
    let answer = poll(&mut client, second.request(learning(100.0))).await;
    let told = the(&answer);
    assert_eq!(told.inherited, Some(60.0));
    assert!(told.inherited_for_ms.is_some_and(|lasts| lasts > 0));
    assert!(told.predecessor_for_ms.is_some_and(|wait| wait > 0));
    let fresh = told.gets.capacity - 60.0;
    assert!((0.0..=40.0).contains(&fresh), "{told:?}");
    // The first process lives, and keeps its lease. The amount that the second one may have handed out counts, too.
    let again = first.request(has(60.0, wants(RESOURCE, 60.0, 2)));
    assert_eq!(poll_gets(&mut client, again).await, 60.0);
    let answer = poll(&mut client, second.request(learning(100.0))).await;
    let (reason, retry_in_ms) = reason(&answer);
    assert_eq!(reason, Reason::AnotherProcess);
    assert!(retry_in_ms.is_some_and(|wait| wait > 0));
    let mut other = Process::start(&server, "c", 9, 1).await;
    let left = other.asks(100.0).await;
    assert_eq!(left, Told::Gets(CAPACITY - 60.0 - fresh));
    assert!(conflicts(&server).await >= 1);
    let status = status(&server).await;
    assert_eq!(status["conflicts"][0]["holder"], "eu");
    assert_eq!(status["conflicts"][0]["kind"], "server");
}

#[tokio::test]
async fn the_stream_of_a_refused_process_is_closed_as_one_that_exists_already() {
    let server = start().await;
    let (mut first, mut second) = (Sender::new(1, 1_000), Sender::new(2, 5));
    let wanted = || wants(RESOURCE, 60.0, 2);
    let mut stream_of_first = Child::open(&server).await;
    stream_of_first.ask(first.request(wanted())).await;
    let mut stream_of_second = Child::open(&server).await;
    stream_of_second.ask(second.request(learning(60.0))).await;
    let end = stream_of_first.end().await.expect("replaced");
    assert_eq!(end.code(), Code::Aborted);
    // The first process opens another stream, and so shows that both processes live.
    let mut stream_of_first = Child::open(&server).await;
    let again = first.request(has(60.0, wanted()));
    assert_eq!(stream_of_first.gets(again).await, 60.0);
    let end = stream_of_second.end().await.expect("replaced");
    assert_eq!(end.code(), Code::Aborted);
    for _ in 0..2 {
        let mut stream_of_second = Child::open(&server).await;
        stream_of_second.send(second.request(learning(60.0))).await;
        let end = stream_of_second.end().await.expect("refused");
        assert_eq!(end.code(), Code::AlreadyExists);
        says_why(&end, CloseReason::AnotherProcess);
        assert!(end.message().contains("same --node"), "{end:?}");
    }
    let again = first.request(has(60.0, wanted()));
    let gets = stream_of_first.gets(again).await;
    assert_eq!(gets, 60.0, "its stream stays open");
}

#[tokio::test]
async fn the_largest_number_sent_in_a_nodes_name_does_not_stop_its_server() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let (mut real, mut other) = (Sender::new(1, 1_000), Sender::new(2, u64::MAX - 1));
    let wanted = || wants(RESOURCE, 60.0, 2);
    poll(&mut client, real.request(wanted())).await;
    poll(&mut client, other.request(learning(60.0))).await;
    for _ in 0..3 {
        let answer = poll(&mut client, real.request(has(60.0, wanted()))).await;
        assert_eq!(the(&answer).gets.capacity, 60.0);
        assert_eq!(the(&answer).sequence, Some(real.sequence));
    }
    // Nor does it if the other process does not say which process it is.
    let nameless = GetServerCapacityRequest {
        incarnation: None,
        mastership: None,
        ..other.request(wanted())
    };
    poll(&mut client, nameless).await;
    let answer = poll(&mut client, real.request(has(60.0, wanted()))).await;
    assert_eq!(the(&answer).gets.capacity, 60.0);
    assert_eq!(the(&answer).sequence, Some(real.sequence));
}

#[tokio::test]
async fn an_epoch_sent_in_a_nodes_name_stops_its_server_no_longer_than_leases_last() {
    let server = start_quick(Duration::from_millis(600)).await;
    let mut client = capacity(&server).await;
    let (mut real, mut other) = (Sender::new(1, 1_000), Sender::new(2, 5));
    for (epoch_of_real, resource) in [(Some(3), "fair/elected"), (None, "fair/alone")] {
        real.epoch = epoch_of_real;
        other.epoch = Some(1 << 62);
        let wanted = || wants(resource, 60.0, 2);
        let gets = poll_gets(&mut client, real.request(wanted())).await;
        assert_eq!(gets, 60.0);
        poll(&mut client, other.request(wanted())).await;
        eventually("the real one is served again", async || {
            let answer = poll(&mut client, real.request(wanted())).await;
            let gets = answer.response.first().map(|it| it.gets.capacity);
            gets == Some(60.0)
        })
        .await;
    }
}

/// Starts a root whose children learn, and returns it once its own learning mode is over.
async fn start_root(lease_length: Duration, refresh_interval: Duration) -> Server {
    let root = start_with(|template| {
        template.lease_length = Some(lease_length);
        template.refresh_interval = Some(refresh_interval);
        template.learning_mode_duration = Some(Duration::from_millis(50));
    })
    .await;
    let mut probe = Process::start(&root, "probe", 99, 1).await;
    probe.until_gets(100.0).await;
    let next = Some(probe.sequence + 1);
    probe.releases(next).await;
    root
}

/// Checks that the clients of both processes together use no more than the capacity.
#[track_caller]
fn check_in_use(one: &Process, other: &Process) {
    let in_use = one.in_use() + other.in_use();
    assert!(in_use <= CAPACITY, "{in_use}");
}

#[tokio::test]
async fn two_servers_of_one_node_never_hand_out_more_than_their_parent_granted() {
    let logs = Logs::start();
    let root = start_root(Duration::from_secs(60), Duration::from_secs(5)).await;
    let address = root.grpc_address().to_string();
    let first = child(&[&address]).await;
    let mut of_first = Process::start(&first, "a", 1, 1).await;
    of_first.until_gets(100.0).await;
    let second = child(&[&address]).await;
    let mut of_second = Process::start(&second, "b", 2, 1).await;
    eventually("the parent sees both", async || {
        of_second.asks(100.0).await;
        check_in_use(&of_first, &of_second);
        of_first.asks(100.0).await;
        check_in_use(&of_first, &of_second);
        conflicts(&root).await > 0
    })
    .await;
    // The parent continues to serve the first server, and tells the second one why it does not.
    eventually("the second is told", async || {
        of_second.asks(100.0).await;
        check_in_use(&of_first, &of_second);
        let problem = news(&second).problem;
        problem.is_some_and(|problem| problem.contains("another live process"))
    })
    .await;
    let (code, _, why) = page(&second, "/readyz").await;
    assert!(
        code == 503 && why.contains("another one has the name"),
        "{why}"
    );
    assert_eq!(page(&first, "/readyz").await.0, 200);
    for _ in 0..10 {
        of_first.asks(100.0).await;
        of_second.asks(100.0).await;
        check_in_use(&of_first, &of_second);
    }
    assert_eq!((of_first.has, of_second.has), (100.0, 0.0));
    let status = status(&root).await;
    assert_eq!(status["conflicts"][0]["holder"], "eu");
    assert!(logs.count("two live processes ask under one name") >= 1);
    check_count(&logs, "another process of this node was there first", 1);
}

#[tokio::test]
async fn what_a_client_took_to_the_later_server_is_free_at_the_first_only_when_it_is_over() {
    let root = start_root(Duration::from_secs(2), Duration::from_millis(200)).await;
    let address = root.grpc_address().to_string();
    let first = child(&[&address]).await;
    let mut stays = Process::start(&first, "stays", 1, 1).await;
    let mut moves = Process::start(&first, "moves", 2, 1).await;
    for process in [&mut stays, &mut moves] {
        process.until_gets(50.0).await;
    }
    let second = child(&[&address]).await;
    moves.move_to(&second).await;
    eventually("who stays has all", async || {
        moves.asks(50.0).await;
        check_in_use(&stays, &moves);
        stays.asks(100.0).await;
        check_in_use(&stays, &moves);
        stays.in_use() >= CAPACITY
    })
    .await;
    assert!(conflicts(&root).await > 0, "the parent has seen both");
}
