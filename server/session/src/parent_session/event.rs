//! What a session with the parent hears, and what it wants done.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use thiserror::Error;

use crate::address::Address;
use crate::closing::Closed;
use crate::master_finder::Why;
use crate::parent_session::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, MESSAGES_PER_SECOND_MAX, Polled};

/// How the parent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a stream, on which a change travels as it happens.
    Stream,
    /// By calls, each answered by itself.
    Calls,
}

/// A connection, by its number: what comes of an older one is for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection(pub u64);

/// What a server says of the mastership of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mastership<'a> {
    /// Whether it is the master itself.
    pub is_master: bool,
    /// Where the master is, if it names one.
    pub master: Option<&'a str>,
    /// The master's epoch. Absent: there is no election, or it does not say.
    pub epoch: Option<u64>,
}

impl Mastership<'_> {
    /// Of a server so old that it cannot say: it is taken for the master.
    pub const UNTOLD: Self = Self {
        is_master: true,
        master: None,
        epoch: None,
    };
}

/// One resource that the parent answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Which, by the number that the driver gives it: the same as in the request.
    pub resource: u64,
    /// The request it answers, or the newest that it knows of. Absent: it does not say, and answers any.
    pub to: Option<u64>,
}

impl Answered {
    /// The number of a resource of that name: two names of one number are as good as never met, and would make
    /// an answer to one count for the other.
    pub fn number_of(name: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    }
}

/// What the parent answered, or told unasked: all but the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The call that it answers. Absent: it came on a stream.
    pub call: Option<u64>,
    /// The server is not the master; who is.
    pub not_master: Option<Mastership<'a>>,
    /// The resources it is about.
    pub answered: &'a [Answered],
}

/// What to do with the body of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is for the node.
    Keep,
    /// It is for nobody.
    Drop,
}

/// Why the parent is not asked for a while, or left.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// No address is known.
    #[error("no address is known")]
    NoAddress,
    /// As the driver was told, who knows more of it.
    #[error("the connection ended")]
    Closed(Closed),
    /// Something did not come in time.
    #[error("no {} within {:?}", .0.what(), .0.timeout())]
    Late(Late),
    /// It sends more messages than there can be.
    #[error("it sends more than {MESSAGES_PER_SECOND_MAX} messages a second")]
    Flood,
    /// Whoever answers is not the master, and leads nowhere.
    #[error(transparent)]
    Lost(Why),
}

/// What did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// A connection.
    Connection,
    /// A stream.
    Stream,
    /// An answer on a stream.
    StreamAnswer,
    /// An answer to a call, or on who is the master.
    Answer,
}

impl Late {
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
pub enum Report {
    /// The parent answers.
    Answers {
        /// How it is asked.
        way: Way,
        /// Whether that is news.
        is_news: bool,
    },
    /// Streams do not work: the parent is polled for a while.
    Polls {
        /// Why.
        why: Polled,
        /// What that was seen by.
        trouble: Trouble,
        /// Whether that is news.
        is_news: bool,
    },
    /// The master is elsewhere.
    Redirected {
        /// Where it was asked.
        from: Address,
        /// Where it is.
        to: Address,
    },
    /// The parent ended the stream for a newer one, although this server is the master.
    StandsBack {
        /// Whether that is news.
        is_news: bool,
    },
    /// The parent cannot be asked.
    Down {
        /// Why.
        trouble: Trouble,
        /// Whether that is news.
        is_news: bool,
    },
    /// The parent's masterships have begun again.
    Forgot {
        /// The epoch that was forgotten.
        forgotten: u64,
        /// The epoch that counts now.
        epoch: u64,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connects. What comes of it and what follows is told with the number of the connection.
    Connect {
        /// Its number.
        connection: Connection,
        /// To which server.
        to: Address,
        /// How it will be asked: on a connection for a stream, pings find out that it is dead.
        way: Way,
    },
    /// Asks the server whether it is the master.
    Discover,
    /// Opens a stream.
    Open,
    /// From now on the node is asked for what is due in that way: changes are gathered for a round
    /// of streams, or of calls.
    Pace(Way),
    /// Sends what is due on the stream; with `greets`, if nothing is due, what a stream begins with. The
    /// session is told by `handle_sent`, if anything was sent.
    Send {
        /// Whether something is to be sent in any case.
        greets: bool,
    },
    /// Asks for what is due by a call. The session is told by `handle_sent`, or `handle_nothing_due`.
    Call,
    /// The connection is over, and with it what is on its way: the node is told that the parent is lost.
    Close,
    /// Tells whoever looks.
    Report(Report),
}
