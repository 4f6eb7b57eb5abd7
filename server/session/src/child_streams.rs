//! The parent's side of the streams from its child servers: who has one, when what changed is told, and when
//! one ends, and why.
//!
//! A child's node has one stream. A newer one takes the place of the one before, with two exceptions: a
//! stream of an older mastership of that node (a lower epoch) is refused, and so is that of a process which
//! the node refuses, since another live one was there first. Who says no epoch is compared with nobody. A
//! process whose stream was replaced and that comes back was there first, too: else two of them that live
//! would take turns, and each would be silent for longer and longer.
//!
//! What changes for children unasked is gathered in *rounds*: the first change begins one, and when it is
//! over all that changed by then is told. A child that does not take what it is sent is cut off: it opens a
//! new stream, or polls.
//!
//! Streams are numbers, drawn here; children are the names of their nodes. The driver holds the streams
//! themselves, and closes them when it is told to. It does all of it under one lock, the node's decisions
//! included: a child is sent what was decided in the order in which it was decided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use smol_str::SmolStr;

use crate::child_streams::round::Round;
use crate::closing::Closing;
use crate::planted::{self, Bug};
use crate::time::Time;

mod round;
mod shapes;
#[cfg(test)]
mod tests;

pub use shapes::{Action, Hello, Room, Snapshot, State};

/// How long the first message of a stream may take.
pub const FIRST_MESSAGE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
enum Stream {
    Opening { until: Time },
    Open(Open),
}

/// A stream that is the one of its child.
#[derive(Clone, Debug)]
struct Open {
    child: SmolStr,
    epoch: Option<u64>,
    incarnation: Option<u64>,
    caller: Option<u128>,
    mastership: u64,
    turns: Turns,
}

/// What streams of other processes of a child's node showed of who was there first.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    /// Whose stream this one took the place of.
    replaced: Option<u64>,
    /// A process that took the place of this one, which came back: both live, and that one is the later.
    later: Option<u64>,
}

impl Open {
    /// What is known when a stream of that process takes the place of this one.
    fn turns_of(&self, process: Option<u64>) -> Turns {
        if process == self.incarnation {
            return self.turns;
        }
        let has_returned = process.is_some() && process == self.turns.replaced;
        Turns {
            replaced: self.incarnation.filter(|_| !has_returned),
            later: self.incarnation.filter(|_| has_returned),
        }
    }
}

/// The streams of a server's children.
#[derive(Clone, Debug)]
pub struct ChildStreams {
    /// How long changes are gathered before they are told.
    round_length: Duration,
    /// Numbers streams, in the order in which they came.
    connected: u64,
    streams: BTreeMap<u64, Stream>,
    /// Those that are opening. All have as long: the first is due first.
    opening: BTreeSet<u64>,
    /// The stream of each child that has one.
    by_child: BTreeMap<SmolStr, u64>,
    round: Round,
    is_stopping: bool,
    closed: [u64; Closing::ALL.len()],
    actions: VecDeque<Action>,
}

/// Getters.
impl ChildStreams {
    /// No streams yet. Changes are gathered for `round_length` before they are told.
    pub fn new(round_length: Duration) -> Self {
        Self {
            round_length,
            connected: 0,
            streams: BTreeMap::new(),
            opening: BTreeSet::new(),
            by_child: BTreeMap::new(),
            round: Round::Quiet,
            is_stopping: false,
            closed: [0; Closing::ALL.len()],
            actions: VecDeque::new(),
        }
    }

    /// What a stream is. None: it is over, or there was none of that number.
    pub fn state(&self, number: u64) -> Option<State> {
        self.streams.get(&number).map(|stream| match stream {
            Stream::Opening { .. } => State::Opening,
            Stream::Open(_) => State::Open,
        })
    }

    /// The stream of a child.
    pub fn of(&self, child: &str) -> Option<u64> {
        self.by_child.get(child).copied()
    }

    /// Of which mastership of its node the stream of a child is, as that said.
    pub fn epoch_of(&self, child: &str) -> Option<u64> {
        self.open(child)?.epoch
    }

