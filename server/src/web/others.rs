//! Other servers, which this one asks for a page.
//!
//! An answer is believed about the server itself only, and none gets a token: its address is what it says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse};
use doorward_session::visible;
use doorward_tls::dialer::{Dialed, Dialer};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;
use tonic::{Response, Status};

use crate::rpc::MESSAGE_BYTES_MAX;
use crate::status::ServerState;

/// Time for which a connection without a question is kept.
const IDLE: Duration = Duration::from_secs(60);

/// Longest wait for the answer of a server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Other servers, with connections that are kept for the next question.
#[derive(Debug)]
pub(super) struct Others {
    state: Arc<ServerState>,
    connections: Mutex<BTreeMap<String, (Dialed, Instant)>>,
}

impl Others {
    /// Returns the servers that `state` can reach.
    pub(super) fn new(state: Arc<ServerState>) -> Self {
        let connections = Mutex::default();
        Self { state, connections }
    }

    /// Asks the server at an address, until a time at most. Returns its answer, or why there is none.
    pub(super) async fn ask<A>(
        &self,
        address: &str,
        until: Instant,
        call: impl AsyncFnOnce(Dialed) -> Result<Response<A>, Status>,
    ) -> Result<A, String> {
        let channel = self.channel(address).map_err(|error| error.to_string())?;
        let left = until.saturating_duration_since(Instant::now());
        match timeout(left.min(PATIENCE), call(channel)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(visible::line(status.message()).into_owned()),
            Err(_) => {
                // Its connection may be dead.
                self.connections.lock().remove(address);
                Err("no answer in time".to_owned())
            }
        }
    }

    /// Asks the server at an address for its status, until a time at most. Returns it, or why there is none.
    pub(super) async fn status(
        &self,
        address: &str,
        request: &GetStatusRequest,
        until: Instant,
    ) -> Result<GetStatusResponse, String> {
        let call = async |channel| {
            let client = AdminClient::new(channel);
            let mut client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
            client.get_status(request.clone()).await
        };
        self.ask(address, until, call).await
    }

    /// Returns the status of the master of a node, if `status` is of a candidate that names it.
    pub(super) async fn master_of(
        &self,
        status: &GetStatusResponse,
        request: &GetStatusRequest,
        until: Instant,
    ) -> Option<GetStatusResponse> {
        let master = status.master_address.as_ref();
        let master = master.filter(|_| !status.is_master)?;
        let answer = self.status(master, request, until).await.ok()?;
        (answer.node == status.node).then_some(answer)
    }

    fn channel(&self, address: &str) -> Result<Dialed, tonic::transport::Error> {
        let now = Instant::now();
        let mut connections = self.connections.lock();
        connections.retain(|_, (_, used)| now - *used < IDLE);
        if let Some((channel, used)) = connections.get_mut(address) {
            *used = now;
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        let security = self.state.security.get();
        let dialer = security.map_or_else(Dialer::default, |it| it.config.dialer.clone());
        let endpoint = endpoint.connect_timeout(PATIENCE);
        let channel = dialer.without_token().channel(&endpoint);
        connections.insert(address.to_owned(), (channel.clone(), now));
        Ok(channel)
    }
}
