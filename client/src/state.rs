//! State of a client: its leases, its refreshes and its fallbacks; pure.
//!
//! [`ClientState`] uses no clock, no network and no random numbers but its arguments; the transport and the simulator
//! drive the same state. The contract: call a `handle_*` method or a command, then act on [`ClientState::next_step`]
//! until it says to wait. One request or release is under way at a time.
//!
//! **An answer is applied only if it answers the newest request.** That makes `has` in a request a proof: no older
//! answer can raise the client's use afterwards, so the server may grant the rest to other clients. **Leases count from
//! the moment when the request was sent**, so the client's view of a lease ends no later than the server's.

mod agenda;
mod budget;
mod config;
mod former;
mod lease;
mod message;
mod mode;
mod releases;
mod resource;
mod retry;
mod streaming;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use budget::{BudgetAnswer, BudgetAsk};
pub use config::{ClientConfig, Streams};
pub use doorward_session::backoff::{Backoff, BackoffConfig, FailureKind, come_back};
pub use doorward_session::epoch_filter::{EpochFilter, OutOfDate};
pub use lease::Lease;
pub use message::{Ask, Granted, Has, LimitedBy, RefusalKind, Refused, Request, Response, Trouble};
pub use mode::Mode;
pub use releases::Release;
pub use resource::ResourceState;

use crate::capacity::Allowance;
use crate::state::agenda::Agenda;
use crate::state::releases::Releases;
use crate::state::retry::Retry;
use crate::state::streaming::Streaming;
use crate::time::Time;

/// Largest amount that a server accepts.
pub const AMOUNT_MAX: f64 = 1e15;

/// Longest duration that a server may send: no template has longer leases.
pub const SPAN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Shortest wait when a lease is about to end while no server answers.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// Largest number of asks in one request: servers refuse more. The rest follows in the next request.
const ASKS_MAX: usize = 1_000;

/// Largest number of bytes of their ids, so that the message stays below the 256 KiB that servers accept.
const IDS_BYTES_MAX: usize = 128 * 1024;

/// Next action of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the request of [`ClientState::request`].
    Send,
    /// Send the release of [`ClientState::release`].
    Release,
    /// Wait until a time, or until something happens.
    Wait(Option<Time>),
}

/// The request under way.
#[derive(Clone, Debug)]
struct UnderWay {
    sequence: u64,
    sent_at: Time,
    /// Wants of the request.
    wanted: BTreeMap<String, f64>,
}

/// A time in which the client sends nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pause {
    until: Time,
    /// Whether an overloaded server asked for the pause. Otherwise it is the client's own backoff.
    is_by_server: bool,
}

/// State of a client. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    config: ClientConfig,
    resources: BTreeMap<Arc<str>, ResourceState>,
    agenda: Agenda,
    sequence: u64,
    under_way: Option<UnderWay>,
    last_sent: Option<Time>,
    backoff: Backoff,
    pause: Option<Pause>,
    releases: Releases,
    streaming: Streaming,
}

impl ClientState {
    /// Creates a client without resources. `sequence` must be above that of every earlier request of this client id:
    /// start it at the wall clock in microseconds.
    pub fn new(config: ClientConfig, sequence: u64) -> Self {
        Self {
            config,
            sequence,
            ..Self::default()
        }
    }

    /// Opens a resource. Returns false if it is already open.
    pub fn open(
        &mut self,
        resource: &str,
        priority: i64,
        mode: Mode,
        wants: f64,
        now: Time,
    ) -> bool {
        if self.resources.contains_key(resource) {
            return false;
        }
        self.releases.forget(resource);
        let id: Arc<str> = resource.into();
        let mut state = ResourceState::new(id.clone(), priority, mode, wants, now);
        state.replan(&mut self.agenda, Some(Time::ZERO));
        self.resources.insert(id, state);
        // The pause may be long because all other resources have leases; this one has none yet.
        if let Some(pause) = self.pause.filter(|pause| !pause.is_by_server) {
            let patience = self.config.backoff.cap_without_lease;
            let until = pause.until.min(now + patience);
            self.set_pause(Some(Pause { until, ..pause }));
        }
        true
    }

