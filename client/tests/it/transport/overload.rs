//! Overloaded servers that send a time to come back.

use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Client, ClientBuilder};
use tonic::Code;

use crate::transport::PATIENCE;
use crate::transport::fake_server::{Answer, FakeServer, busy, lease};

/// Returns a client that does not return during the test, unless a server sends a time.
fn reluctant(addresses: &[&str]) -> ClientBuilder {
    let hours = Duration::from_secs(3_600 * 1_000);
    let config = ClientConfig {
        backoff: BackoffConfig {
            base: hours,
            cap: hours,
            cap_without_lease: hours,
        },
        ..ClientConfig::default()
    };
    let builder = Client::builder().id("c").config(config);
    builder.addresses(addresses.iter().copied())
}

#[tokio::test]
async fn a_server_that_is_too_busy_is_asked_again_when_it_says_and_is_not_left() {
    for code in [Code::ResourceExhausted, Code::Unavailable] {
        let mut answers: Vec<Answer> = (0..3).map(|_| Err(busy(code, "20"))).collect();
        answers.push(lease(8.0, 60_000));
        let mut server = FakeServer::master(answers).await;
        let mut other = FakeServer::master([lease(5.0, 60_000)]).await;
        let client = reluctant(&[&server.address, &other.address]);
        let client = client.connect_lazy().unwrap();
        let resource = client.resource("r").wants(10.0).open().unwrap();
        let capacity = resource.wait_for_lease(PATIENCE).await.unwrap();
        assert_eq!(capacity.get(), 8.0, "{code:?}");
        // One connection with four calls.
        assert_eq!((server.asked(), other.asked()), (5, 0), "{code:?}");
    }
}

#[tokio::test]
async fn a_server_too_busy_for_discovery_is_asked_again_at_its_time() {
    let busy = || vec![busy(Code::ResourceExhausted, "20"); 3];
    for lazy in [true, false] {
        let mut server = FakeServer::busy_at_first(busy(), [lease(8.0, 60_000)]).await;
        let mut other = FakeServer::master([lease(5.0, 60_000)]).await;
        let client = reluctant(&[&server.address, &other.address]).connect_timeout(PATIENCE);
        let client = if lazy {
            client.connect_lazy().unwrap()
        } else {
            client.connect().await.unwrap()
        };
        let resource = client.resource("r").wants(10.0).open().unwrap();
        let capacity = resource.wait_for_lease(PATIENCE).await.unwrap();
        assert_eq!(capacity.get(), 8.0);
        assert_eq!((server.asked(), other.asked()), (5, 0));
    }
}

#[tokio::test]
async fn a_time_to_come_back_that_is_none_is_passed_over_and_the_next_server_asked() {
    for garbage in ["-1", "soon"] {
        let turned_away = Err(busy(Code::ResourceExhausted, garbage));
        let server = FakeServer::master([turned_away]).await;
        let other = FakeServer::master([lease(5.0, 60_000)]).await;
        let addresses = [server.address.as_str(), other.address.as_str()];
        // A client that returns at once by its own backoff.
        let client = crate::transport::client(addresses[0]).address(addresses[1]);
        let client = client.connect_lazy().unwrap();
        let resource = client.resource("r").wants(10.0).open().unwrap();
        let capacity = resource.wait_for_lease(PATIENCE).await.unwrap();
        assert_eq!(capacity.get(), 5.0, "{garbage}");
    }
}
