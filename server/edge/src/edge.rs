//! Decisions of all doors: by the rules in force, with the leases of the caller.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use doorward_engine::id::HolderName;
use doorward_limits::Decision as Taken;
use doorward_rules::limiter::Settled;
use doorward_rules::tally::Tell;
use doorward_rules::{Advice, Decision, Descriptor, Leases, Limiter, Rank, Rules, Status, Why};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::caller::Caller;
use crate::clock::{self, Clock, Wall};
use crate::holder::CALLERS;
use crate::ids;
use crate::node::Node;

/// Largest number of keys of one rule. Beyond it, new keys share one limit.
pub const KEYS_MAX: usize = 100_000;

/// Largest number of callers with leases of their own. Beyond it, new callers have the leases of one more together.
pub const CALLERS_MAX: usize = 10_000;

/// Longest name of a caller, in bytes. A longer one is cut.
pub const NAME_BYTES_MAX: usize = 80;

/// Domain of the rules for keys of Redis clients.
pub const REDIS_DOMAIN: &str = "redis";

/// Largest number of facts about domains that the log tells.
const LOGGED_MAX: usize = 100;

/// Name of the callers that find no room.
const OTHERS: &str = "others";

/// Rules in force, with their counters, and the leases of all callers.
#[derive(Debug)]
pub struct Edge {
    node: Arc<dyn Node>,
    clock: Clock,
    pub(crate) wall: Wall,
    limiter: Limiter,
    callers: Mutex<HashMap<Box<str>, Arc<Caller>>>,
    allowed: AtomicU64,
    shadow: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
    /// Facts about domains that the log has told.
    logged: Mutex<BTreeSet<(String, &'static str)>>,
    pub(crate) streams: AtomicUsize,
    /// Buckets of all streams.
    pub(crate) buckets: AtomicUsize,
    /// Open resources of all callers.
    open: Arc<AtomicUsize>,
    /// Whether rules have been read.
    is_loaded: AtomicBool,
    /// Whether the newest version of the rules is not in force.
    is_refused: AtomicBool,
    /// Cancelled when the process stops: then streams end.
    stopping: CancellationToken,
}

/// Counts since the start, and present numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that passed only because a rule is in shadow mode.
    pub shadow: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests and streams of domains without rules.
    pub unknown: u64,
    /// Callers with leases.
    pub callers: usize,
    /// Streams of Envoy's quotas.
    pub streams: usize,
    /// Buckets of these streams.
    pub buckets: usize,
    /// Whether the newest version of the rules is not in force.
    pub is_refused: bool,
}

/// A request at a door.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Domain of the rules.
    pub domain: &'a str,
    /// Its descriptors.
    pub descriptors: &'a [Descriptor<'a>],
    /// Units of the descriptors that have none of their own. None: those of the rule.
    pub hits: Option<u64>,
    /// Name of the caller: shared limits are divided fairly among callers.
    pub caller: &'a str,
}

impl Edge {
    /// Decides by rules, with leases of a node. Without a domain, no door decides until rules are [set](Edge::set_rules).
    pub fn new(node: Arc<dyn Node>, rules: Rules) -> Arc<Self> {
        Self::with_wall(node, rules, Wall::Machine)
    }

    /// Does the same with a wall clock that a test may set. Leases and waits use the monotonic clock.
    pub fn with_wall(node: Arc<dyn Node>, rules: Rules, wall: Wall) -> Arc<Self> {
        let is_loaded = !rules.domains().is_empty();
        Arc::new(Self {
            node,
            clock: Clock::start(),
            wall,
            limiter: Limiter::new(rules, KEYS_MAX, clock::seed()).telling(logged),
            callers: Mutex::default(),
            allowed: AtomicU64::new(0),
            shadow: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            logged: Mutex::default(),
            streams: AtomicUsize::new(0),
            buckets: AtomicUsize::new(0),
            open: Arc::default(),
            is_loaded: AtomicBool::new(is_loaded),
            is_refused: AtomicBool::new(false),
            stopping: CancellationToken::new(),
        })
    }

