//! State of a client: its leases, its refreshes and its fallbacks; pure.
//!
//! [`ClientState`] uses no clock, no network and no random numbers but its arguments; the transport and the simulator
//! drive the same state. The contract: call a `handle_*` method or a command, then act on [`ClientState::next_step`]
//! until it says to wait. One request is under way at a time.
//!
//! **An answer is applied only if it answers the newest request.** That makes `has` in a request a proof: no older
//! answer can raise the client's use afterwards, so the server may grant the rest to other clients. **Leases count from
//! the moment when the request was sent**, so the client's view of a lease ends no later than the server's.

mod former;
mod lease;
mod message;
mod mode;
mod resource;
mod retry;
mod trouble;

use std::collections::BTreeMap;
use std::time::Duration;

pub use doorward_session::backoff::{Backoff, BackoffConfig, FailureKind, come_back};
pub use doorward_session::epoch_filter::{EpochFilter, OutOfDate};
pub use lease::Lease;
pub use message::{Ask, Granted, Has, LimitedBy, RefusalKind, Refused, Request, Response};
pub use mode::Mode;
pub use resource::ResourceState;
pub use trouble::Trouble;

use crate::capacity::Allowance;
use crate::state::retry::Retry;
use crate::time::{Time, Tolerance};

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

/// Settings of a client's behaviour towards servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Shortest time between a request and an early one for changed wants, towards a server that does not send
    /// `decided`. It is a little above the server's refresh floor, below which the server answers without a decision.
    pub early_gap: Duration,
    /// The same, towards a server that sends `decided`, and the time of its next decision. The default is a tenth of a
    /// second: a client whose wants change all the time makes at most ten requests a second, and a change waits for no
    /// longer than two rounds of the tree (of 50 ms), in which servers gather changes anyway.
    pub news_gap: Duration,
    /// Shortest time between two refreshes, whatever a server asks for: a server may grant leases of a millisecond. The
    /// default is a tenth of a second, as for changed wants. Leases that are not much longer end before their refresh.
    pub refresh_floor: Duration,
    /// Time after which a call fails.
    pub timeout: Duration,
    /// Waits after failures.
    pub backoff: BackoffConfig,
    /// Time for which the previous process may run under the same id after a restart. A rolling restart starts the next
    /// process first, while the previous one finishes its work. For that time, the client waits out a refusal because
    /// of another process. If the server refuses after that, two processes have one id by mistake, and limiters return
    /// the error. Zero: the first refusal counts. The default is ten seconds, as for `connect`. The time in which the
    /// other process may have ended unnoticed is added: a refresh interval and a quarter, at most a minute.
    pub restart_overlap: Duration,
    /// Largest error of this machine's clock. None: a thousandth, or a tenth where the platform has no clock of
    /// constant speed.
    pub clock_tolerance: Option<Tolerance>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            early_gap: Duration::from_millis(1_100),
            news_gap: Duration::from_millis(100),
            refresh_floor: Duration::from_millis(100),
            timeout: Duration::from_secs(5),
            backoff: BackoffConfig::default(),
            restart_overlap: Duration::from_secs(10),
            clock_tolerance: None,
        }
    }
}

/// Next action of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the request of [`ClientState::request`].
    Send,
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
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Time,
    /// Whether an overloaded server asked for the pause. Otherwise it is the client's own backoff.
    is_by_server: bool,
}

/// State of a client. See the [module](self).
#[derive(Clone, Debug)]
pub struct ClientState {
    config: ClientConfig,
    resources: BTreeMap<String, ResourceState>,
    sequence: u64,
    under_way: Option<UnderWay>,
    last_sent: Option<Time>,
    backoff: Backoff,
    pause: Option<Pause>,
}