    /// Whether a round is under way: a change more begins no other.
    pub const fn is_gathering(&self) -> bool {
        self.round.is_gathering()
    }

    /// What is to be shown. Counts, never scans.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            streams: vec![
                (State::Opening, self.opening.len()),
                (State::Open, self.by_child.len()),
            ],
            closed: Closing::ALL.into_iter().zip(self.closed).collect(),
        }
    }

    fn open(&self, child: &str) -> Option<&Open> {
        match self.streams.get(self.by_child.get(child)?)? {
            Stream::Open(open) => Some(open),
            Stream::Opening { .. } => None,
        }
    }
}

/// What happens.
impl ChildStreams {
    /// Somebody has opened a stream: its number. Whose it is, its first message tells.
    pub fn handle_connected(&mut self, now: Time) -> u64 {
        self.connected += 1;
        let number = self.connected;
        if self.is_stopping {
            self.close(number, Closing::Stopping);
            return number;
        }
        let until = now + FIRST_MESSAGE_WITHIN;
        self.streams.insert(number, Stream::Opening { until });
        self.opening.insert(number);
        number
    }

    /// The first message of a stream has come. It is that of its child from now on, or refused.
    pub fn handle_hello(&mut self, number: u64, hello: Hello) {
        if self.state(number) != Some(State::Opening) {
            return;
        }
        let before = self.open(&hello.child);
        let refusal = match before {
            None => self.lacks_room(hello.room, hello.caller),
            Some(before) if before.incarnation != hello.incarnation && hello.is_refused => {
                Some(Closing::AnotherProcess)
            }
            Some(before) if is_older(hello.epoch, before.epoch) => Some(Closing::OlderMaster),
            Some(before) if is_later(&hello, before) => Some(Closing::AnotherProcess),
            Some(_) => None,
        };
        let turns = before.map(|before| before.turns_of(hello.incarnation));
        if let Some(closing) = refusal {
            self.close(number, closing);
            return;
        }
        if let Some(before) = self.of(&hello.child)
            && !planted::is(Bug::ReplacedStaysOpen)
        {
            self.close(before, Closing::Replaced);
        }
        let child = hello.child;
        self.opening.remove(&number);
        let open = Stream::Open(Open {
            child: child.clone(),
            epoch: hello.epoch,
            incarnation: hello.incarnation,
            caller: hello.caller,
            mastership: hello.mastership,
            turns: turns.unwrap_or_default(),
        });
        self.streams.insert(number, open);
        self.by_child.insert(child.clone(), number);
        self.actions.push_back(Action::Subscribe(child));
        self.check();
    }

    /// A message of that child has come on a stream, the first one included. Returns whether it is to be
    /// answered: the stream is that of this child. The answer is decided and sent before anything else
    /// happens here.
    pub fn handle_message(&mut self, number: u64, child: &str) -> bool {
        match self.streams.get(&number) {
            Some(Stream::Open(open)) if open.child == child => true,
            Some(_) => {
                self.close(number, Closing::OtherChild);
                false
            }
            None => false,
        }
    }

    /// A stream is full: its child does not take what it is sent.
    pub fn handle_full(&mut self, number: u64) {
        if planted::is(Bug::FullReaderKept) {
            return;
        }
        self.handle_refused(number, Closing::Full);
    }

    /// What came on a stream was refused as a whole, or answered with where the master is: it ends.
    pub fn handle_refused(&mut self, number: u64, closing: Closing) {
        if self.streams.contains_key(&number) {
            self.close(number, closing);
        }
    }

    /// The child has ended a stream, or it broke.
    pub fn handle_gone(&mut self, number: u64) {
        self.forget(number, true);
    }

    /// Something may have changed for children that have a stream.
    pub fn handle_change(&mut self, now: Time) {
        self.round.begin(self.round_length, now);
    }

