//! Messages between clients, servers and etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::time::Time;
use doorward_replica::{FromParent, ToParent};
use doorward_session::candidate::store::{
    EtcdEntry, EtcdKey, EtcdRequest, LeaseId, OpAnswer, OpId, View,
};
use doorward_session::parent_session::ConnectionNumber;

/// Timeout of a client's call, as in the client library.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Server process: the number of its node, and its own number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId {
    pub(crate) place: u32,
    pub(crate) term: u64,
}

/// Message under way.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A client calls a server.
    Call(CallId, ClientRequest),
    /// A client gets an answer to the request of that sequence number, or the request times out.
    Answer(CallId, RequestResult),
    /// A client gets a push of the server of that term.
    Push(u32, u64, GetCapacityReply),
    /// A client notices that its stream to the server of that term broke.
    Broken(u32, u64),
    /// A server sends a message on its connection to a server of its parent.
    Up(Line, ServerId, ToParent),
    /// A server receives a message on its connection to its parent.
    Down(Line, FromParent),
    /// A server sends a request to etcd, at that time.
    ToEtcd(ServerId, EtcdRequest, Time),
    /// A server receives news from etcd.
    FromEtcd(ServerId, EtcdNews),
    /// A lease in etcd may end.
    EtcdLease(LeaseId),
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

/// Message from etcd to a server.
#[derive(Clone, Debug)]
pub(crate) enum EtcdNews {
    /// Answer to a request, or its timeout.
    Answer(OpId, OpAnswer),
    /// Keys for the watch of that number. With a time, the server read them then; the watch sends others.
    Keys(u32, View, Option<Time>),
    /// The server reads its keys to test its contact with etcd.
    Look,
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
