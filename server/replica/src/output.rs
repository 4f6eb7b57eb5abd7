//! Tasks of a replica for its driver.

use std::time::Duration;

use doorward_engine::id::HolderId;
use doorward_engine::messages::{
    Cycle, GetCapacityReply, GetServerCapacity, GetServerCapacityReply,
};
use doorward_engine::node::marks::MarkWrites;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_session::address::Address;
use doorward_session::candidate::report::ElectionReport;
use doorward_session::candidate::store::EtcdRequest;
use doorward_session::close_reason::CloseReason;
use doorward_session::parent_session::{ConnectionNumber, ParentReport, Transport};

/// Number of a call that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub(crate) u64);

/// A task for the driver.
#[derive(Clone, Debug)]
pub enum Output {
    /// For the connection to the parent.
    Parent(ToParent),
    /// For the stream of that number.
    Child(u64, ToChild),
    /// A push to a client with a stream.
    Client(HolderId, GetCapacityReply),
    /// The answer to a client's call that waited.
    Call(CallNumber, Outcome<GetCapacityReply>),
    /// For etcd.
    Etcd(ToEtcd),
    /// For the state directory. [`Replica::handle_marks_written`](crate::Replica::handle_marks_written) follows, with this
    /// number.
    Marks(u64, MarkWrites),
    /// Every resource has the templates of this number, which
    /// [`Replica::handle_templates`](crate::Replica::handle_templates) returned.
    TemplatesApplied(u64),
}

/// A task for the connection to the parent.
#[derive(Clone, Debug)]
pub enum ToParent {
    /// Connect. Pass all events of this connection in with its number.
    Connect {
        /// Number of the connection.
        connection: ConnectionNumber,
        /// Server.
        to: Address,
        /// Transport. On a connection for a stream, pings detect that it is dead.
        transport: Transport,
        /// Servers to try beside this one. The first that answers is a rival.
        rivals: Vec<Address>,
    },
    /// Ask the server which server is the master.
    Discover,
    /// Open a stream.
    Open,
    /// Send this on the stream.
    Send(GetServerCapacity),
    /// Send this as a call.
    Call(GetServerCapacity),
    /// Drop the connection and everything in flight on it.
    Close,
    /// Log this, and show it.
    Report(ParentReport),
}

/// A task for the connection to etcd.
#[derive(Clone, Debug)]
pub enum ToEtcd {
    /// Send this. Abandon the request before it.
    Ask(EtcdRequest),
    /// Send this beside it.
    AskBeside(EtcdRequest),
    /// Log this, and show it.
    Report(ElectionReport),
}

/// A task for the stream of a child server.
#[derive(Clone, Debug)]
pub enum ToChild {
    /// The answer to the last message.
    Answer {
        /// The answer.
        reply: GetServerCapacityReply,
        /// Wall clock before the decision, as time since the Unix epoch.
        wall: Duration,
    },
    /// A change that the child did not ask for.
    Push {
        /// The change.
        reply: GetServerCapacityReply,
        /// Wall clock before the decision, as time since the Unix epoch.
        wall: Duration,
    },
    /// End the stream, and tell the child why.
    End(StreamEnd),
}

/// Reason for the end of a stream, with what its child is told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// This server is not the master, or another mastership has begun.
    NotMaster(Mastership),
    /// The child is an ancestor of this node.
    Cycle(Cycle),
    /// Another stream of the child is of a newer mastership.
    OlderMaster {
        /// Epoch of the newer mastership.
        newer: u64,
    },
    /// Any other reason.
    Other(CloseReason),
}

impl StreamEnd {
    /// Returns the reason.
    pub const fn reason(&self) -> CloseReason {
        match self {
            Self::NotMaster(_) => CloseReason::NotMaster,
            Self::Cycle(_) => CloseReason::Cycle,
            Self::OlderMaster { .. } => CloseReason::OlderMaster,
            Self::Other(reason) => *reason,
        }
    }
}
