//! Messages in flight between clients and servers, and between servers, in the order of sending. Each stays until it is
//! delivered, lost or duplicated.

use std::collections::BTreeMap;

use doorward_engine::messages::{
    GetCapacity, GetCapacityReply, GetServerCapacity, GetServerCapacityReply, ReleaseCapacity,
};

/// A message. Numbers identify clients and servers. A message between servers belongs to a connection, by its number,
/// between a child and its parent.
#[derive(Clone, Debug)]
pub enum Message {
    Request(usize, GetCapacity),
    /// To the client, the answer to its request of that sequence.
    Answer(usize, u64, GetCapacityReply),
    Release(usize, ReleaseCapacity),
    /// From a child server to its parent.
    ServerRequest(usize, u64, GetServerCapacity),
    /// To a child server from its parent.
    ServerAnswer(usize, u64, GetServerCapacityReply),
}

/// Direction of a message between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
}

impl Message {
    /// Returns the child, the connection and the direction of a message between a child and its parent, or nothing for
    /// a message from or to a client.
    pub fn link(&self) -> Option<(usize, u64, Way)> {
        match self {
            Self::ServerRequest(child, connection, _) => Some((*child, *connection, Way::Up)),
            Self::ServerAnswer(child, connection, _) => Some((*child, *connection, Way::Down)),
            _ => None,
        }
    }
}

/// All messages in flight, by a rising number.
#[derive(Debug, Default)]
pub struct Mail {
    on_its_way: BTreeMap<u64, Message>,
    sent: u64,
}

impl Mail {
    /// Adds a message in flight. Returns its number.
    pub fn send(&mut self, message: Message) -> u64 {
        self.sent += 1;
        self.on_its_way.insert(self.sent, message);
        self.sent
    }

    pub fn get(&self, number: u64) -> Option<&Message> {
        self.on_its_way.get(&number)
    }

    /// Returns a message to be changed in flight.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Message> {
        self.on_its_way.get_mut(&number)
    }

    /// Removes a message that arrived or is lost.
    pub fn take(&mut self, number: u64) -> Option<Message> {
        self.on_its_way.remove(&number)
    }

    /// Duplicates a message. Returns the number of the second one.
    pub fn copy(&mut self, number: u64) -> Option<u64> {
        let copy = self.get(number)?.clone();
        Some(self.send(copy))
    }

    /// Iterates over all messages, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Message)> {
        self.on_its_way.iter().map(|(number, it)| (*number, it))
    }

    /// Iterates over the messages between a child and its parent, the oldest first.
    pub fn of_link(&self, child: usize) -> impl DoubleEndedIterator<Item = (u64, &Message)> {
        let all = self.on_its_way.iter();
        all.filter(move |(_, it)| it.link().is_some_and(|(of, ..)| of == child))
            .map(|(number, it)| (*number, it))
    }

    /// Iterates over the messages of that direction.
    pub fn on_link(&self, child: usize, way: Way) -> impl DoubleEndedIterator<Item = u64> {
        let of_link = self.of_link(child);
        of_link
            .filter(move |(_, it)| it.link().is_some_and(|(.., goes)| goes == way))
            .map(|(number, _)| number)
    }
}
