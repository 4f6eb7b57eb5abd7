//! Events of the connection to the parent.

use doorward_engine::id::ResourceId;
use doorward_engine::messages::GetServerCapacityReply;
use doorward_engine::node::mastership::Mastership;
use doorward_session::close_reason::ConnectionEnd;

/// An event of the connection to the parent.
#[derive(Clone, Debug)]
pub enum FromParent {
    /// The connection is made.
    Connected,
    /// The server says which server is the master.
    Discovered(Mastership),
    /// The stream is open.
    Opened,
    /// One part of a large request was answered, and the next part is sent.
    Progress,
    /// An answer, or a push.
    Reply {
        /// Call that this answers. Absent: it came on the stream.
        call: Option<u64>,
        /// The answer.
        reply: GetServerCapacityReply,
        /// Resources whose answer is invalid, with the problem.
        invalid: Vec<(ResourceId, String)>,
    },
    /// The server is not the master, and names the master if it knows it.
    NotMaster {
        /// Call that this answers. Absent: it came on the stream.
        call: Option<u64>,
        /// The master, as far as the server knows.
        master: Mastership,
    },
    /// The parent refuses this node as its own ancestor: the nodes from the parent up to this one.
    Cycle(Vec<String>),
    /// The connection ended, or could not be made.
    Closed(ConnectionEnd),
}
