//! What a client holds, when it refreshes, and what it falls back to: pure.
//!
//! [`ClientState`] knows no clock, no network and no chance but what it is handed; the transport
//! and the simulator drive the same one. The contract: call a `handle_*` or a command, then act on
//! [`ClientState::next_step`] until it says to wait. One request is under way at a time.
//!
//! **An answer is applied only if it answers the newest request.** That makes what a request says
//! the client `has` a proof: no older answer can raise it afterwards, so the server may give the
//! rest to others. **Leases count from when the request was sent**, so the client's view of a
//! lease ends no later than the server's.

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

/// The largest amount a server takes.
pub const AMOUNT_MAX: f64 = 1e15;

/// The longest span that a server may tell: no template has longer leases.
pub const SPAN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The least wait when a lease is about to end while no server answers.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// How a client behaves towards servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The least time between two requests of which the second comes before its refresh interval
    /// is over, because something else is wanted now: towards a server that does not tell whether it
    /// decided. A little above the server's refresh floor, below which it would answer without a
    /// decision.
    pub early_gap: Duration,
    /// The same, towards a server that tells whether it decided, and if it did not, when it will. By
    /// default a tenth of a second: wants that change all the time make ten requests a second of one
    /// client and no more, and nobody waits for longer than a few rounds of the tree (of 50 ms), in
    /// which servers gather what changes anyway.
    pub news_gap: Duration,
    /// Never refreshed faster, whatever a server says: it may give leases of a millisecond. By default a
    /// tenth of a second, as for news. Leases that are not much longer end before they are refreshed.
    pub refresh_floor: Duration,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How long to wait after failures.
    pub backoff: BackoffConfig,
    /// How long the process before this one may go on under the same id after a restart: a rolling restart starts
    /// the next process first, and the former one still finishes its work. So long a refusal because of another
    /// process is waited out. If the server says the same after that, two processes have one id by mistake, and
    /// limiters say so. Zero: the first refusal counts. By default ten seconds, as `connect` waits for a server. Time in which
    /// the other process may have ended unnoticed comes on top: a refresh interval and a quarter, at most a minute.
    pub restart_overlap: Duration,
    /// By how much our clock may be wrong. None: by a thousandth, or by a tenth where the platform has
    /// no clock whose speed nobody changes.
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

/// What the driver is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send what [`ClientState::request`] gives.
    Send,
    /// Nothing until then, or until something happens.
    Wait(Option<Time>),
}

/// The request under way.
#[derive(Clone, Debug)]
struct UnderWay {
    sequence: u64,
    sent_at: Time,
    /// What was wanted in it.
    wanted: BTreeMap<String, f64>,
}

/// Nothing is sent for a while.
#[derive(Clone, Copy, Debug)]
struct Pause {
    until: Time,
    /// An overloaded server said so. Else it is our own patience after a failure.
    is_by_server: bool,
}