    /// Puts other rules in force. Counters of rules that stay keep their ratio.
    pub fn set_rules(&self, rules: Rules) {
        self.limiter.replace(rules, self.wall.now());
        self.is_loaded.store(true, Ordering::Relaxed);
    }

    /// Notes whether the newest version of the rules is not in force.
    pub fn set_refused(&self, is_refused: bool) {
        self.is_refused.store(is_refused, Ordering::Relaxed);
    }

    /// Ends all streams, since the process stops.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    pub(crate) const fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns whether rules have been read. Before that, no door decides.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> Rules {
        self.limiter.rules()
    }

    pub(crate) const fn node(&self) -> &Arc<dyn Node> {
        &self.node
    }

    /// Returns the rules with their counters.
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the counts so far.
    pub fn seen(&self) -> Seen {
        let callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        Seen {
            allowed: self.allowed.load(Ordering::Relaxed),
            shadow: self.shadow.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            callers: callers.len(),
            streams: self.streams.load(Ordering::Relaxed),
            buckets: self.buckets.load(Ordering::Relaxed),
            is_refused: self.is_refused.load(Ordering::Relaxed),
        }
    }

    /// Counts a request or a stream, if no document has its domain. The log names each such domain once.
    pub(crate) fn note_domain(&self, domain: &str) {
        // The numbers of a command decide without rules.
        if domain == REDIS_DOMAIN || self.limiter.has_domain(domain) {
            return;
        }
        self.unknown.fetch_add(1, Ordering::Relaxed);
        self.tell_once(domain, "requests of a domain without rules pass");
    }

    /// Logs a fact about a domain, the first time.
    pub(crate) fn tell_once(&self, domain: &str, fact: &'static str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let domain = cut(domain);
        if logged.len() < LOGGED_MAX && logged.insert((domain.to_owned(), fact)) {
            drop(logged);
            info!(domain, "{fact}");
        }
    }

    fn count(&self, decision: &Decision) {
        let is_shadow = |status: &Status| status.why == Why::OverInShadow;
        let counter = match decision.is_allowed {
            false => &self.refused,
            true if decision.statuses.iter().any(is_shadow) => &self.shadow,
            true => &self.allowed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Decides a request, and counts it if it passes. Waits for the first lease of a shared rule, and for the turn of a
    /// request whose rule makes it wait, each for `max_wait` of the rule at most.
    pub async fn decide(self: &Arc<Self>, asked: &Asked<'_>) -> Decision {
        let shared = self.limiter.shared(asked.domain, asked.descriptors);
        let leases = self.leases(asked);
        for (descriptor, rule) in &shared {
            leases.open(descriptor, rule.ranks.of(cut(asked.caller)));
        }
        for (descriptor, rule) in shared {
            leases.ready(&descriptor, rule.max_wait).await;
        }
        let now = self.wall.now();
        let (domain, descriptors, hits) = (asked.domain, asked.descriptors, asked.hits);
        let decision = self
            .limiter
            .decide_with(domain, descriptors, hits, &leases, now);
        self.count(&decision);
        if decision.why == Why::NoRule {
            self.note_domain(domain);
        }
        if let Advice::ProceedAfter(delay) = decision.advice {
            self.clock.sleep_until(self.clock.now() + delay).await;
        }
        decision
    }

    /// Counts what was used in fact, or gives back what was not: at most what the caller took.
    pub fn settle(self: &Arc<Self>, asked: &Asked<'_>, settled: Settled) {
        let leases = self.leases(asked);
        let (domain, descriptors, hits) = (asked.domain, asked.descriptors, asked.hits);
        let now = self.wall.now();
        self.limiter
            .settle(domain, descriptors, hits, settled, &leases, now);
    }

    fn leases<'a>(self: &'a Arc<Self>, asked: &Asked<'a>) -> CallerLeases<'a> {
        CallerLeases {
            edge: self,
            domain: asked.domain,
            name: asked.caller,
        }
    }

    /// Returns a caller. A task keeps its leases until they are idle.
    fn caller(self: &Arc<Self>, name: &str) -> Option<Arc<Caller>> {
        let name = cut(name);
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = callers.get(name) {
            return Some(Arc::clone(caller));
        }
        let has_room = callers.len() < CALLERS_MAX || name == OTHERS;
        let name = if has_room { name } else { OTHERS };
        if let Some(caller) = callers.get(name) {
            return Some(Arc::clone(caller));
        }
        let caller = Arc::new(Caller::new(
            holder_name(name)?,
            self.clock,
            Arc::clone(&self.open),
        ));
        callers.insert(name.into(), Arc::clone(&caller));
        tokio::spawn(keep(Arc::downgrade(self), name.into(), Arc::clone(&caller)));
        Some(caller)
    }
}

/// Logs the first refusal of a rule, and the first one after a quiet time.
fn logged(domain: &str, rule: &str) -> Tell {
    let (domain, rule) = (domain.to_owned(), rule.to_owned());
    Box::new(move |_, _, begins| {
        if begins {
            info!(domain, rule, "a rule begins to refuse requests");
        }
    })
}

/// Keeps the leases of a caller, and forgets the caller when it has none.
async fn keep(edge: Weak<Edge>, name: Box<str>, caller: Arc<Caller>) {
    let Some(node) = edge.upgrade().map(|edge| Arc::clone(&edge.node)) else {
        return;
    };
    loop {
        caller.run(&*node).await;
        let Some(edge) = edge.upgrade() else {
            return;
        };
        let mut callers = edge.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that has the caller may open a resource.
        if Arc::strong_count(&caller) <= 2 {
            callers.remove(&name);
            return;
        }
    }
}

/// Returns the name of a holder for a caller.
pub(crate) fn holder_name(name: &str) -> Option<HolderName> {
    let mut id = String::from(CALLERS);
    ids::encode(cut(name), &mut id);
    HolderName::new(&id).ok()
}

/// Returns the part of a name that counts.
pub(crate) fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX))
        .unwrap_or(name)
}

