//! Events of the connection to the parent.

use doorward_engine::id::ResourceId;
use doorward_engine::messages::GetServerCapacityReply;
use doorward_engine::node::mastership::Mastership;
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::{AnsweredResource, MasterInfo};

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

/// Converts what a server says about the master of its node.
pub(super) fn master_info(mastership: &Mastership) -> MasterInfo<'_> {
    MasterInfo {
        is_master: mastership.is_master(),
        master: match mastership {
            Mastership::Elsewhere { master_address, .. } => Some(master_address),
            Mastership::Master { .. } | Mastership::Unknown => None,
        },
        epoch: mastership.epoch(),
    }
}

/// Returns the resources that a reply answers.
pub(super) fn answered(
    reply: &GetServerCapacityReply,
    invalid: &[(ResourceId, String)],
) -> Vec<AnsweredResource> {
    let leases = reply.leases.iter().map(|it| (&it.resource, it.sequence));
    // Refusals and invalid answers do not name their request, but a parent sends them only on request.
    let refused = reply.refused.iter().map(|it| (&it.resource, None));
    let invalid = invalid.iter().map(|(resource, _)| (resource, None));
    let all = leases.chain(refused).chain(invalid);
    all.map(|(resource, to)| AnsweredResource {
        resource: AnsweredResource::number_of(resource.as_str()),
        to,
    })
    .collect()
}
