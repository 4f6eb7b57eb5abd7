//! How a server below the root asks its parent.
//!
//! What to ask and when, and what an answer does, the engine knows; this decides whom to ask, and how. It
//! prefers a stream, on which a change travels as it happens. A server that does not know streams is polled;
//! so is one whose streams do not work, for a while (`streams`). Addresses are tried in turn, with a
//! backoff; a server that is not the master says where it is. A master that is named for the first time comes
//! first: it ends a wait, and a conversation with the one before.
//!
//! A parent ends a stream when a newer one of the same node takes its place. That is either another
//! server's, which became master of this node, and then this one is not any more; or one of our own,
//! and then there is nothing wrong with streams. So it is no reason to poll.
//!
//! A stream begins with a message even if there is nothing to ask: the parent learns who is there,
//! and the child whether it is the master, and which nodes are above.
//!
//! ```text
//! standby ─▶ connecting ─▶ discovering ─┬▶ opening ─▶ streaming
//!    ▲            ▲                     └▶ polling       │
//!    └── from any └────────── waiting ◀── from any ◀─────┘
//! ```

mod event;
mod flood;
mod in_flight;
mod streams;
#[cfg(test)]
mod tests;
mod transitions;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::backoff::{Backoff, Limits};
use crate::closing::Closed;
use crate::master_finder::MasterFinder;
use crate::planted::{self, Bug};
use crate::time::Time;

pub use event::{
    Action, Answered, Connection, Late, Mastership, Reply, Report, Trouble, Verdict, Way,
};
use flood::Flood;
pub use flood::MESSAGES_PER_SECOND_MAX;
use in_flight::InFlight;
pub use streams::Polled;
use streams::Streams;

/// How long to try to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// An answer that takes longer will not come.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests on a stream of which something is not answered, at most. What is due beyond waits.
pub const IN_FLIGHT_MAX: usize = 8;

/// The part of a wait that is no chance.
const BACKOFF_LEAST: f64 = 0.1;

/// Backoff between attempts. The longest is well below the length of a lease.
const BACKOFF: Limits = Limits {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(5),
    least: BACKOFF_LEAST,
};

/// The same while the parent has no master: its servers elect one within seconds.
const BACKOFF_ELECTION: Limits = Limits {
    cap: Duration::from_secs(1),
    ..BACKOFF
};

/// What a session does now.
#[derive(Clone, Debug)]
enum State {
    Standby,
    Connecting {
        way: Way,
        until: Time,
    },
    Discovering {
        way: Way,
        until: Time,
    },
    Opening {
        until: Time,
    },
    Streaming {
        since: Time,
        has_answered: bool,
        in_flight: InFlight,
        flood: Flood,
    },
    Polling {
        until: Time,
        has_answered: bool,
        in_flight: InFlight,
    },
    Waiting {
        until: Time,
        why: Trouble,
    },
}

/// The states by name, in the order in which they follow.
pub const STATES: [&str; 7] = [
    "standby",
    "connecting",
    "discovering",
    "opening",
    "streaming",
    "polling",
    "waiting",
];

/// What the log was last told of the parent: it hears of every change once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Answers(Way),
    Down { refuses: bool },
}

/// A server's session with its parent.
#[derive(Clone, Debug)]
pub struct ParentSession {
    state: State,
    finder: MasterFinder,
    /// Who is asked, or was last.
    address: Option<Address>,
    connection: Connection,
    streams: Streams,
    /// Of attempts that failed in a row, at whichever address.
    backoff: Backoff,
    /// Of streams in a row that were replaced before they had shown that they work.
    replaced: Backoff,
    told: Told,
    /// Why the log was told that the parent is polled.
    polls_told: Option<Polled>,
    actions: VecDeque<Action>,
}

impl ParentSession {
    /// A session of a server that is not the master of its node yet, with whoever is at these addresses.
    pub fn new(known: Arc<[Address]>) -> Self {
        Self {
            state: State::Standby,
            finder: MasterFinder::new(known),
            address: None,
            connection: Connection::default(),
            streams: Streams::default(),
            backoff: Backoff::default(),
            replaced: Backoff::default(),
            told: Told::Nothing,
            polls_told: None,
            actions: VecDeque::new(),
        }
    }

    // Getters.

