//! The inputs, actions and snapshot of [`ChildStreams`](super::ChildStreams).

use smol_str::SmolStr;

use crate::close_reason::CloseReason;
use crate::named;

/// Limits on the number of children with a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// All children. None: no limit.
    pub children_max: Option<usize>,
    /// Children from one address. None: no limit. A child without an address counts only in `children_max`.
    pub children_of_caller_max: Option<usize>,
}

/// First message of a stream, with facts from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Node of the child.
    pub child: SmolStr,
    /// Epoch of the mastership of the child's server. Absent: its node has no election.
    pub epoch: Option<u64>,
    /// Process of the child's node. Absent: not sent.
    pub incarnation: Option<u64>,
    /// Address of the sender, as a number. Absent: unknown.
    pub caller: Option<u128>,
    /// Whether the node refuses that process now, because another live process was first. It counts only while another
    /// process has the stream.
    pub is_refused: bool,
    /// Number of the mastership of the parent's node.
    pub mastership: u64,
    /// Present limits.
    pub limits: StreamLimits,
}

named! {
    /// The state of a stream.
    #[derive(PartialOrd, Ord, Hash)]
    StreamState {
        /// Its first message has not come yet.
        Opening = "opening",
        /// It is the stream of its child.
        Open = "open",
    }
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Let the node push changes to that child from now on. It may do so already.
    Subscribe(SmolStr),
    /// Let the node stop pushing to that child.
    Unsubscribe(SmolStr),
    /// Push the changes of a round to all children with a stream.
    Push,
    /// Close that stream, and send the reason to the child.
    Close {
        /// The stream.
        number: u64,
        /// The reason.
        closing: CloseReason,
        /// Child that the stream belongs to, or would have belonged to. Absent: its first message did not come.
        child: Option<SmolStr>,
    },
}

/// Status of all streams. By default, of no streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsSnapshot {
    /// Streams by their state.
    pub streams: Vec<(StreamState, usize)>,
    /// Streams that this side has closed since the start, by reason.
    pub closed: Vec<(CloseReason, u64)>,
}
