//! What is on its way between clients and servers.

use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply};
use doorward_engine::request::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_session::close_reason::ConnectionEnd;
use doorward_session::parent_session::ConnectionNumber;

/// A server process: its place in the tree, and which of those that ever ran there it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId {
    pub(crate) place: u32,
    pub(crate) term: u64,
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A client asks who the master is, to whom it wants to say this.
    Discover {
        client: u32,
        place: u32,
        /// At which address of the place.
        slot: u32,
        request: Box<GetCapacity>,
    },
    /// A client asks a server.
    Ask {
        client: u32,
        server: ServerId,
        request: GetCapacity,
    },
    /// A client gives back what it has.
    Release {
        client: u32,
        server: ServerId,
        request: ReleaseCapacity,
    },
    /// A client is answered, or learns that it will not be.
    Answer {
        client: u32,
        sequence: u64,
        answer: RequestResult,
    },
    /// A server does something on its connection to a server of its parent.
    Up {
        child: ServerId,
        connection: ConnectionNumber,
        to: ServerId,
        what: Up,
    },
    /// A server hears something on its connection to its parent.
    Down {
        child: ServerId,
        connection: ConnectionNumber,
        what: Down,
    },
}

/// What goes up.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    /// It connects.
    Connect,
    /// Who is the master?
    Discover,
    /// It opens a stream.
    Open,
    /// It asks, on the stream.
    Ask(GetServerCapacity),
    /// It asks by a call.
    Call(GetServerCapacity),
}

/// What comes down.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    /// The connection stands.
    Connected,
    /// The server says whether it is the master, or who is.
    Discovered(Mastership),
    /// The stream is open.
    Opened,
    /// What the parent answers to a call, or pushes on the stream.
    Reply {
        call: Option<u64>,
        reply: GetServerCapacityReply,
    },
    /// The server is not the master; who is, if it knows.
    NotMaster {
        call: Option<u64>,
        mastership: Mastership,
    },
    /// The connection is over.
    Closed(ConnectionEnd),
}

/// What comes of a client's request.
#[derive(Clone, Debug)]
pub(crate) enum RequestResult {
    /// What a server said.
    Said(Outcome<GetCapacityReply>),
    /// What it gave back was heard of.
    Released,
    /// Nothing: nobody listens, the connection broke, or no answer came in time.
    Failed,
    /// What it said to the question who the master is.
    Discovered(Box<Discovered>),
}

/// What a server says of itself, and what the client wanted to say to the master.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    pub(crate) request: GetCapacity,
    /// Which server of the place says it.
    pub(crate) by: u64,
    pub(crate) mastership: Mastership,
}

/// Messages on their way, in slots that are used again.
#[derive(Debug)]
pub(crate) struct Mail<M = Message> {
    slots: Vec<Option<M>>,
    free: Vec<u32>,
}

impl<M> Default for Mail<M> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<M> Mail<M> {
    /// Keeps a message; returns its slot.
    pub(crate) fn keep(&mut self, message: M) -> u32 {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.slots.get_mut(slot as usize)
        {
            *place = Some(message);
            return slot;
        }
        self.slots.push(Some(message));
        u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
    }

    /// Takes a message out of its slot.
    pub(crate) fn take(&mut self, slot: u32) -> Option<M> {
        let message = self.slots.get_mut(slot as usize)?.take();
        self.free.push(slot);
        message
    }
}
