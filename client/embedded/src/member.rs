//! A process in a group.

use std::net::SocketAddr;

use doorward::Client;
use doorward_server::metrics::format::Format;

use crate::serving::Serving;

/// A process in its group: its [client](Client), and its part in serving. When it is dropped, the process no longer serves
/// others. Its resources and limiters go on as long as another process does: keep the member as long as them.
#[derive(Debug)]
#[must_use = "the process leaves its group when this is dropped"]
pub struct Member {
    client: Client,
    serving: Serving,
}

impl Member {
    pub(crate) const fn new(client: Client, serving: Serving) -> Self {
        Self { client, serving }
    }

    /// Returns the client, as with servers.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns whether this process serves the group now.
    pub fn is_serving(&self) -> bool {
        self.serving.shared.is_master()
    }

    /// Returns why this process cannot serve, or serves without its page or the newest templates.
    pub fn problem(&self) -> Option<String> {
        self.serving.problem()
    }

    /// Returns the address of the [page](crate::Embedded::page), if this process serves it now.
    pub fn page(&self) -> Option<SocketAddr> {
        self.serving.shared.read(|now| now.page)
    }

    /// Returns the metrics of the group's server in Prometheus' text format, if this process runs it now: it serves, or is
    /// a candidate in etcd.
    pub fn metrics(&self) -> Option<String> {
        let (_, metrics) = self.serving.shared.read(|now| now.server.clone())?;
        metrics.render(Format::Plain).ok()
    }

    /// Releases all leases, and leaves the group. A process that serves goes on for about a second.
    pub async fn leave(self) {
        let Self { client, serving } = self;
        client.close().await;
        serving.end().await;
    }
}
