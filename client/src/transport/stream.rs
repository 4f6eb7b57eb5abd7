//! The client's stream to the master: requests and their answers, and pushes.

use doorward_proto::doorman::{GetCapacityRequest, GetCapacityResponse};
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use doorward_tls::dialer::Dialed;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::transport::connection::ANSWER_BYTES_MAX;

/// An open stream.
pub(super) struct CapacityStream {
    requests: mpsc::Sender<GetCapacityRequest>,
    answers: Streaming<GetCapacityResponse>,
}

impl CapacityStream {
    /// Opens a stream with its first request, because a proxy may wait for that.
    ///
    /// # Errors
    ///
    /// The status of the server.
    pub(super) async fn open(channel: Dialed, first: GetCapacityRequest) -> Result<Self, Status> {
        let (requests, outgoing) = mpsc::channel(1);
        let _has_room = requests.try_send(first);
        let mut client =
            CapacityStreamClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        let answers = client
            .stream_capacity(ReceiverStream::new(outgoing))
            .await?;
        Ok(Self {
            requests,
            answers: answers.into_inner(),
        })
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// If the stream is over.
    pub(super) async fn send(&self, request: GetCapacityRequest) -> Result<(), Status> {
        let sent = self.requests.send(request).await;
        sent.map_err(|_| Status::unavailable("the stream is over"))
    }

    /// Waits for the next message. Cancel safe.
    ///
    /// # Errors
    ///
    /// The reason for which the stream is over.
    pub(super) async fn next(&mut self) -> Result<GetCapacityResponse, Status> {
        let next = self.answers.message().await?;
        next.ok_or_else(|| Status::unavailable("the server closed the stream"))
    }
}
