//! Messages between clients and servers.

use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply};
use doorward_engine::request::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::ConnectionNumber;

/// Server process: the number of its node, and its own number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId {
    pub(crate) place: u32,
    pub(crate) term: u64,
}

/// Message under way.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A client asks which server is master, to send this request to it.
    Discover {
        client: u32,
        place: u32,
        /// Slot of the node whose address is asked.
        slot: u32,
        request: Box<GetCapacity>,
    },
    /// A client sends a request to a server.
    Ask {
        client: u32,
        server: ServerId,
        request: GetCapacity,
    },
    /// A client releases leases.
    Release {
        client: u32,
        server: ServerId,
        request: ReleaseCapacity,
    },
    /// A client gets an answer, or its request times out.
    Answer {
        client: u32,
        sequence: u64,
        answer: RequestResult,
    },
    /// A server sends a message on its connection to a server of its parent.
    Up {
        child: ServerId,
        connection: ConnectionNumber,
        to: ServerId,
        what: Up,
    },
    /// A server receives a message on its connection to its parent.
    Down {
        child: ServerId,
        connection: ConnectionNumber,
        what: Down,
    },
}

/// Message to a parent.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    /// Connects.
    Connect,
    /// Asks which server is master.
    Discover,
    /// Opens a stream.
    Open,
    /// Sends a request on the stream.
    Ask(GetServerCapacity),
    /// Sends a request as a call.
    Call(GetServerCapacity),
}

/// Message from a parent.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    /// The connection is established.
    Connected,
    /// The server says whether it is master, or names the master.
    Discovered(Mastership),
    /// The stream is open.
    Opened,
    /// The parent answers a call, or pushes on the stream.
    Reply {
        call: Option<u64>,
        reply: GetServerCapacityReply,
    },
    /// The server is not master. It names the master, if it knows.
    NotMaster {
        call: Option<u64>,
        mastership: Mastership,
    },
    /// The connection has ended.
    Closed(ConnectionEnd),
}

/// Result of a client's request.
#[derive(Clone, Debug)]
pub(crate) enum RequestResult {
    /// Answer of a server.
    Said(Outcome<GetCapacityReply>),
    /// Acknowledgement of a release.
    Released,
    /// Failure: no server listens, the connection broke, or no answer came in time.
    Failed,
    /// Answer to the question for the master.
    Discovered(Box<Discovered>),
}

/// Server's answer about the master, with the client's request for the master.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    pub(crate) request: GetCapacity,
    /// Term of the server that answers.
    pub(crate) by: u64,
    pub(crate) mastership: Mastership,
}