/// The leases of a caller for the rules of a domain.
struct CallerLeases<'a> {
    edge: &'a Arc<Edge>,
    domain: &'a str,
    name: &'a str,
}

impl CallerLeases<'_> {
    fn open(&self, descriptor: &str, rank: Rank) {
        if let Some(caller) = self.edge.caller(self.name) {
            caller.open(&ids::resource(self.domain, descriptor), rank);
        }
    }

    async fn ready(&self, descriptor: &str, max_wait: Duration) {
        if let Some(caller) = self.edge.caller(self.name) {
            let resource = ids::resource(self.domain, descriptor);
            caller.ready(&resource, max_wait).await;
        }
    }
}

impl Leases for CallerLeases<'_> {
    fn take(&self, descriptor: &str, cost: u64) -> Option<Result<(), Taken>> {
        let resource = ids::resource(self.domain, descriptor);
        self.edge.caller(self.name)?.take(&resource, cost)
    }

    fn left(&self, descriptor: &str) -> Option<u64> {
        let resource = ids::resource(self.domain, descriptor);
        self.edge.caller(self.name)?.left(&resource)
    }

    fn give_back(&self, descriptor: &str, cost: u64, _took: Duration) -> u64 {
        let resource = ids::resource(self.domain, descriptor);
        let caller = self.edge.caller(self.name);
        caller.map_or(0, |caller| caller.give_back(&resource, cost))
    }

    fn charge(&self, descriptor: &str, cost: u64, debt_max: u64) {
        if let Some(caller) = self.edge.caller(self.name) {
            let resource = ids::resource(self.domain, descriptor);
            caller.charge(&resource, cost, debt_max);
        }
    }

    fn caller(&self) -> Option<&str> {
        Some(self.name)
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("domain", &self.domain)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}
