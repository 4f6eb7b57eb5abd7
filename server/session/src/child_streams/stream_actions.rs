//! The inputs, actions and snapshot of [`ChildStreams`](super::ChildStreams).

use smol_str::SmolStr;

use crate::close_reason::CloseReason;

/// How many children may have a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// In all. None: no limit.
    pub children_max: Option<usize>,
    /// From one address. None: no limit. A child without an address counts only in `children_max`.
    pub children_of_caller_max: Option<usize>,
}

/// The first message of a stream, and what the driver knows besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The child's node.
    pub child: SmolStr,
    /// The epoch of the mastership of the child's server. Absent: its node has no election.
    pub epoch: Option<u64>,
    /// The process of the child's node. Absent: not stated.
    pub incarnation: Option<u64>,
    /// The address it comes from, as a number. Absent: unknown.
    pub caller: Option<u128>,
    /// Whether the node refuses that process now, because another live process was first. It counts only while
    /// another process has the stream.
    pub is_refused: bool,
    /// The number of the mastership of the parent's node.
    pub mastership: u64,
    /// How many children may have a stream now.
    pub limits: StreamLimits,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamState {
    /// Its first message has not come yet.
    Opening,
    /// It is the stream of its child.
    Open,
}

impl StreamState {
    /// Its name, for metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open => "open",
        }
    }
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// From now on, the node pushes changes to that child. It may do so already.
    Subscribe(SmolStr),
    /// The node stops pushing to that child.
    Unsubscribe(SmolStr),
    /// A round is over: push the changes to all children with a stream.
    Push,
    /// Close that stream, and send the child the reason.
    Close {
        /// The stream.
        number: u64,
        /// The reason.
        closing: CloseReason,
    },
}

/// What is to be shown. By default, of no streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsSnapshot {
    /// Streams by their state.
    pub streams: Vec<(StreamState, usize)>,
    /// Streams that this side has closed since the start, by reason.
    pub closed: Vec<(CloseReason, u64)>,
}
