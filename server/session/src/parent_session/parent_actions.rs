//! The inputs and the actions of a session with the parent.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use thiserror::Error;

use crate::address::Address;
use crate::close_reason::ConnectionEnd;
use crate::master_finder::DeadEndReason;
use crate::parent_session::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, MESSAGES_PER_SECOND_MAX, PollReason};

/// How the parent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On a stream, which carries a change at once.
    Stream,
    /// By separate calls.
    Calls,
}

/// The number of a connection. Events of an older connection are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u64);

/// What a server answers about the mastership of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MasterInfo<'a> {
    /// Whether the server itself is the master.
    pub is_master: bool,
    /// The master's address, if the server names one.
    pub master: Option<&'a str>,
    /// The master's epoch. Absent: there is no election, or the server does not state it.
    pub epoch: Option<u64>,
}

impl MasterInfo<'_> {
    /// Of a server without Discovery: it counts as the master.
    pub const NOT_STATED: Self = Self {
        is_master: true,
        master: None,
        epoch: None,
    };
}

/// One resource in an answer of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredResource {
    /// The resource, by the number that the driver gave it in the request.
    pub resource: u64,
    /// The sequence number of the newest request that it takes into account. Absent: not stated; it answers any.
    pub to: Option<u64>,
}

impl AnsweredResource {
    /// The number of a resource of that name: a hash. If two names collided, which practically never happens, an
    /// answer to one would count for the other.
    pub fn number_of(name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    }
}

/// An answer of the parent, or a change that it pushed, without the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The call that this answers. Absent: it came on a stream.
    pub call: Option<u64>,
    /// Set if the server is not the master: which server is.
    pub not_master: Option<MasterInfo<'a>>,
    /// The resources in it.
    pub answered: &'a [AnsweredResource],
}

/// What to do with the body of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// Give it to the node.
    Keep,
    /// Ignore it.
    Drop,
}

/// Why the session waits, or leaves a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParentFailure {
    /// No address is known.
    #[error("no address is known")]
    NoAddress,
    /// The connection ended. The driver knows the details.
    #[error("the connection ended")]
    Closed(ConnectionEnd),
    /// A step took too long.
    #[error("no {} within {:?}", .0.what(), .0.timeout())]
    TimedOut(TimedOut),
    /// The parent sends more messages than a parent ever needs to.
    #[error("it sends more than {MESSAGES_PER_SECOND_MAX} messages a second")]
    Flood,
    /// The server that answers is not the master, and does not lead to one.
    #[error(transparent)]
    DeadEnd(DeadEndReason),
}

/// The step that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// A connection.
    Connection,
    /// A stream.
    Stream,
    /// An answer on a stream.
    StreamAnswer,
    /// An answer to a call, or to Discovery.
    Answer,
}

impl TimedOut {
    const fn what(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Stream => "stream",
            Self::StreamAnswer => "answer on the stream",
            Self::Answer => "answer",
        }
    }

    const fn timeout(self) -> Duration {
        match self {
            Self::Connection => CONNECT_TIMEOUT,
            Self::Stream | Self::StreamAnswer | Self::Answer => ANSWER_TIMEOUT,
        }
    }
}

/// What to log, and to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentReport {
    /// The parent answers.
    Answers {
        /// How it is asked.
        transport: Transport,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// Streams do not work: the parent is polled for a while.
    Polls {
        /// The server whose stream does not work. The next one may be asked already.
        parent: Option<Address>,
        /// The reason.
        why: PollReason,
        /// The failure that showed it.
        failure: ParentFailure,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The master is elsewhere.
    Redirected {
        /// The server that redirected.
        from: Address,
        /// The master.
        to: Address,
    },
    /// The parent replaced the stream by a newer one, although this server is the master.
    Replaced {
        /// The server that replaced it.
        parent: Option<Address>,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The parent cannot be asked.
    Down {
        /// The server that cannot be asked. The next one may be asked already. Absent: none was asked yet.
        parent: Option<Address>,
        /// The reason.
        failure: ParentFailure,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The epochs of the parent began again at a lower number.
    EpochForgotten {
        /// The epoch that was forgotten.
        forgotten: u64,
        /// The epoch of the master now.
        epoch: u64,
    },
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentAction {
    /// Connect. Pass all events of this connection in with its number.
    Connect {
        /// Its number.
        connection: ConnectionNumber,
        /// The server.
        to: Address,
        /// How it will be asked. On a connection for a stream, pings detect that it is dead.
        transport: Transport,
    },
    /// Ask the server whether it is the master.
    Discover,
    /// Open a stream.
    Open,
    /// From now on the node gathers changes for a round of this length: that of streams, or that of calls.
    SetPace(Transport),
    /// Send what is due on the stream; with `is_hello` send the first message of a stream even if nothing is due.
    /// If anything was sent, call `handle_sent`.
    Send {
        /// Whether to send a message in any case.
        is_hello: bool,
    },
    /// Call for what is due. Then call `handle_sent`, or `handle_nothing_due`.
    Call,
    /// Drop the connection and everything in flight on it. The node learns that the parent is lost.
    Close,
    /// Log this, and show it.
    Report(ParentReport),
}
