//! The state of each state machine of a replica: the session with its parent, its candidate, and the streams of its child
//! servers.

use doorward_replica::Replica;
use doorward_session::candidate::state::CandidateState;
use doorward_session::child_streams::StreamsSnapshot;
use doorward_session::parent_session::ParentSession;
use doorward_session::time::Time;

/// The machines of a server.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Session with the parent. Absent: there is no parent.
    pub parent: Option<&'static str>,
    /// Candidate. Absent: there is no election.
    pub election: Option<CandidateState>,
    /// Streams of child servers.
    pub child_streams: StreamsSnapshot,
}

impl Sessions {
    /// Returns the machines of a replica.
    pub fn of(replica: &Replica, now: Time) -> Self {
        Self {
            parent: replica.parent_session().map(ParentSession::state),
            election: replica.candidate().map(|candidate| candidate.state(now)),
            child_streams: replica.streams(),
        }
    }
}