    /// Changes the wants of a resource; the server hears of it soon.
    pub fn ask(&mut self, resource: &str, wants: f64) {
        self.change(resource, |state| state.want(wants, false));
    }

    /// Asks for a resource before its next refresh, as after a change of the wants.
    pub fn ask_anew(&mut self, resource: &str) {
        self.change(resource, |state| {
            // Of a budget, the word says what is wanted. Any other number than the answered one is news.
            state.want(state.wants() + 1.0, false);
        });
    }

    /// Does the same with measured wants. Lower ones that still exceed the lease free nothing, and wait for the
    /// refresh. So a server still takes early requests when demand falls below the lease.
    pub fn ask_measured(&mut self, resource: &str, wants: f64, now: Time) {
        self.change(resource, |state| {
            let exceeds = |lease: Lease| lease.capacity < wants;
            let frees_nothing = wants < state.wants && state.lease(now).is_some_and(exceeds);
            state.want(wants, frees_nothing);
        });
    }

    fn change(&mut self, resource: &str, change: impl FnOnce(&mut ResourceState)) {
        if let Some(state) = self.resources.get_mut(resource) {
            change(state);
            state.replan(&mut self.agenda, Some(Time::ZERO));
        }
    }

    /// Sets the pause, which counts for all resources.
    fn set_pause(&mut self, pause: Option<Pause>) {
        if self.pause == pause {
            return;
        }
        self.pause = pause;
        for state in self.resources.values_mut() {
            state.replan(&mut self.agenda, Some(Time::ZERO));
        }
    }

    /// Returns the resources that have changed since the last such call: by a command, an answer or a pause, or because
    /// a lease ended or a safe capacity halved.
    pub fn take_changed(&mut self, now: Time) -> Vec<Arc<str>> {
        let changed: Vec<_> = self.agenda.changed(now).cloned().collect();
        for id in &changed {
            if let Some(state) = self.resources.get_mut(id) {
                let changes_at = state.changes_at(now);
                state.replan(&mut self.agenda, changes_at);
            }
        }
        changed
    }

    /// Returns an open resource.
    pub fn resource(&self, resource: &str) -> Option<&ResourceState> {
        self.resources.get(resource)
    }

