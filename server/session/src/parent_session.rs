//! The session of a server below the root with its parent.
//!
//! The engine decides the content and the time of each request, and the effect of an answer. The session decides which
//! server to ask, and how. It prefers a stream, because a stream carries a change at once. It polls a server that does
//! not support streams, and for a while one whose streams do not work (`stream_health`). It tries addresses in turn,
//! with a backoff. A server that is not the master redirects to the master. A newly named master is asked at once: the
//! session ends a wait for it, and leaves its present server.
//!
//! A parent closes a stream when a newer stream of the same node replaces it. There are two cases. Another server of
//! this node opened the newer stream as the new master, and this server is no longer the master. Or this server opened
//! it itself. In neither case do streams fail, so the session does not poll.
//!
//! A stream begins with a message even if no request is due. From it the parent learns which child is connected. From
//! the answer the child learns whether the parent is the master, and which nodes are above it.
//!
//! ```text
//! standby ─▶ connecting ─▶ discovering ─┬▶ opening ─▶ streaming
//!    ▲            ▲                     └▶ polling       │
//!    └── from any └────────── waiting ◀── from any ◀─────┘
//! ```

mod flood;
mod in_flight;
mod parent_actions;
mod session_state;
mod stream_health;
#[cfg(test)]
mod tests;
mod transitions;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::backoff::{Backoff, WaitLimits};
use crate::close_reason::ConnectionEnd;
use crate::master_finder::MasterFinder;
use crate::time::Time;

use flood::FloodGuard;
pub use flood::MESSAGES_PER_SECOND_MAX;
use in_flight::InFlight;
pub use parent_actions::{
    AnsweredResource, ConnectionNumber, Disposition, MasterInfo, ParentAction, ParentFailure,
    ParentReport, Reply, Transport,
};
pub use session_state::STATES;
use session_state::SessionState;
pub use stream_health::PollReason;
use stream_health::StreamHealth;

/// Timeout of an attempt to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout of an answer. After that, the connection counts as failed.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Largest number of requests on a stream without a full answer. Later ones wait.
pub const IN_FLIGHT_MAX: usize = 8;

/// Part of a wait that is not random.
const BACKOFF_LEAST: f64 = 0.1;

/// Backoff between attempts. A parent that is back gets all its children back within a second.
const BACKOFF: WaitLimits = WaitLimits {
    base: Duration::from_millis(200),
    cap: Duration::from_secs(1),
    least: BACKOFF_LEAST,
};

/// Backoff after another process of the node has replaced the stream.
const BACKOFF_REPLACED: WaitLimits = WaitLimits {
    cap: Duration::from_secs(5),
    ..BACKOFF
};

/// Longest wait that an overloaded parent may ask for.
const OVERLOADED_MAX: Duration = Duration::from_secs(5);

/// Last report about the parent. Every change is logged once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastReport {
    #[default]
    Nothing,
    Answers(Transport),
    Down {
        refuses: bool,
    },
}

/// A server's session with its parent.
#[derive(Clone, Debug, Default)]
pub struct ParentSession {
    state: SessionState,
    finder: MasterFinder,
    /// Present server, or the last one.
    address: Option<Address>,
    connection: ConnectionNumber,
    streams: StreamHealth,
    /// Failed attempts in a row, at all addresses together.
    backoff: Backoff,
    /// Streams in a row that were replaced while still young.
    replaced: Backoff,
    last_report: LastReport,
    /// Last reported reason for polling.
    last_poll_reason: Option<PollReason>,
    actions: VecDeque<ParentAction>,
}

impl ParentSession {
    /// Returns a session with the servers at these addresses, for a server that is not the master of its node yet.
    pub fn new(known: Arc<[Address]>) -> Self {
        Self {
            finder: MasterFinder::new(known),
            ..Self::default()
        }
    }

    // Getters.

