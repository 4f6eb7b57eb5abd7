//! Broken or hostile servers: a client refuses their answers, waits, and continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Client, ClientBuilder, Hooks, Mode};
use doorward_proto::doorman::refusal::Reason;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tonic::Status;

use crate::transport::fake_server::{Answer, FakeServer, discovery, lease, redirect, refused};
use crate::transport::{PATIENCE, opened};

/// Reports a failed attempt to the test.
#[derive(Default)]
struct Failures(Notify);

impl Hooks for Failures {
    fn refreshed(&self, succeeded: bool, _: Duration) {
        if !succeeded {
            self.0.notify_one();
        }
    }
}

/// Returns a client that tries once, and not again during the test.
fn once(address: &str) -> (ClientBuilder, Arc<Failures>) {
    let hours = Duration::from_secs(3_600 * 1_000);
    let config = ClientConfig {
        timeout: Duration::from_secs(2),
        backoff: BackoffConfig {
            base: hours,
            cap: hours,
            cap_without_lease: hours,
        },
        ..ClientConfig::default()
    };
    let failures = Arc::new(Failures::default());
    let hooks = Arc::clone(&failures);
    let client = Client::builder().id("c").config(config).address(address);
    (client.hooks(hooks), failures)
}

/// Returns the error of the first attempt.
async fn failure_at(address: &str) -> String {
    let (client, failures) = once(address);
    let client = client.connect_lazy().unwrap();
    let _resource = client.resource("r").wants(10.0).open().unwrap();
    let failed = tokio::time::timeout(PATIENCE, failures.0.notified()).await;
    assert!(failed.is_ok(), "an attempt fails");
    client.failure().unwrap()
}

#[track_caller]
fn is_plain(text: &str) {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    assert!(!text.contains(steers), "{text:?}");
    assert!(text.len() < 2_000, "it is cut: {} bytes", text.len());
}

