//! Tests of the harness, because other tests rely on it.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use doorward_tests::etcd::{Etcd, Setup};
use doorward_tests::processes::PATIENCE;
use doorward_tests::proxy::{Direction, Flow, Proxy};

/// Starts a server that sends its text to every connection.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.into_split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    address
}

async fn receives(stream: &mut TcpStream, expected: &[u8]) {
    let mut received = vec![0; expected.len()];
    let read = timeout(PATIENCE, stream.read_exact(&mut received));
    read.await.unwrap().unwrap();
    assert_eq!(received, expected);
}

/// Checks that nothing arrives, and nothing ends, for a while.
async fn hears_nothing(stream: &mut TcpStream) {
    let mut received = [0; 1];
    let read = timeout(Duration::from_millis(100), stream.read(&mut received)).await;
    assert!(read.is_err(), "{read:?}");
}

#[tokio::test]
async fn a_proxy_passes_holds_and_delays() {
    let mut proxy = Proxy::to(&echo().await);
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.write_all(b"one").await.unwrap();
    receives(&mut stream, b"one").await;
    for direction in [Direction::Requests, Direction::Answers] {
        proxy.set(direction, Flow::Hold);
        stream.write_all(b"two").await.unwrap();
        hears_nothing(&mut stream).await;
        proxy.pass();
        receives(&mut stream, b"two").await;
    }
    let began = tokio::time::Instant::now();
    proxy.delay(Direction::Answers, Duration::from_millis(50));
    stream.write_all(b"three").await.unwrap();
    receives(&mut stream, b"three").await;
    assert!(began.elapsed() >= Duration::from_millis(50));
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn dropped_bytes_kill_their_connection_and_no_other() {
    let mut proxy = Proxy::to(&echo().await);
    for direction in [Direction::Requests, Direction::Answers] {
        let mut before = TcpStream::connect(proxy.address()).await.unwrap();
        before.write_all(b"one").await.unwrap();
        receives(&mut before, b"one").await;
        proxy.set(direction, Flow::Drop);
        let mut during = TcpStream::connect(proxy.address()).await.unwrap();
        before.write_all(b"two").await.unwrap();
        during.write_all(b"two").await.unwrap();
        hears_nothing(&mut before).await;
        hears_nothing(&mut during).await;
        proxy.pass();
        before.write_all(b"three").await.unwrap();
        during.write_all(b"three").await.unwrap();
        hears_nothing(&mut before).await;
        hears_nothing(&mut during).await;
        let mut after = TcpStream::connect(proxy.address()).await.unwrap();
        after.write_all(b"four").await.unwrap();
        receives(&mut after, b"four").await;
    }
}

#[tokio::test]
async fn a_proxy_severs_and_refuses() {
    let mut proxy = Proxy::to(&echo().await);
    for refuses in [false, true] {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(b"one").await.unwrap();
        receives(&mut stream, b"one").await;
        if refuses {
            proxy.refuse();
            let error = TcpStream::connect(proxy.address()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        } else {
            proxy.sever();
        }
        let mut received = [0; 1];
        let end = timeout(PATIENCE, stream.read(&mut received)).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    proxy.pass();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.write_all(b"two").await.unwrap();
    receives(&mut stream, b"two").await;
}

#[tokio::test]
async fn members_of_an_etcd_die_freeze_and_come_back() {
    let mut etcd = Etcd::cluster(3).await;
    let first = etcd.leader().await;
    let revision = etcd.put("/a", "1").await;
    etcd.freeze(first);
    let second = etcd.leader().await;
    assert_ne!(second, first);
    etcd.kill(second);
    etcd.thaw(first);
    assert!(etcd.put("/b", "2").await > revision);
    etcd.kill_all();
    etcd.restart_all().await;
    assert_eq!(etcd.keys("/").await, ["/a", "/b"]);
    assert_eq!(etcd.get("/a").await.as_deref(), Some("1"));
    let deleted = etcd.delete("/a").await;
    assert_eq!(etcd.compact().await, deleted);
    etcd.wipe().await;
    assert!(etcd.revision().await < revision);
    assert!(etcd.keys("/").await.is_empty());
}

#[tokio::test]
async fn an_etcd_may_have_users_and_certificates() {
    let mut etcd = Setup::new(1).with_users().with_mutual_tls().start().await;
    etcd.put("/a", "1").await;
    etcd.kill(0);
    etcd.restart_all().await;
    assert_eq!(etcd.get("/a").await.as_deref(), Some("1"));
    assert!(etcd.endpoint(0).starts_with("https://"));
}