    /// What it does now: one of [`STATES`].
    pub fn state(&self) -> &'static str {
        let number = match self.state {
            State::Standby => 0,
            State::Connecting { .. } => 1,
            State::Discovering { .. } => 2,
            State::Opening { .. } => 3,
            State::Streaming { .. } => 4,
            State::Polling { .. } => 5,
            State::Waiting { .. } => 6,
        };
        STATES.get(number).copied().unwrap_or_default()
    }

    /// Who is asked, or was last.
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }

    /// The present connection, or the last.
    pub fn connection(&self) -> Connection {
        self.connection
    }

    /// How the parent is asked, once it has answered.
    pub fn answers(&self) -> Option<Way> {
        match self.state {
            State::Streaming {
                has_answered: true, ..
            } => Some(Way::Stream),
            State::Polling {
                has_answered: true, ..
            } => Some(Way::Calls),
            _ => None,
        }
    }

    /// Why the parent is not asked, if it is waited with.
    pub fn trouble(&self) -> Option<&Trouble> {
        match &self.state {
            State::Waiting { why, .. } => Some(why),
            _ => None,
        }
    }

    /// Whether another live process of this node has the stream: all that the parent answers is no.
    pub fn is_second(&self, now: Time) -> bool {
        let polled = self.streams.polled(now);
        matches!(polled, Some((Polled::AnotherProcess, _)))
    }

    /// Whether something that is due may be asked now. If so, tell [`ParentSession::handle_due`] when it is.
    pub fn may_ask(&self) -> bool {
        match &self.state {
            State::Streaming { in_flight, .. } => in_flight.len() < IN_FLIGHT_MAX,
            State::Polling { in_flight, .. } => in_flight.len() == 0,
            _ => false,
        }
    }

    // What is to be done.

    /// What is to be done next. Take all, after each call of `handle_*`.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`ParentSession::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        let late = |in_flight: &InFlight| in_flight.since().map(|since| since + ANSWER_TIMEOUT);
        if planted::is(Bug::DeadlineForgotten) && !matches!(self.state, State::Waiting { .. }) {
            return None;
        }
        match &self.state {
            State::Standby => None,
            State::Waiting { .. } if planted::is(Bug::WaitWithoutEnd) => None,
            State::Connecting { until, .. }
            | State::Discovering { until, .. }
            | State::Opening { until }
            | State::Waiting { until, .. } => Some(*until),
            State::Streaming { in_flight, .. } => late(in_flight),
            // A call under way is waited for before a stream is tried again.
            State::Polling {
                until, in_flight, ..
            } => Some(late(in_flight).unwrap_or(*until)),
        }
    }

    // What happened.

    /// This server is the master of its node, or is not. Only a master asks.
    pub fn handle_mastership(&mut self, is_master: bool, chance: f64, now: Time) {
        match (&self.state, is_master) {
            (State::Standby, true)
                if planted::is(Bug::SecondMastershipSilent) && self.address.is_some() => {}
            (State::Standby, true) => self.begin(chance, now),
            (State::Standby, false) | (_, true) => {}
            (_, false) if planted::is(Bug::StandbyAsks) => {}
            (_, false) => {
                self.close(now);
                self.state = State::Standby;
            }
        }
    }

    /// Where the servers of the parent are, and which of them is named as the master, with its epoch.
    pub fn handle_addresses(
        &mut self,
        known: Arc<[Address]>,
        named: Option<(Address, u64)>,
        chance: f64,
        now: Time,
    ) {
        let is_new = self.finder.handle_addresses(known, named);
        match &self.state {
            State::Standby => {}
            State::Waiting { .. } if is_new => self.begin(chance, now),
            State::Waiting { .. } => {}
            _ if is_new => {
                let target = self.finder.target().map(|target| target.address);
                if target.is_some() && target != self.address {
                    self.close(now);
                    self.redirect(chance, now);
                }
            }
            _ => {}
        }
    }

    /// The connection stands.
    pub fn handle_connected(&mut self, on: Connection, now: Time) {
        if on != self.connection {
            return;
        }
        if let State::Connecting { way, .. } = self.state {
            let until = now + ANSWER_TIMEOUT;
            self.state = State::Discovering { way, until };
            self.actions.push_back(Action::Discover);
        }
    }

    /// The server says who is the master. `leases_last` is how long the last lease of the parent is still
    /// valid, zero if none is.
    pub fn handle_discovered(
        &mut self,
        on: Connection,
        told: Mastership<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) {
        let State::Discovering { way, .. } = self.state else {
            return;
        };
        if on != self.connection {
            return;
        }
        if !told.is_master {
            return self.handle_not_master(told, leases_last, chance, now);
        }
        match self.finder.handle_master(told.epoch, leases_last) {
            Ok(forgotten) => self.note_forgotten(forgotten, told.epoch),
            Err(lost) => {
                self.close(now);
                return self.lose(&lost, chance, now);
            }
        }
        match way {
            Way::Stream => {
                let until = now + ANSWER_TIMEOUT;
                self.state = State::Opening { until };
                self.actions.push_back(Action::Open);
            }
            Way::Calls => {
                // The time may have come to try a stream, while this was connecting.
                let polled = self.streams.polled(now);
                let until = polled.map_or(now, |(_, until)| until);
                self.state = State::Polling {
                    until,
                    has_answered: false,
                    in_flight: InFlight::default(),
                };
                self.actions.push_back(Action::Pace(Way::Calls));
                self.actions.push_back(Action::Call);
            }
        }
    }

    /// The stream is open.
    pub fn handle_opened(&mut self, on: Connection, now: Time) {
        if on == self.connection && matches!(self.state, State::Opening { .. }) {
            self.state = State::Streaming {
                since: now,
                has_answered: false,
                in_flight: InFlight::default(),
                flood: Flood::new(now),
            };
            self.actions.push_back(Action::Pace(Way::Stream));
            self.actions.push_back(Action::Send { greets: true });
        }
    }

    /// Something is due at the node.
    pub fn handle_due(&mut self) {
        let asks = |action: &Action| matches!(action, Action::Call | Action::Send { .. });
        // What is asked already takes all that is due.
        if self.may_ask() && !self.actions.iter().any(asks) {
            self.actions.push_back(match self.state {
                State::Polling { .. } => Action::Call,
                _ => Action::Send { greets: false },
            });
        }
    }

    /// A request was sent, with that number, about these resources by their numbers.
    pub fn handle_sent(
        &mut self,
        sequence: u64,
        resources: impl IntoIterator<Item = u64>,
        now: Time,
    ) {
        if planted::is(Bug::InFlightForgotten) {
            return;
        }
        if let State::Streaming { in_flight, .. } | State::Polling { in_flight, .. } =
            &mut self.state
        {
            in_flight.note_sent(sequence, resources, now);
        }
    }

    /// A part of a large request was answered, and the next is sent.
    pub fn handle_progress(&mut self, on: Connection, now: Time) {
        if on == self.connection
            && let State::Polling { in_flight, .. } = &mut self.state
        {
            in_flight.note_progress(now);
        }
    }

    /// Nothing is due, and there is nothing to call for: what is known of the parent is that it is there.
    pub fn handle_nothing_due(&mut self) {
        if let State::Polling { in_flight, .. } = &self.state
            && in_flight.len() == 0
        {
            self.note_answered(Way::Calls);
        }
    }

    /// The parent answered, or told something unasked. Returns whether that is for the node.
    pub fn handle_reply(
        &mut self,
        on: Connection,
        reply: &Reply<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) -> Verdict {
        if on != self.connection && !planted::is(Bug::OldConnectionHeeded) {
            return Verdict::Drop;
        }
        let (way, is_flood) = match (&mut self.state, reply.call) {
            (State::Streaming { flood, .. }, None) => (Way::Stream, flood.note_message(now)),
            (State::Polling { in_flight, .. }, Some(call)) if in_flight.awaits(call) => {
                (Way::Calls, false)
            }
            // Of a call that was given up, or sent twice.
            _ => return Verdict::Drop,
        };
        if is_flood {
            self.end(Trouble::Flood, chance, now);
            return Verdict::Drop;
        }
        if let Some(told) = reply.not_master {
            self.handle_not_master(told, leases_last, chance, now);
            return Verdict::Drop;
        }
        match &mut self.state {
            State::Streaming { in_flight, .. } => in_flight.note_answer(reply.answered, now),
            State::Polling { in_flight, .. } => in_flight.clear(),
            _ => {}
        }
        self.note_answered(way);
        Verdict::Keep
    }

    /// The connection ended, or could not be made.
    pub fn handle_closed(&mut self, on: Connection, closed: Closed, chance: f64, now: Time) {
        if on != self.connection {
            return;
        }
        match (&self.state, closed) {
            (State::Standby | State::Waiting { .. }, _) => {}
            // It is a server that cannot say who is the master.
            (State::Discovering { .. }, Closed::Unimplemented) => {
                self.handle_discovered(on, Mastership::UNTOLD, Duration::ZERO, chance, now);
            }
            _ => self.end(Trouble::Closed(closed), chance, now),
        }
    }

    /// The time that [`ParentSession::poll_timeout`] tells has come.
    pub fn handle_timeout(&mut self, chance: f64, now: Time) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        match &self.state {
            State::Standby => {}
            State::Waiting { .. } => self.begin(chance, now),
            State::Polling { in_flight, .. } if in_flight.len() == 0 => {
                self.streams.try_again();
                self.close(now);
                self.begin(chance, now);
            }
            State::Connecting { .. } => {
                self.streams.note_unreachable();
                self.end(Trouble::Late(Late::Connection), chance, now);
            }
            State::Opening { .. } => self.end(Trouble::Late(Late::Stream), chance, now),
            State::Streaming { .. } => self.end(Trouble::Late(Late::StreamAnswer), chance, now),
            State::Discovering { .. } | State::Polling { .. } => {
                self.end(Trouble::Late(Late::Answer), chance, now);
            }
        }
    }
}
