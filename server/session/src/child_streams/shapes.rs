//! What goes in and out of [`ChildStreams`](super::ChildStreams), and what can be seen of it.

use smol_str::SmolStr;

use crate::closing::Closing;

/// How many children may have a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// In all. None: no bound.
    pub children_max: Option<usize>,
    /// Of these, so many from one address. None: no bound. Who has no address counts only in the whole.
    pub children_of_caller_max: Option<usize>,
}

/// What the first message of a stream says of it, and what is known besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The child's node.
    pub child: SmolStr,
    /// Of the mastership by which the child's server speaks for its node. Absent: it has no election.
    pub epoch: Option<u64>,
    /// Which process of the child's node it is. Absent: it does not say.
    pub incarnation: Option<u64>,
    /// Where it comes from, as a number. Absent: nobody says.
    pub caller: Option<u128>,
    /// Whether the node refuses that process now, since another live one was there first. It counts only
    /// beside the stream of another process.
    pub is_refused: bool,
    /// The number of the mastership of the parent's node.
    pub mastership: u64,
    /// How many children may have a stream now.
    pub room: Room,
}

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its first message has not come.
    Opening,
    /// It is the stream of its child.
    Open,
}

impl State {
    /// For a metric, and a page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Open => "open",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The node tells that child from now on what changes for it. It may do so already.
    Subscribe(SmolStr),
    /// The node tells it no more.
    Unsubscribe(SmolStr),
    /// A round is over: what has changed is told to all that have a stream.
    Push,
    /// That stream ends, and its child is told why.
    Close {
        /// Which.
        number: u64,
        /// Why.
        closing: Closing,
    },
}

/// What is to be shown. By default: of nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Streams by their state.
    pub streams: Vec<(State, usize)>,
    /// How many were closed from this side since the start, by the reason.
    pub closed: Vec<(Closing, u64)>,
}