    /// Returns the name of its state: one of [`STATES`].
    pub fn state(&self) -> &'static str {
        self.state.name()
    }

    /// Returns the present server, or the last one.
    pub fn address(&self) -> Option<&Address> {
        self.address.as_ref()
    }

    /// Returns the current connection, or the last one.
    pub fn connection(&self) -> ConnectionNumber {
        self.connection
    }

    /// Returns the transport, once the parent has answered.
    pub fn answers(&self) -> Option<Transport> {
        match self.state {
            SessionState::Streaming {
                has_answered: true, ..
            } => Some(Transport::Stream),
            SessionState::Polling {
                has_answered: true, ..
            } => Some(Transport::Calls),
            _ => None,
        }
    }

    /// Whether another live process of this node has the stream. Then the parent refuses every request.
    pub fn is_second(&self, now: Time) -> bool {
        let polled = self.streams.polled(now);
        matches!(polled, Some((PollReason::AnotherProcess, _)))
    }

    /// Whether a request may be sent now. If so, call [`ParentSession::handle_due`] when one is due.
    pub fn may_ask(&self) -> bool {
        match &self.state {
            SessionState::Streaming { in_flight, .. } => in_flight.len() < IN_FLIGHT_MAX,
            SessionState::Polling { in_flight, .. } => in_flight.len() == 0,
            _ => false,
        }
    }

    /// Returns the servers to try beside the present one, while that does not say which server is the master.
    pub fn rivals(&self) -> Vec<Address> {
        self.finder.rivals()
    }

    // Actions and timeouts.

    /// Whether [`ParentSession::poll_action`] has an action.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Returns the next action. The driver takes all of them after each call of `handle_*`.
    pub fn poll_action(&mut self) -> Option<ParentAction> {
        self.actions.pop_front()
    }

    /// Returns the latest time to call [`ParentSession::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        let late = |in_flight: &InFlight| in_flight.since().map(|since| since + ANSWER_TIMEOUT);
        match &self.state {
            SessionState::Standby => None,
            SessionState::Connecting { until, .. }
            | SessionState::Discovering { until, .. }
            | SessionState::Opening { until }
            | SessionState::Waiting { until, .. } => Some(*until),
            SessionState::Streaming { in_flight, .. } => late(in_flight),
            // A call in flight may end first. Only then the session tries a stream again.
            SessionState::Polling {
                until, in_flight, ..
            } => Some(late(in_flight).unwrap_or(*until)),
        }
    }

    // Events.

    /// Notes that this server became the master of its node, or ceased to be. Only a master asks the parent.
    pub fn handle_mastership(&mut self, is_master: bool, chance: f64, now: Time) {
        match (&self.state, is_master) {
            (SessionState::Standby, true) => self.connect_next(chance, now),
            (SessionState::Standby, false) | (_, true) => {}
            (_, false) => {
                self.close(now);
                self.state = SessionState::Standby;
            }
        }
    }

    /// Takes the addresses of the parent's servers, in the order to try, and the master that etcd names with its epoch.
    pub fn handle_addresses(
        &mut self,
        known: Arc<[Address]>,
        named: Option<(Address, u64)>,
        chance: f64,
        now: Time,
    ) {
        let is_new = self.finder.handle_addresses(known, named);
        match &self.state {
            SessionState::Standby => {}
            SessionState::Waiting { .. } if is_new => self.connect_next(chance, now),
            SessionState::Waiting { .. } => {}
            _ if is_new => {
                let target = self.finder.target();
                if target.is_some() && target != self.address {
                    self.close(now);
                    self.follow_master(chance, now);
                }
            }
            _ => {}
        }
    }

    /// Notes that the connection is established.
    pub fn handle_connected(&mut self, on: ConnectionNumber, now: Time) {
        if on != self.connection {
            return;
        }
        if let SessionState::Connecting { transport, .. } = self.state {
            let until = now + ANSWER_TIMEOUT;
            self.state = SessionState::Discovering { transport, until };
            self.actions.push_back(ParentAction::Discover);
        }
    }

    /// Notes that another server answered before the present one. The session leaves that one, which is no failure yet.
    pub fn handle_rival(&mut self, rival: &Address, chance: f64, now: Time) {
        if let SessionState::Connecting { .. } | SessionState::Discovering { .. } = self.state {
            self.finder.handle_rival(rival);
            self.close(now);
            self.connect_next(chance, now);
        }
    }

    /// Handles the answer of a server that says which server is the master. `leases_last` is the remaining time of the
    /// last lease from the parent; zero if there is none.
    pub fn handle_discovered(
        &mut self,
        on: ConnectionNumber,
        master: MasterInfo<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) {
        let SessionState::Discovering { transport, .. } = self.state else {
            return;
        };
        if on != self.connection {
            return;
        }
        if !master.is_master {
            return self.handle_not_master(master, leases_last, chance, now);
        }
        match self.finder.handle_master(master.epoch, leases_last) {
            Ok(forgotten) => self.note_forgotten(forgotten, master.epoch),
            Err(lost) => {
                self.close(now);
                return self.try_next_or_wait(ParentFailure::DeadEnd(lost.why), chance, now);
            }
        }
        match transport {
            Transport::Stream => {
                let until = now + ANSWER_TIMEOUT;
                self.state = SessionState::Opening { until };
                self.actions.push_back(ParentAction::Open);
            }
            Transport::Calls => {
                // The time to poll may have ended during the attempt to connect.
                let polled = self.streams.polled(now);
                let until = polled.map_or(now, |(_, until)| until);
                self.state = SessionState::Polling {
                    until,
                    has_answered: false,
                    in_flight: InFlight::default(),
                };
                self.actions
                    .push_back(ParentAction::SetPace(Transport::Calls));
                self.actions.push_back(ParentAction::Call);
            }
        }
    }

    /// Notes that the stream is open.
    pub fn handle_opened(&mut self, on: ConnectionNumber, now: Time) {
        if on == self.connection && matches!(self.state, SessionState::Opening { .. }) {
            self.state = SessionState::Streaming {
                since: now,
                has_answered: false,
                in_flight: InFlight::default(),
                flood: FloodGuard::new(now),
            };
            self.actions
                .push_back(ParentAction::SetPace(Transport::Stream));
            self.actions
                .push_back(ParentAction::Send { is_hello: true });
        }
    }

    /// Notes that the node has a request that is due.
    pub fn handle_due(&mut self) {
        let asks = |action: &ParentAction| {
            matches!(action, ParentAction::Call | ParentAction::Send { .. })
        };
        // A queued request already carries everything that is due.
        if self.may_ask() && !self.actions.iter().any(asks) {
            self.actions.push_back(match self.state {
                SessionState::Polling { .. } => ParentAction::Call,
                _ => ParentAction::Send { is_hello: false },
            });
        }
    }

    /// Notes that a request was sent, with this sequence number, for these resources (by their numbers).
    pub fn handle_sent(
        &mut self,
        sequence: u64,
        resources: impl IntoIterator<Item = u64>,
        now: Time,
    ) {
        if let SessionState::Streaming { in_flight, .. } | SessionState::Polling { in_flight, .. } =
            &mut self.state
        {
            in_flight.note_sent(sequence, resources, now);
        }
    }

    /// Notes that one part of a large request was answered, and the next part is sent.
    pub fn handle_progress(&mut self, on: ConnectionNumber, now: Time) {
        if on == self.connection
            && let SessionState::Polling { in_flight, .. } = &mut self.state
        {
            in_flight.note_progress(now);
        }
    }

    /// Notes that no request is due, so no call is made. The parent is known to be reachable.
    pub fn handle_nothing_due(&mut self) {
        if let SessionState::Polling { in_flight, .. } = &self.state
            && in_flight.len() == 0
        {
            self.note_answered(Transport::Calls);
        }
    }

    /// Handles an answer of the parent, or a pushed change. Returns whether the body goes to the node.
    pub fn handle_reply(
        &mut self,
        on: ConnectionNumber,
        reply: &Reply<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) -> Disposition {
        if on != self.connection {
            return Disposition::Drop;
        }
        let (transport, is_flood) = match (&mut self.state, reply.call) {
            (SessionState::Streaming { flood, .. }, None) => {
                (Transport::Stream, flood.note_message(now))
            }
            (SessionState::Polling { in_flight, .. }, Some(call)) if in_flight.awaits(call) => {
                (Transport::Calls, false)
            }
            // This answers a call that was given up, or is a duplicate.
            _ => return Disposition::Drop,
        };
        if is_flood {
            self.on_connection_end(ParentFailure::Flood, chance, now);
            return Disposition::Drop;
        }
        if let Some(master) = reply.not_master {
            self.handle_not_master(master, leases_last, chance, now);
            return Disposition::Drop;
        }
        match &mut self.state {
            SessionState::Streaming { in_flight, .. } => in_flight.note_answer(reply.answered, now),
            SessionState::Polling { in_flight, .. } => in_flight.clear(),
            _ => {}
        }
        self.note_answered(transport);
        Disposition::Keep
    }

    /// Notes that the connection ended, or could not be made.
    pub fn handle_closed(
        &mut self,
        on: ConnectionNumber,
        closed: ConnectionEnd,
        chance: f64,
        now: Time,
    ) {
        if on != self.connection {
            return;
        }
        match (&self.state, closed) {
            (SessionState::Standby | SessionState::Waiting { .. }, _) => {}
            // A server that does not support Discovery counts as the master.
            (SessionState::Discovering { .. }, ConnectionEnd::Unimplemented) => {
                let master = MasterInfo {
                    is_master: true,
                    ..MasterInfo::default()
                };
                self.handle_discovered(on, master, Duration::ZERO, chance, now);
            }
            _ => self.on_connection_end(ParentFailure::Closed(closed), chance, now),
        }
    }

    /// Handles the time of [`ParentSession::poll_timeout`].
    pub fn handle_timeout(&mut self, chance: f64, now: Time) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        let (what, within) = match &self.state {
            SessionState::Standby => return,
            SessionState::Waiting { .. } => return self.connect_next(chance, now),
            SessionState::Polling { in_flight, .. } if in_flight.len() == 0 => {
                self.streams.try_again();
                self.close(now);
                return self.connect_next(chance, now);
            }
            SessionState::Connecting { .. } => {
                self.streams.note_unreachable();
                ("connection", CONNECT_TIMEOUT)
            }
            SessionState::Opening { .. } => ("stream", ANSWER_TIMEOUT),
            SessionState::Streaming { .. } => ("answer on the stream", ANSWER_TIMEOUT),
            SessionState::Discovering { .. } | SessionState::Polling { .. } => {
                ("answer", ANSWER_TIMEOUT)
            }
        };
        self.on_connection_end(ParentFailure::TimedOut { what, within }, chance, now);
    }
}