    /// The mastership of that number of the parent's node has begun: streams of those before it end.
    pub fn handle_mastership(&mut self, begun: u64) {
        let is_older = |number: &u64| matches!(self.streams.get(number), Some(Stream::Open(open)) if open.mastership < begun);
        let older: Vec<u64> = self.by_child.values().copied().filter(is_older).collect();
        for number in older {
            self.close(number, Closing::NotMaster);
        }
    }

    /// These nodes are above the parent's own: a child that is one of them would be its own ancestor.
    pub fn handle_ancestors<'a>(&mut self, ancestors: impl IntoIterator<Item = &'a str>) {
        for ancestor in ancestors {
            if let Some(number) = self.of(ancestor) {
                self.close(number, Closing::Cycle);
            }
        }
    }

    /// The server is about to end: so do all streams, and those that still come.
    pub fn handle_stopping(&mut self) {
        self.is_stopping = true;
        let all: Vec<u64> = self.streams.keys().copied().collect();
        for number in all {
            self.close(number, Closing::Stopping);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(number) = self.opening.first().copied()
            && self.first_message_due().is_some_and(|due| due <= now)
        {
            self.close(number, Closing::Late);
        }
        if self.round.end(now) {
            self.actions.push_back(Action::Push);
        }
    }
}

/// What is to be done.
impl ChildStreams {
    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`ChildStreams::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        let round = match self.round {
            Round::Quiet => None,
            Round::Gathering { until } => Some(until),
        };
        [round, self.first_message_due()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl ChildStreams {
    fn first_message_due(&self) -> Option<Time> {
        match self.streams.get(self.opening.first()?)? {
            Stream::Opening { until } => Some(*until),
            Stream::Open(_) => None,
        }
    }

    /// Whether another child may not have a stream. Those that have one and ask for nothing count, too.
    fn lacks_room(&self, room: Room, caller: Option<u128>) -> Option<Closing> {
        let is_full = |max: Option<usize>, used: usize| max.is_some_and(|max| used >= max);
        if is_full(room.children_max, self.by_child.len()) {
            return Some(Closing::TooMany);
        }
        let from_there =
            |stream: &&Stream| matches!(stream, Stream::Open(it) if it.caller == caller);
        let of_caller = || self.streams.values().filter(from_there).count();
        let is_bounded = caller.is_some() && room.children_of_caller_max.is_some();
        (is_bounded && is_full(room.children_of_caller_max, of_caller()))
            .then_some(Closing::TooManyOfAddress)
    }

    /// A stream ends from this side.
    fn close(&mut self, number: u64, closing: Closing) {
        // Its child has another stream at once: the node goes on telling it.
        self.forget(number, closing != Closing::Replaced);
        if let Some(count) = self.closed.get_mut(closing as usize) {
            *count += 1;
        }
        self.actions.push_back(Action::Close { number, closing });
    }

    fn forget(&mut self, number: u64, unsubscribes: bool) {
        self.opening.remove(&number);
        if let Some(Stream::Open(open)) = self.streams.remove(&number) {
            self.by_child.remove(&open.child);
            if unsubscribes {
                self.actions.push_back(Action::Unsubscribe(open.child));
            }
        }
        self.check();
    }

    /// Each stream is opening, or the one of its child.
    fn check(&self) {
        debug_assert_eq!(self.streams.len(), self.opening.len() + self.by_child.len());
        debug_assert!(
            self.opening
                .iter()
                .all(|it| self.state(*it) == Some(State::Opening))
        );
        debug_assert!(self.by_child.keys().all(|child| self.open(child).is_some()));
    }
}

/// Whether a process came later than the one that has a stream, of the same mastership, and lives.
fn is_later(hello: &Hello, open: &Open) -> bool {
    let is_known = hello.incarnation.is_some() && hello.incarnation == open.turns.later;
    is_known && hello.epoch == open.epoch
}

/// Whether a mastership is older than the one that is known. Who says none is compared with nobody.
fn is_older(epoch: Option<u64>, known: Option<u64>) -> bool {
    let is_older = matches!((epoch, known), (Some(epoch), Some(known)) if epoch < known);
    is_older && !planted::is(Bug::OlderEpochReplaces)
}
