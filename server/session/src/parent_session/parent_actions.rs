//! Inputs and actions of a session with the parent.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use thiserror::Error;

use crate::address::Address;
use crate::close_reason::ConnectionEnd;
use crate::master_finder::DeadEndReason;
use crate::parent_session::{MESSAGES_PER_SECOND_MAX, PollReason};

/// Transport of requests to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A stream, which carries a change at once.
    Stream,
    /// Separate calls.
    Calls,
}

/// Number of a connection. Events of an older connection are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u64);

/// Answer of a server about the mastership of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MasterInfo<'a> {
    /// Whether the server itself is the master.
    pub is_master: bool,
    /// Address of the master, if the server names one.
    pub master: Option<&'a str>,
    /// Epoch of the master. Absent: there is no election, or the server does not send it.
    pub epoch: Option<u64>,
}

/// One resource in an answer of the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredResource {
    /// Number of the resource, which the driver gave it in the request.
    pub resource: u64,
    /// Sequence number of the newest request that it takes into account. Absent: not sent; it answers any.
    pub to: Option<u64>,
}

impl AnsweredResource {
    /// Returns the number of a resource of that name: a hash. If two names collided, which practically never happens,
    /// an answer to one would count for the other.
    pub fn number_of(name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    }
}

/// An answer of the parent, or a change that it pushed, without the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Call that this answers. Absent: it came on a stream.
    pub call: Option<u64>,
    /// Master of the node, if the server is not the master itself.
    pub not_master: Option<MasterInfo<'a>>,
    /// Resources in it.
    pub answered: &'a [AnsweredResource],
}

/// Use of a reply's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Disposition {
    /// Give it to the node.
    Keep,
    /// Ignore it.
    Drop,
}

/// Reason why the session waits, or leaves a server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParentFailure {
    /// No address is known.
    #[error("no address is known")]
    NoAddress,
    /// The connection ended. The driver knows the details.
    #[error("the connection ended")]
    Closed(ConnectionEnd),
    /// A step took too long.
    #[error("no {what} within {within:?}")]
    TimedOut {
        /// Missing result of the step.
        what: &'static str,
        /// Timeout of the step.
        within: Duration,
    },
    /// The parent sends more messages than a parent ever needs to.
    #[error("it sends more than {MESSAGES_PER_SECOND_MAX} messages a second")]
    Flood,
    /// The server that answers is not the master, and does not lead to one.
    #[error(transparent)]
    DeadEnd(DeadEndReason),
}

/// Report for the log and the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentReport {
    /// The parent answers.
    Answers {
        /// Transport.
        transport: Transport,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// Streams do not work: the parent is polled for a while.
    Polls {
        /// Server whose stream does not work. The next one may be asked already.
        parent: Option<Address>,
        /// Reason.
        why: PollReason,
        /// Failure that showed it.
        failure: ParentFailure,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The master is elsewhere.
    Redirected {
        /// Server that redirected.
        from: Address,
        /// Master.
        to: Address,
    },
    /// The parent replaced the stream by a newer one, although this server is the master.
    Replaced {
        /// Server that replaced it.
        parent: Option<Address>,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The parent cannot be asked.
    Down {
        /// Server that cannot be asked. The next one may be asked already. Absent: none was asked yet.
        parent: Option<Address>,
        /// Reason.
        failure: ParentFailure,
        /// Whether this is a change since the last report.
        is_news: bool,
    },
    /// The epochs of the parent began again at a lower number.
    EpochForgotten {
        /// Epoch that was forgotten.
        forgotten: u64,
        /// Epoch of the present master.
        epoch: u64,
    },
}

/// A task for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentAction {
    /// Connect. Pass all events of this connection in with its number.
    Connect {
        /// Number of the connection.
        connection: ConnectionNumber,
        /// Server.
        to: Address,
        /// Transport. On a connection for a stream, pings detect that it is dead.
        transport: Transport,
    },
    /// Ask the server whether it is the master.
    Discover,
    /// Open a stream.
    Open,
    /// Let the node gather changes for the round of this transport from now on.
    SetPace(Transport),
    /// Send what is due on the stream; with `is_hello` send the first message of a stream even if nothing is due.
    /// If anything was sent, call `handle_sent`.
    Send {
        /// Whether to send a message in any case.
        is_hello: bool,
    },
    /// Call for what is due. Then call `handle_sent`, or `handle_nothing_due`.
    Call,
    /// Drop the connection and everything in flight on it. The node gets to know that the parent is lost.
    Close,
    /// Log this, and show it.
    Report(ParentReport),
}