/// Everything a client knows. See the [module](self).
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
    /// A client with no resources. `sequence` must be above that of every request this client id
    /// has ever sent: start it from the wall clock in microseconds.
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

    /// Starts to use a resource. Returns false if it is used already.
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
        // Whoever had leases of all else was patient; this one has none yet.
        if let Some(pause) = self.pause.as_mut().filter(|pause| !pause.is_by_server) {
            let patience = self.config.backoff.cap_without_lease;
            pause.until = pause.until.min(now + patience);
        }
        true
    }

    /// Stops using a resource. Returns whether there is a lease to release.
    pub fn close(&mut self, resource: &str, now: Time) -> bool {
        let gone = self.resources.remove(resource);
        // A request under way may still bring a lease that nobody will use.
        let asked = self
            .under_way
            .as_mut()
            .is_some_and(|u| u.wanted.remove(resource).is_some());
        gone.is_some_and(|gone| gone.lease(now).is_some()) || asked
    }

    /// Changes what is wanted of a resource; the server hears of it soon.
    pub fn ask(&mut self, resource: &str, wants: f64) {
        if let Some(state) = self.resources.get_mut(resource) {
            state.wants = wants;
        }
    }

    /// A resource that is used.
    pub fn resource(&self, resource: &str) -> Option<&ResourceState> {
        self.resources.get(resource)
    }

    /// The resources that are used.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &ResourceState)> {
        self.resources
            .iter()
            .map(|(id, state)| (id.as_str(), state))
    }

    /// When the last lease ends that is valid now.
    pub fn leases_end(&self, now: Time) -> Option<Time> {
        let ends = self
            .resources
            .values()
            .filter_map(|state| state.expiry(now));
        ends.max()
    }

    /// What may be used of a resource from now on; nothing if it is not used.
    pub fn allowance(&self, resource: &str, now: Time) -> Allowance {
        self.resources
            .get(resource)
            .map_or(Allowance::NONE, |state| state.allowance(now))
    }

    /// The next number for a request or a release.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.backoff.failures()
    }

    /// When the next answer about a resource is due, as far as that is up to us: when the client asks
    /// next, or did. None: the resource is not used.
    pub fn next_answer(&self, resource: &str) -> Option<Time> {
        let state = self.resources.get(resource)?;
        let is_asked = |asked: &&UnderWay| asked.wanted.contains_key(resource);
        if let Some(under_way) = self.under_way.as_ref().filter(is_asked) {
            return Some(under_way.sent_at);
        }
        Some(self.not_before(state.due(self.last_sent, &self.config)))
    }

    /// What to do now.
    pub fn next_step(&self, now: Time) -> Step {
        // What may be used changes by itself then.
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

    /// As if a request for every resource were sent now, whenever they are due: what a fake server answers.
    /// Returns its number, and what is wanted of each.
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

    /// Every lease ends now: a fake server is down for longer than any of them lasts.
    #[cfg(feature = "transport")]
    pub(crate) fn end_leases(&mut self, now: Time) {
        for state in self.resources.values_mut() {
            state.end_lease(now);
        }
    }

    fn not_before(&self, due: Time) -> Time {
        self.pause.map_or(due, |pause| due.max(pause.until))
    }

    /// The request to send now. `in_flight` tells what of a resource is in use beyond any lease.
    pub fn request(&mut self, in_flight: impl Fn(&str) -> f64, now: Time) -> Request {
        let sequence = self.next_sequence();
        let tolerance = self.config.clock_tolerance.unwrap_or_default();
        let all_failing = self.backoff.failures() > 0;
        let mut wanted = BTreeMap::new();
        let mut asks = Vec::new();
        for (id, state) in &mut self.resources {
            if !(state.goes_along(now) || all_failing) {
                continue;
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

    /// A master has answered the request of that number. Returns whether the answer counts: only
    /// that to the newest request does. `chance` is uniform in 0…1: it spreads waits after refusals that
    /// tell no time. All of one answer are asked for again together.
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
            // What was not asked, or twice, is passed over.
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
                // This is how an old server says that it knows no template.
                let message = "the server did not answer for it".to_owned();
                let trouble = Trouble::UnknownResource(message);
                state.refuse(trouble, Retry::untold(chance), now);
            }
        }
        true
    }

    /// The request of that number went nowhere: an error, a timeout. `chance` is uniform in 0…1.
    pub fn handle_failure(&mut self, sequence: u64, chance: f64, now: Time) {
        self.fail(sequence, FailureKind::OutOfReach, chance, now);
    }

    /// The request of that number reached a server of the node, but there is no master to answer
    /// it: one is about to be elected. `chance` is uniform in 0…1.
    pub fn handle_masterless(&mut self, sequence: u64, chance: f64, now: Time) {
        self.fail(sequence, FailureKind::Masterless, chance, now);
    }

    /// A server is too busy to answer the request of that number, and said when to come back. That is
    /// obeyed, also where a lease ends before: who comes back earlier is turned away again. The server
    /// is there, so nothing has failed. `chance` is uniform in 0…1.
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
        // Never so long that a valid lease could not be refreshed in time if a server was up.
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

    /// The request of that number was answered "not the master, go there": it is sent again at
    /// once.
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

    /// Whether a request is under way.
    pub fn is_asking(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether the request of that number is under way.
    pub fn is_asking_by(&self, sequence: u64) -> bool {
        let under_way = self.under_way.as_ref();
        under_way.is_some_and(|under_way| under_way.sequence == sequence)
    }
}

#[cfg(test)]
mod tests;
