//! Configuration of a replica.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node;
use doorward_session::address::Address;
use doorward_session::child_streams::StreamLimits;

/// Configuration of a replica.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Settings of the node. Whether it has a parent follows from `parent`.
    pub node: node::Config,
    /// Link to the parent. Absent: this is the root.
    pub parent: Option<ParentConfig>,
    /// Time for which changes are gathered before child servers get them.
    pub push_round: Duration,
    /// Limits on the streams of child servers.
    pub stream_limits: StreamLimits,
}

/// A root whose changes are gathered for 50 ms, without limits on streams.
impl From<node::Config> for ReplicaConfig {
    fn from(node: node::Config) -> Self {
        Self {
            node,
            parent: None,
            push_round: Duration::from_millis(50),
            stream_limits: StreamLimits::default(),
        }
    }
}

/// Configuration of the link to the parent.
#[derive(Clone, Debug)]
pub struct ParentConfig {
    /// Addresses of its servers, in the order to try. Empty: no server is asked before
    /// [`Replica::handle_parent_addresses`](crate::Replica::handle_parent_addresses).
    pub addresses: Arc<[Address]>,
    /// Time for which changes are gathered before they go up on a stream.
    pub round: Duration,
    /// Time for which minor changes are gathered, and the shortest interval between two calls.
    pub slow_round: Duration,
}