impl ClientState {
    /// Creates a client without resources. `sequence` must be above that of every earlier request of this client id:
    /// start it at the wall clock in microseconds.
    pub fn new(config: ClientConfig, sequence: u64) -> Self {
        Self {
            config,
            resources: BTreeMap::new(),
            sequence,
            under_way: None,
            last_sent: None,
            backoff: Backoff::default(),
            pause: None,
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
        let state = ResourceState::new(priority, mode, wants, now);
        self.resources.insert(resource.to_owned(), state);
        // The pause may be long because all other resources have leases; this one has none yet.
        if let Some(pause) = self.pause.as_mut().filter(|pause| !pause.is_by_server) {
            let patience = self.config.backoff.cap_without_lease;
            pause.until = pause.until.min(now + patience);
        }
        true
    }

    /// Closes a resource. Returns whether there is a lease to release.
    pub fn close(&mut self, resource: &str, now: Time) -> bool {
        let gone = self.resources.remove(resource);
        // A request under way may still bring a lease that the client will not use.
        let asked = self
            .under_way
            .as_mut()
            .is_some_and(|u| u.wanted.remove(resource).is_some());
        gone.is_some_and(|gone| gone.lease(now).is_some()) || asked
    }

    /// Changes the wants of a resource; the server hears of it soon.
    pub fn ask(&mut self, resource: &str, wants: f64) {
        if let Some(state) = self.resources.get_mut(resource) {
            state.wants = wants;
        }
    }

    /// Returns an open resource.
    pub fn resource(&self, resource: &str) -> Option<&ResourceState> {
        self.resources.get(resource)
    }

    /// Returns all open resources.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &ResourceState)> {
        self.resources
            .iter()
            .map(|(id, state)| (id.as_str(), state))
    }

    /// Returns the end of the last valid lease.
    pub fn leases_end(&self, now: Time) -> Option<Time> {
        let ends = self
            .resources
            .values()
            .filter_map(|state| state.expiry(now));
        ends.max()
    }

    /// Returns the allowance of a resource from now on; nothing if it is not open.
    pub fn allowance(&self, resource: &str, now: Time) -> Allowance {
        self.resources
            .get(resource)
            .map_or(Allowance::NONE, |state| state.allowance(now))
    }

    /// Returns the next number for a request or a release.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    /// Returns the time of the client's next request for a resource, or of the one under way. None: the resource is not
    /// open.
    pub fn next_answer(&self, resource: &str) -> Option<Time> {
        let state = self.resources.get(resource)?;
        let is_asked = |asked: &&UnderWay| asked.wanted.contains_key(resource);
        if let Some(under_way) = self.under_way.as_ref().filter(is_asked) {
            return Some(under_way.sent_at);
        }
        Some(self.not_before(state.due(self.last_sent, &self.config)))
    }

