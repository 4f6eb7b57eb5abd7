//! The way of a server below the root to its parent: several addresses, redirects, restarts.

use std::net::SocketAddr;
use std::time::Duration;

use doorward_proto::doorman::refusal::Reason;
use doorward_server::app::ServerConfig;
use doorward_server::status::ParentLink;
use tokio::net::TcpSocket;

use crate::fake_parent::{FakeParent, Streams, redirect};
use crate::logs::Logs;
use crate::running::{asked, asked_with, capacity, config, eventually, get, gets, started};
use crate::upstream::{check_count, child, news, until_gets, until_link};

/// An address on which no process listens. No other process can take it while this value exists.
struct Dead(TcpSocket);

impl Dead {
    fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let loopback = ([127, 0, 0, 1], 0).into();
        socket.bind(loopback).expect("a free port");
        Self(socket)
    }

    fn address(&self) -> String {
        self.0.local_addr().expect("bound").to_string()
    }
}

#[tokio::test]
async fn where_the_parents_master_is_it_is_asked_at_once() {
    for streams in [Streams::Served, Streams::Unknown] {
        let parent = FakeParent::start(streams).await;
        let elsewhere = FakeParent::start(streams).await;
        parent.answer(redirect(Some(&elsewhere.address)));
        let server = child(&[&parent.address]).await;
        let mut client = capacity(&server).await;
        assert_eq!(gets(&mut client, "a", asked("r", 30.0)).await, 30.0);
        let news = news(&server);
        assert_eq!(news.address, elsewhere.address);
        assert_eq!(news.addresses, vec![parent.address.clone()]);
        assert_eq!((news.problem, news.link != ParentLink::Down), (None, true));
    }
}

#[tokio::test]
async fn a_parent_that_is_down_at_first_is_found_when_it_is_up() {
    let logs = Logs::start();
    let dead = Dead::new();
    let address = dead.address();
    let server = child(&[&address]).await;
    let mut client = capacity(&server).await;
    let told = async || news(&server).problem.is_some();
    eventually("that is told", told).await;
    let problem = news(&server).problem.unwrap();
    assert!(problem.contains("refused"), "{problem}");
    assert_eq!(news(&server).link, ParentLink::Down);
    let began = tokio::time::Instant::now();
    let response = get(&mut client, "a", vec![asked("r", 30.0)]).await;
    assert_eq!(response.refused[0].reason(), Reason::NotReady);
    let took = began.elapsed();
    assert!(took < Duration::from_millis(900), "it waits: {took:?}");

    drop(dead);
    let parent = FakeParent::start_at(&address, Streams::Served).await;
    until_gets(&mut client, 30.0, 30.0).await;
    let news = news(&server);
    assert_eq!((news.link, news.problem), (ParentLink::Stream, None));
    assert!(parent.has_stream());
    check_count(&logs, "cannot be asked", 1);
    check_count(&logs, "the parent answers", 1);
}

#[tokio::test]
async fn a_parent_that_restarts_is_found_again() {
    let parent_at = |listen: SocketAddr| ServerConfig {
        listen: listen.into(),
        http_listen: None,
        ..config()
    };
    let parent = started(parent_at(([127, 0, 0, 1], 0).into())).await;
    let address = parent.grpc_address();
    let server = child(&[&address.to_string()]).await;
    until_link(&server, ParentLink::Stream).await;
    let mut client = capacity(&server).await;
    assert_eq!(gets(&mut client, "a", asked("fair/x", 30.0)).await, 30.0);
    assert!(parent.shutdown().await);
    until_link(&server, ParentLink::Down).await;
    let mut asks_more = async || gets(&mut client, "a", asked_with("fair/x", 40.0, 30.0)).await;
    assert_eq!(asks_more().await, 30.0, "the lease lasts");
    let _parent = started(parent_at(address)).await;
    eventually("there is more again", async || asks_more().await == 40.0).await;
    assert_eq!(news(&server).problem, None);
}

#[tokio::test]
async fn who_says_it_is_not_the_master_is_asked_nothing_else() {
    let mut follower = FakeParent::start(Streams::Served).await;
    let master = FakeParent::start(Streams::Served).await;
    follower.says_of_the_master(Some(&master.address), Some(5));
    master.says_of_the_master(Some(&master.address), Some(5));
    let server = child(&[&follower.address]).await;
    until_link(&server, ParentLink::Stream).await;
    assert_eq!(news(&server).address, master.address);
    assert!(!follower.has_stream());
    assert_eq!(follower.count_asks().len(), 0);
}

#[tokio::test]
async fn nobody_goes_back_to_a_master_of_an_older_epoch() {
    let newer = FakeParent::start(Streams::Served).await;
    let older = FakeParent::start(Streams::Served).await;
    newer.says_of_the_master(Some(&newer.address), Some(9));
    older.says_of_the_master(Some(&older.address), Some(8));
    let server = child(&[&newer.address, &older.address]).await;
    let mut client = capacity(&server).await;
    until_gets(&mut client, 30.0, 30.0).await;
    newer.stop().await;
    let out_of_date = async || {
        let problem = news(&server).problem.unwrap_or_default();
        problem.contains("out of date")
    };
    eventually("it is refused", out_of_date).await;
    // Nor does the server take one as master of which another server says that it is of that epoch.
    older.says_of_the_master(Some("127.0.0.1:1"), Some(8));
    eventually("that is refused", out_of_date).await;
    older.says_of_the_master(Some(&older.address), Some(10));
    until_link(&server, ParentLink::Stream).await;
    assert_eq!(news(&server).address, older.address);
}

#[tokio::test]
async fn a_parents_server_that_accepts_and_never_answers_delays_the_next_by_less_than_a_failure() {
    let logs = Logs::start();
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = hangs.local_addr().unwrap().to_string();
    let live = FakeParent::start(Streams::Served).await;
    let server = child(&[&hanging, &live.address]).await;
    until_link(&server, ParentLink::Stream).await;
    assert_eq!(news(&server).address, live.address);
    check_count(&logs, "cannot be asked", 0);
}