#[tokio::test]
async fn an_answer_of_more_than_a_mebibyte_is_not_read() {
    let large = |bytes: usize| -> Answer {
        let mut answer = lease(8.0, 60_000)?;
        answer.response[0].resource_id = "r".to_owned();
        let mut refused = refused(Reason::TooMany)?;
        refused.refused[0].resource_id = Some("another".to_owned());
        refused.refused[0].message = Some("x".repeat(bytes));
        answer.refused = refused.refused;
        Ok(answer)
    };
    let server = FakeServer::master([large(1_000_000)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    assert_eq!(resource.wait_for_lease(PATIENCE).await.unwrap().get(), 8.0);
    let server = FakeServer::master([large(1_100_000)]).await;
    let problem = failure_at(&server.address).await;
    assert!(problem.contains("1048576 bytes"), "{problem}");
}

#[tokio::test]
async fn texts_of_servers_are_shown_without_control_characters() {
    let evil = "\u{1b}[2J\u{7}\r\n\u{202e}gpj.exe\u{200b}";
    let mut no = refused(Reason::TooMany).unwrap();
    no.refused[0].message = Some(format!("{evil}{}", "x".repeat(100_000)));
    let server = FakeServer::master([Ok(no)]).await;
    let (_client, resource) = opened(&server, Mode::Safe).await;
    let error = resource
        .wait_for_lease(PATIENCE)
        .await
        .unwrap_err()
        .to_string();
    is_plain(&error);
    let shown = r"r got no lease: \u{1b}[2J\u{7}\u{d}\u{a}\u{202e}gpj.exe\u{200b}xxx";
    assert!(error.starts_with(shown), "{error}");

    for status in [Status::internal(evil), Status::unavailable(evil)] {
        let server = FakeServer::master([Err(status)]).await;
        let problem = failure_at(&server.address).await;
        is_plain(&problem);
        assert!(problem.contains(r"\u{202e}gpj.exe\u{200b}"), "{problem}");
    }
}

#[tokio::test]
async fn a_redirect_to_what_is_no_address_is_a_failure_like_any_other() {
    let long = format!("{}:6970", "a".repeat(100_000));
    for (address, says) in [
        ("\u{1b}[2J:1", r#""\u{1b}[2J:1", which is not host:port"#),
        ("a\u{202e}b:1", r#""a\u{202e}b:1", which is not host:port"#),
        ("etcd://e:1/n", "which is not host:port"),
        ("https://a:1", "the scheme must be http"),
        ("unix:/run/doorward:1", "which is not host:port"),
        ("a", "which is not host:port"),
        (&long, "which is not host:port"),
    ] {
        let server = FakeServer::master([redirect(Some(address))]).await;
        let problem = failure_at(&server.address).await;
        is_plain(&problem);
        assert!(problem.contains(says), "{problem}");
        let server = FakeServer::start(Some(discovery(false, Some(address), 0)), []).await;
        let problem = failure_at(&server.address).await;
        is_plain(&problem);
        assert!(problem.contains(says), "{problem}");
    }
}

#[tokio::test]
async fn servers_that_send_from_one_to_the_other_are_left_after_five_redirects() {
    let (a, b) = (FakeServer::reserve().await, FakeServer::reserve().await);
    let (at_a, at_b) = (a.address(), b.address());
    let mut a = a.start(Some(discovery(true, None, 0)), [redirect(Some(&at_b))]);
    let mut b = b.start(Some(discovery(true, None, 0)), [redirect(Some(&at_a))]);
    let problem = failure_at(&at_a).await;
    assert!(problem.contains("5 redirects in a row"), "{problem}");
    // Two calls for each of six visits.
    assert_eq!(a.asked() + b.asked(), 12);
}

#[tokio::test]
async fn a_status_that_fills_a_header_is_refused_and_the_server_left() {
    let server = FakeServer::master([Err(Status::internal("x".repeat(60_000)))]).await;
    is_plain(&failure_at(&server.address).await);
}

/// Accepts connections, and treats each.
async fn listener<F>(treat: impl Fn(tokio::net::TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            treat(stream).await;
        }
    });
    address
}

#[tokio::test]
async fn a_server_that_closes_every_connection_at_once_is_met_with_the_backoff() {
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let address = listener(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { drop(stream) }
    });
    is_plain(&failure_at(&address.await).await);
    assert_eq!(
        accepted.load(Ordering::SeqCst),
        1,
        "one attempt is one connection"
    );
}

#[tokio::test]
async fn a_server_that_only_sends_control_frames_is_cut_off_by_the_timeout_of_the_call() {
    /// SETTINGS without content, and a PING: type, flags, stream 0, and eight bytes.
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    for flood in [PING, SETTINGS] {
        let (ended, mut ends) = mpsc::unbounded_channel();
        let address = listener(move |mut stream| {
            let ended = ended.clone();
            async move {
                let mut frames = SETTINGS;
                // Until the client has closed the connection.
                while stream.write_all(frames).await.is_ok() {
                    frames = flood;
                }
                let _ = ended.send(());
            }
        });
        let problem = failure_at(&address.await).await;
        assert!(problem.contains("no answer"), "{problem}");
        let end = tokio::time::timeout(PATIENCE, ends.recv()).await;
        assert!(end.is_ok(), "the connection is closed");
    }
}

#[tokio::test]
async fn two_servers_that_accept_and_never_answer_do_not_keep_the_client_from_a_third() {
    let hangs = async || {
        listener(|stream| async move {
            tokio::spawn(async move {
                let _open = stream;
                std::future::pending::<()>().await;
            });
        })
        .await
    };
    let (first, second) = (hangs().await, hangs().await);
    let mut live = FakeServer::master([lease(30.0, 60_000)]).await;
    let config = ClientConfig {
        timeout: Duration::from_secs(60),
        ..ClientConfig::default()
    };
    let connecting = crate::transport::client(&first)
        .address(&second)
        .address(&live.address)
        .config(config)
        .connect();
    let client = crate::transport::within_patience(connecting).await.unwrap();
    let _resource = client.resource("r").wants(30.0).open().unwrap();
    crate::transport::within_patience(live.next_get()).await;
}