    /// Returns the next action.
    pub fn next_step(&self, now: Time) -> Step {
        // At that time, an allowance changes by itself.
        let changes = self
            .resources
            .values()
            .filter_map(|state| state.changes_at(now))
            .min();
        if self.under_way.is_some() {
            return Step::Wait(changes);
        }
        let due = |state: &ResourceState| state.due(self.last_sent, &self.config);
        let Some(due) = self.resources.values().map(due).min() else {
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
    #[cfg(feature = "transport")]
    pub(crate) fn ask_at_once(&mut self, now: Time) -> (u64, BTreeMap<String, f64>) {
        let sequence = self.next_sequence();
        let wants = |(id, state): (&String, &ResourceState)| (id.clone(), state.wants);
        let wanted: BTreeMap<String, f64> = self.resources.iter().map(wants).collect();
        self.under_way = Some(UnderWay {
            sequence,
            sent_at: now,
            wanted: wanted.clone(),
        });
        (sequence, wanted)
    }

    /// Ends every lease now: a fake server is down for longer than any of them lasts.
    #[cfg(feature = "transport")]
    pub(crate) fn end_leases(&mut self, now: Time) {
        for state in self.resources.values_mut() {
            state.end_lease(now);
        }
    }

    fn not_before(&self, due: Time) -> Time {
        self.pause.map_or(due, |pause| due.max(pause.until))
    }

    /// Creates the request to send now. `in_flight` returns the amount of a resource in use.
    pub fn request(&mut self, in_flight: impl Fn(&str) -> f64, now: Time) -> Request {
        let sequence = self.next_sequence();
        let tolerance = self.config.clock_tolerance.unwrap_or_default();
        let all_failing = self.backoff.failures() > 0;
        let mut wanted = BTreeMap::new();
        let mut asks = Vec::new();
        let mut bytes = 0;
        for (id, state) in &mut self.resources {
            if !(state.goes_along(now) || all_failing) {
                continue;
            }
            bytes += id.len();
            if asks.len() == ASKS_MAX || bytes > IDS_BYTES_MAX {
                break;
            }
            wanted.insert(id.clone(), state.wants);
            asks.push(Ask {
                resource: id.clone(),
                priority: state.priority,
                wants: state.wants,
                has: state.tell(in_flight(id), now).map(|has| Has {
                    expires_in: tolerance.report(has.expires_in),
                    ..has
                }),
            });
        }
        self.under_way = Some(UnderWay {
            sequence,
            sent_at: now,
            wanted,
        });
        self.last_sent = Some(now);
        Request { sequence, asks }
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
        self.pause = None;
        let mut unanswered = under_way.wanted;
        for granted in &response.granted {
            // Ignores answers for a resource that was not asked for, or twice.
            let Some(wanted) = unanswered.remove(&granted.resource) else {
                continue;
            };
            if let Some(state) = self.resources.get_mut(&granted.resource) {
                state.grant(
                    granted,
                    wanted,
                    under_way.sent_at,
                    &self.config,
                    chance,
                    now,
                );
            }
        }
        for refused in &response.refused {
            if unanswered.remove(&refused.resource).is_none() {
                continue;
            }
            if let Some(state) = self.resources.get_mut(&refused.resource) {
                let message = refused.message.clone();
                let retry = Retry {
                    told: refused.retry_in,
                    chance,
                };
                let trouble = match refused.kind {
                    RefusalKind::AnotherProcess => {
                        state.give_way(message, retry, &self.config, now);
                        continue;
                    }
                    RefusalKind::Unknown => Trouble::UnknownResource(message),
                    RefusalKind::NotReady => Trouble::NotReady(message),
                    RefusalKind::Other => Trouble::Refused(message),
                };
                state.refuse(trouble, retry, now);
            }
        }
        for resource in unanswered.keys() {
            if let Some(state) = self.resources.get_mut(resource) {
                // An old server answers in this way if no template matches.
                let message = "the server left it out of its answer".to_owned();
                let trouble = Trouble::UnknownResource(message);
                state.refuse(trouble, Retry::untold(chance), now);
            }
        }
        true
    }

    /// Handles a failure of the request of that number: an error or a timeout. `chance` is uniform in 0…1.
    pub fn handle_failure(&mut self, sequence: u64, chance: f64, now: Time) {
        self.fail(sequence, FailureKind::OutOfReach, chance, now);
    }

    /// Handles a request that reached a server of the node while there is no master. An election is under way. `chance`
    /// is uniform in 0…1.
    pub fn handle_masterless(&mut self, sequence: u64, chance: f64, now: Time) {
        self.fail(sequence, FailureKind::Masterless, chance, now);
    }

    /// Handles an answer of an overloaded server, with its time to come back. The client obeys it even if a lease ends
    /// before, because the server would turn an earlier request away again. The server is reachable, so this is no
    /// failure. `chance` is uniform in 0…1.
    pub fn handle_overloaded(&mut self, sequence: u64, retry_in: Duration, chance: f64, now: Time) {
        if self.take_under_way(sequence).is_none() {
            return;
        }
        self.backoff.succeed();
        self.pause = Some(Pause {
            until: now + come_back(retry_in, chance),
            is_by_server: true,
        });
    }

    fn fail(&mut self, sequence: u64, kind: FailureKind, chance: f64, now: Time) {
        if self.take_under_way(sequence).is_none() {
            return;
        }
        let is_served = self.resources.values().all(|state| state.is_served(now));
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
        self.pause = Some(Pause {
            until,
            is_by_server: false,
        });
    }

    /// Handles a redirect of the request of that number: it is sent again at once.
    pub fn handle_redirect(&mut self, sequence: u64) {
        if self.take_under_way(sequence).is_some() {
            self.pause = None;
            self.last_sent = None;
        }
    }

    fn take_under_way(&mut self, sequence: u64) -> Option<UnderWay> {
        self.under_way
            .take_if(|under_way| under_way.sequence == sequence)
    }

    /// Returns whether a request is under way.
    pub fn is_asking(&self) -> bool {
        self.under_way.is_some()
    }

    /// Returns whether the request of that number is under way.
    pub fn is_asking_by(&self, sequence: u64) -> bool {
        let under_way = self.under_way.as_ref();
        under_way.is_some_and(|under_way| under_way.sequence == sequence)
    }
}

#[cfg(test)]
mod tests;
