//! Streams of clients: answers with their labels, pushes, and ends.

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_proto::doorman::{GetCapacityRequest, GetCapacityResponse, ResourceRequest};
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use doorward_server::app::Server;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::running::{asked, asked_with, channel, eventually, only, request, start};

const PATIENCE: Duration = Duration::from_secs(5);

/// A stream of clients with one incarnation.
struct Stream {
    requests: mpsc::Sender<GetCapacityRequest>,
    messages: Streaming<GetCapacityResponse>,
    sequence: u64,
}

impl Stream {
    async fn open(server: &Server) -> Self {
        let (requests, outgoing) = mpsc::channel(16);
        let mut client = CapacityStreamClient::new(channel(server).await);
        let opened = client.stream_capacity(ReceiverStream::new(outgoing)).await;
        Self {
            requests,
            messages: opened.expect("served").into_inner(),
            sequence: 0,
        }
    }

    async fn send(&mut self, client: &str, resource: ResourceRequest) {
        self.sequence += 1;
        let request = GetCapacityRequest {
            incarnation: Some(7),
            sequence: Some(self.sequence),
            ..request(client, vec![resource])
        };
        self.requests.send(request).await.expect("it is open");
    }

    async fn next(&mut self) -> Result<Option<GetCapacityResponse>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.messages.message()).await;
        next.expect("something comes, or the stream ends")
    }

    async fn told(&mut self) -> GetCapacityResponse {
        self.next().await.expect("in order").expect("not the end")
    }

    /// Asks, and returns what it gets. Pushes before the answer are dropped.
    async fn gets(&mut self, client: &str, resource: ResourceRequest) -> f64 {
        self.send(client, resource).await;
        loop {
            let message = self.told().await;
            assert_eq!(message.client_id.as_deref(), Some(client));
            if message.sequence == Some(self.sequence) {
                return only(&message).gets.capacity;
            }
        }
    }

    /// Returns the next push: its client, the request that it knows, and the amount.
    async fn pushed(&mut self) -> (String, u64, f64) {
        let message = self.told().await;
        assert_eq!(message.sequence, None, "a push answers no request");
        let lease = only(&message);
        let sequence = lease.sequence.expect("a push names the request");
        (
            message.client_id.clone().unwrap(),
            sequence,
            lease.gets.capacity,
        )
    }
}

#[tokio::test]
async fn a_newcomer_makes_the_server_push_a_shrink_and_what_is_acknowledged_is_pushed_on() {
    let server = start().await;
    let mut first = Stream::open(&server).await;
    assert_eq!(first.gets("a", asked("fair/x", 90.0)).await, 90.0);
    let mut second = Stream::open(&server).await;
    assert_eq!(second.gets("b", asked("fair/x", 90.0)).await, 10.0);
    assert_eq!(first.pushed().await, ("a".to_owned(), 1, 50.0));
    assert_eq!(
        first.gets("a", asked_with("fair/x", 90.0, 50.0)).await,
        50.0
    );
    assert_eq!(second.pushed().await, ("b".to_owned(), 1, 50.0));
}

#[tokio::test]
async fn one_stream_carries_several_clients() {
    let server = start().await;
    let mut agent = Stream::open(&server).await;
    assert_eq!(agent.gets("a", asked("fair/x", 90.0)).await, 90.0);
    assert_eq!(agent.gets("b", asked("fair/x", 90.0)).await, 10.0);
    assert_eq!(agent.pushed().await, ("a".to_owned(), 1, 50.0));
}

#[tokio::test]
async fn the_newest_stream_of_a_client_gets_its_pushes_and_the_end_of_an_older_one_changes_nothing()
{
    let server = start().await;
    let mut older = Stream::open(&server).await;
    assert_eq!(older.gets("a", asked("fair/x", 90.0)).await, 90.0);
    let mut newer = Stream::open(&server).await;
    newer.sequence = older.sequence;
    assert_eq!(
        newer.gets("a", asked_with("fair/x", 90.0, 90.0)).await,
        90.0
    );
    drop(older);
    let mut other = Stream::open(&server).await;
    other.gets("b", asked("fair/x", 90.0)).await;
    assert_eq!(newer.pushed().await, ("a".to_owned(), 2, 50.0));
}

#[tokio::test]
async fn a_request_without_a_number_or_a_client_ends_the_stream() {
    let server = start().await;
    for (name, sequence) in [("a", None), ("", Some(1))] {
        let mut stream = Stream::open(&server).await;
        let request = GetCapacityRequest {
            sequence,
            ..request(name, vec![asked("fair/x", 1.0)])
        };
        stream.requests.send(request).await.expect("it is open");
        let ended = stream.next().await.expect_err("it is invalid");
        assert_eq!(ended.code(), Code::InvalidArgument, "{ended}");
    }
}

#[tokio::test]
async fn the_end_of_a_mastership_ends_streams_and_names_the_master() {
    let server = start().await;
    let mut stream = Stream::open(&server).await;
    stream.gets("a", asked("fair/x", 1.0)).await;
    let elsewhere = Mastership::Elsewhere {
        master_address: "other:1".to_owned(),
        epoch: Some(9),
    };
    let node = server.state().node();
    node.change(|node, now| node.handle_mastership(elsewhere, now));
    let master = stream.told().await.mastership.expect("it says who is");
    assert_eq!(master.master_address.as_deref(), Some("other:1"));
    assert_eq!(stream.next().await.expect("in order"), None);
}

#[tokio::test]
async fn a_shutdown_ends_streams() {
    let server = start().await;
    let mut stream = Stream::open(&server).await;
    stream.gets("a", asked("fair/x", 1.0)).await;
    let stopping = tokio::spawn(server.shutdown());
    // The mastership may end first; then the stream ends with that.
    while let Ok(Some(_)) = stream.next().await {}
    drop(stream);
    stopping.await.expect("it stops");
}

#[tokio::test]
async fn a_closed_stream_is_forgotten() {
    let server = start().await;
    let mut stream = Stream::open(&server).await;
    stream.gets("a", asked("fair/x", 1.0)).await;
    let streams = || server.state().node().read(|node, _| node.client_streams());
    assert_eq!(streams(), 1);
    drop(stream);
    eventually("the node forgets the stream", async || streams() == 0).await;
}