    /// Returns all open resources.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &ResourceState)> {
        self.resources.iter().map(|(id, state)| (&**id, state))
    }

    /// Returns the end of the last valid lease.
    pub fn leases_end(&self, now: Time) -> Option<Time> {
        let expiry = |id: &Arc<str>| self.resources.get(id)?.expiry(now);
        let mut later = self.agenda.changing(now).rev();
        let last = later.find_map(|(_, id)| expiry(id));
        let changed = self.agenda.changed(now).filter_map(expiry);
        changed.chain(last).max()
    }

    /// Returns the allowance of a resource from now on; nothing if it is not open.
    pub fn allowance(&self, resource: &str, now: Time) -> Allowance {
        self.resources
            .get(resource)
            .map_or(Allowance::NONE, |state| state.allowance(now))
    }

    /// Returns the next number for a request or a release.
    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    /// Returns the latest time of the client's next request for a resource, or of the one under way. A request for
    /// other resources may delay it by the refresh floor. None: the resource is not open.
    pub fn next_answer(&self, resource: &str) -> Option<Time> {
        let state = self.resources.get(resource)?;
        let is_asked = |asked: &&UnderWay| asked.wanted.contains_key(resource);
        if let Some(under_way) = self.under_way.as_ref().filter(is_asked) {
            return Some(under_way.sent_at);
        }
        let is_alone = self.resources.len() == 1 || state.kind().goes_along();
        let others_sent = (!is_alone).then_some(state.refresh_at);
        let last_sent = self.last_sent.max(others_sent);
        let due = state.kind().due(state.refresh_at, last_sent, &self.config);
        Some(self.not_before(due))
    }

    /// Returns the next action.
    pub fn next_step(&self, now: Time) -> Step {
        // At that time, an allowance changes by itself.
        let changes_at = |id: &Arc<str>| self.resources.get(id)?.changes_at(now);
        let changed = self.agenda.changed(now).filter_map(changes_at);
        let next = self.agenda.changing(now).next().map(|(at, _)| *at);
        let changes = changed.chain(next).min();
        if self.is_asking() {
            return Step::Wait(changes);
        }
        if self.releases.are_due() {
            return Step::Release;
        }
        let Some(due) = self.agenda.due(self.last_sent, &self.config) else {
            return Step::Wait(None);
        };
        let due = self.not_before(due);
        if due <= now {
            return Step::Send;
        }
        Step::Wait(Some(changes.map_or(due, |changes| due.min(changes))))
    }

    /// Sends a request for every resource now, even if none is due, for a fake server. Returns its number and the wants
    /// of each resource.
    #[cfg(feature = "leases")]
    pub(crate) fn ask_at_once(&mut self, now: Time) -> (u64, BTreeMap<String, f64>) {
        let sequence = self.next_sequence();
        let wants = |(id, state): (&Arc<str>, &ResourceState)| (id.to_string(), state.wants);
        let wanted: BTreeMap<String, f64> = self.resources.iter().map(wants).collect();
        self.releases = Releases::default();
        self.under_way = Some(UnderWay {
            sequence,
            sent_at: now,
            wanted: wanted.clone(),
        });
        (sequence, wanted)
    }

    /// Ends every lease now: a fake server is down for longer than any of them lasts.
    #[cfg(feature = "leases")]
    pub(crate) fn end_leases(&mut self, now: Time) {
        for state in self.resources.values_mut() {
            state.end_lease(now);
            state.replan(&mut self.agenda, Some(Time::ZERO));
        }
    }

    fn not_before(&self, due: Time) -> Time {
        self.pause.map_or(due, |pause| due.max(pause.until))
    }

    /// Notes that a former process of this client may use an amount of an open resource until then, by a lease.
    pub fn note_former(&mut self, resource: &str, capacity: f64, until: Time) {
        self.change(resource, |state| state.note_former(capacity, until));
    }

    /// Creates the request to send now. `in_flight` returns the amount of a resource in use.
    pub fn request(&mut self, in_flight: impl Fn(&str) -> f64, now: Time) -> Request {
        self.request_with_words(in_flight, |_, _| None, now)
    }

    /// The same, with a word about each resource that is a budget. `word` gets the resource and its refresh interval, and
    /// whether the request goes on a stream.
    pub fn request_with_words(
        &mut self,
        in_flight: impl Fn(&str) -> f64,
        word: impl Fn(&str, (Duration, bool)) -> Option<BudgetAsk>,
        now: Time,
    ) -> Request {
        let sequence = self.next_sequence();
        let on_stream = self.asks_on_stream(now);
        let tolerance = self.config.clock_tolerance.unwrap_or_default();
        let is_failing = self.backoff.failures() > 0;
        let mut wanted = BTreeMap::new();
        let mut bytes = 0;
        for id in self.agenda.along(if is_failing { Time::MAX } else { now }) {
            if wanted.contains_key(&**id) {
                continue;
            }
            bytes += id.len();
            if wanted.len() == ASKS_MAX || bytes > IDS_BYTES_MAX {
                break;
            }
            wanted.insert(id.to_string(), 0.0);
        }
        let mut asks = Vec::with_capacity(wanted.len());
        for (id, wants) in &mut wanted {
            let Some(state) = self.resources.get_mut(id.as_str()) else {
                continue;
            };
            *wants = state.wants;
            let has = state.tell(sequence, in_flight(id), now).map(|has| Has {
                expires_in: tolerance.report(has.expires_in),
                ..has
            });
            let said = word(id, (state.interval(), on_stream));
            asks.push(Ask {
                resource: id.clone(),
                priority: state.priority,
                wants: said.map_or(state.wants, |said| (said.word.taken + said.need) as f64),
                has: said.map_or(has, |said| Some(Has::of_budget(&said))),
                budget: said.map(|said| said.word),
            });
            state.replan(&mut self.agenda, Some(Time::ZERO));
        }
        self.under_way = Some(UnderWay {
            sequence,
            sent_at: now,
            wanted,
        });
        self.last_sent = Some(now);
        Request {
            sequence,
            asks,
            on_stream,
        }
    }

    /// Handles a master's answer to the request of that number. Returns whether the answer counts: only an answer to
    /// the newest request does. `chance` is uniform in 0…1 and spreads the waits after refusals that name no time. The
    /// client asks again for all resources of one answer together.
    pub fn handle_response(
        &mut self,
        sequence: u64,
        response: &Response,
        chance: f64,
        now: Time,
    ) -> bool {
        let Some(under_way) = self.take_under_way(sequence) else {
            return false;
        };
        self.backoff.succeed();
        self.set_pause(None);
        let config = self.config;
        let mut unanswered = under_way.wanted;
        for granted in &response.granted {
            // Ignores answers for a resource that was not asked for, or twice.
            let Some(wanted) = unanswered.remove(&granted.resource) else {
                continue;
            };
            let sent_at = under_way.sent_at;
            let is_streaming = self.streaming.is_open;
            self.change(&granted.resource, |state| {
                let before = state.leased(now);
                state.grant(granted, wanted, sent_at, &config, chance, now);
                if is_streaming {
                    state.acknowledge_soon(before, now);
                }
            });
        }
        for refused in &response.refused {
            if unanswered.remove(&refused.resource).is_none() {
                continue;
            }
            let retry = Retry {
                told: refused.retry_in,
                chance,
            };
            let trouble = Trouble {
                kind: refused.kind,
                message: refused.message.clone(),
            };
            self.change(&refused.resource, |state| state.refuse(trouble, retry, now));
        }
        for resource in unanswered.keys() {
            // An old server answers in this way if no template matches.
            let trouble = Trouble {
                kind: RefusalKind::Unknown,
                message: "the server left it out of its answer".to_owned(),
            };
            let retry = Retry { told: None, chance };
            self.change(resource, |state| state.refuse(trouble, retry, now));
        }
        self.open_stream_soon(chance, now);
        true
    }

    /// Handles an answer of an overloaded server, with its time to come back. The client obeys it even if a lease ends
    /// before, because the server would turn an earlier request away again. The server is reachable, so this is no
    /// failure. `chance` is uniform in 0…1.
    pub fn handle_overloaded(&mut self, sequence: u64, retry_in: Duration, chance: f64, now: Time) {
        if self.take_under_way(sequence).is_none() {
            return;
        }
        self.backoff.succeed();
        self.set_pause(Some(Pause {
            until: now + come_back(retry_in, chance),
            is_by_server: true,
        }));
    }

    /// Handles a failure of the request of that number: an error, a timeout, or the answer that there is no master.
    /// `chance` is uniform in 0…1.
    pub fn handle_failure(&mut self, sequence: u64, kind: FailureKind, chance: f64, now: Time) {
        if self.take_under_way(sequence).is_none() {
            return;
        }
        if kind == FailureKind::Masterless {
            // The server works, and says that it is not the master.
            self.streaming = Streaming::default();
        }
        let is_served = self.resources.values().all(|it| it.leased(now) > 0.0);
        let wait = self
            .backoff
            .fail(kind, self.config.backoff, is_served, chance, now);
        let mut until = now + wait;
        // Never waits so long that a valid lease could not be refreshed in time if a server was up.
        for state in self.resources.values() {
            if let Some(expiry) = state.expiry(now) {
                let in_time = now + (expiry.since(now) / 2).max(RETRY_MIN);
                until = until.min(in_time);
            }
        }
        self.set_pause(Some(Pause {
            until,
            is_by_server: false,
        }));
    }

    /// Handles a redirect of the request of that number: it is sent again at once, perhaps on a new stream.
    pub fn handle_redirect(&mut self, sequence: u64) {
        if self.take_under_way(sequence).is_some() {
            self.set_pause(None);
            self.last_sent = None;
            self.streaming = Streaming::default();
        }
    }

    fn take_under_way(&mut self, sequence: u64) -> Option<UnderWay> {
        self.under_way
            .take_if(|under_way| under_way.sequence == sequence)
    }

    /// Returns whether a request or a release is under way.
    pub fn is_asking(&self) -> bool {
        self.under_way.is_some() || self.releases.are_under_way()
    }

    /// Returns whether the request of that number is under way.
    pub fn is_asking_by(&self, sequence: u64) -> bool {
        let under_way = self.under_way.as_ref();
        under_way.is_some_and(|under_way| under_way.sequence == sequence)
    }
}

#[cfg(test)]
mod tests;
