//! Messages between clients, servers and etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::time::Time;
use doorward_session::candidate::store::{EtcdEntry, EtcdKey, View};
use doorward_session::parent_session::ConnectionNumber;

/// Timeout of a client's call, as in the client library.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Server process: the number of its node, and its own number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId {
    pub(crate) place: u32,
    pub(crate) term: u64,
}

/// A request of a client: the client, and the sequence number of the request.
pub(crate) type CallId = (u32, u64);

/// Request of a client.
#[derive(Clone, Debug)]
pub(crate) enum ClientRequest {
    /// Asks the server at the address of a slot which server is master, to send this request to it.
    Discover(u32, GetCapacity),
    /// Asks the server of a term for leases.
    Ask(u64, GetCapacity),
    /// Releases leases at the server of a term.
    Release(u64, ReleaseCapacity),
}

/// A connection of a child server with its parent.
pub(crate) type Line = (ServerId, ConnectionNumber);

/// Result of a client's request.
#[derive(Clone, Debug)]
pub(crate) enum RequestResult {
    /// Answer of a server.
    Said(Outcome<GetCapacityReply>),
    /// Acknowledgement of a release.
    Released,
    /// Failure: no server listens, the connection broke, or no answer came in time.
    Failed,
    /// What the server of that term says about the master, with the client's request for the master.
    Discovered(u64, Mastership, GetCapacity),
}

/// Keys of a node. Their entries have the origin as the time at which they were seen.
pub(crate) type NodesKeys = BTreeMap<EtcdKey, EtcdEntry>;

/// Returns the view of a server that reads keys of its node and has seen `known` before: unchanged entries keep the
/// time at which it first saw them.
pub(crate) fn seen(mut read: View, known: Option<&View>, now: Time) -> View {
    for (key, entry) in &mut read.entries {
        let known = known.and_then(|known| known.entries.get(key));
        entry.seen_at = known.map_or(now, |known| known.seen_at);
        if known.is_some_and(|known| known != entry) {
            entry.seen_at = now;
        }
    }
    read
}
