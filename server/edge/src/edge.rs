//! Decisions of all doors: by the rules in force, with the leases of the caller.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use doorward::rules::limiter::Settled;
use doorward::rules::tally::Tell;
use doorward::rules::{
    Advice, Decision, Descriptor, Leases, Limiter, OnFailure, Rule, Rules, Scope, Status, Why,
};
use doorward::time::Time;
use doorward_engine::id::HolderName;
use doorward_limits::Decision as Taken;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::asker::{Asker, cut};
use crate::caller::{By, Caller, RETRY_IN, Whole};
use crate::clock::{self, Clock, Wall};
use crate::crowd::Crowds;
use crate::holder::{CALLERS, Holder};
use crate::ids;
use crate::node::Node;
use crate::records::Records;
use crate::room::Room;
use crate::work::Work;

/// Largest number of keys of one rule. Beyond it, new keys share one limit.
pub const KEYS_MAX: usize = 100_000;

/// Largest number of identities with leases of their own. Beyond it, new ones have the leases of one more together.
pub const CALLERS_MAX: usize = 10_000;

/// Number of descriptors of a request from which on each counts as work, and that work. Calls have a rate, whatever they
/// contain.
const DESCRIPTORS_FREE: usize = 8;
const WORK_OF_DESCRIPTOR: Duration = Duration::from_micros(5);

/// Domain of the rules for keys of Redis clients.
pub const REDIS_DOMAIN: &str = "redis";

/// Largest number of facts about domains that the log tells.
const LOGGED_MAX: usize = 100;

/// Name of the identities that find no room.
const OTHERS: &str = "others";

/// Memory for each key of a rule, so that few rules may have as many keys as there is room for.
const BYTES_OF_KEY: usize = 512;

/// Time between two looks at the record: longer than any lease of a former process.
const RECORDS_EVERY: Duration = Duration::from_secs(20);

/// Rules in force, with their counters, and the leases of all callers.
#[derive(Debug)]
pub struct Edge {
    pub(crate) node: Arc<dyn Node>,
    pub(crate) clock: Clock,
    pub(crate) wall: Wall,
    limiter: Limiter,
    /// By identity and priority.
    callers: Mutex<Callers>,
    allowed: AtomicU64,
    shadow: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
    /// Reservations that were refused before the node said that nothing is left.
    pub(crate) refused_early: AtomicU64,
    /// Facts about domains that the log has told.
    logged: Mutex<BTreeSet<(String, &'static str)>>,
    /// Number of buckets of each stream, by its number.
    pub(crate) buckets: Mutex<HashMap<u64, usize>>,
    pub(crate) room: Arc<Room>,
    records: Arc<Records>,
    /// Decisions of many descriptors.
    work: Work,
    /// Programs that throttle themselves.
    pub(crate) crowds: Crowds,
    /// Whether rules have been read.
    is_loaded: AtomicBool,
    /// Cancelled when the process stops: then streams end.
    pub(crate) stopping: CancellationToken,
}

type Callers = HashMap<(Box<str>, i64), Arc<Caller>>;

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
    /// Reservations of budgets that were refused although more may be there.
    pub refused_early: u64,
    /// Identities with leases.
    pub callers: usize,
    /// Estimated memory of callers and buckets, in bytes.
    pub bytes: usize,
    /// Callers and buckets that found no room.
    pub crowded: u64,
    /// Streams of Envoy's quotas.
    pub streams: usize,
    /// Buckets of these streams.
    pub buckets: usize,
}

/// A request at a door.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Domain of the rules.
    pub domain: &'a str,
    /// Its descriptors.
    pub descriptors: &'a [Descriptor<'a>],
    /// Units of the descriptors that have none of their own. None: those of the rule.
    pub hits: Option<u64>,
    /// The caller: shared limits are divided fairly among identities, and then among their callers.
    pub caller: &'a Asker,
}

impl Edge {
    /// Decides by rules, with leases of a node, within that memory, with a wall clock that a test may set, and with a
    /// record of what outlasts the process. Leases and waits use the monotonic clock. Without a domain, no door decides
    /// until rules are [set](Edge::set_rules).
    pub fn within(
        bytes_max: usize,
        node: Arc<dyn Node>,
        rules: Rules,
        wall: Wall,
        records: Records,
    ) -> Arc<Self> {
        let is_loaded = !rules.domains().is_empty();
        let keys_max = KEYS_MAX.min(bytes_max / BYTES_OF_KEY);
        Arc::new(Self {
            node,
            clock: Clock::start(),
            wall,
            limiter: Limiter::new(rules, keys_max, clock::seed()).telling(logged),
            callers: Mutex::default(),
            allowed: AtomicU64::new(0),
            shadow: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            refused_early: AtomicU64::new(0),
            logged: Mutex::default(),
            buckets: Mutex::default(),
            room: Arc::new(Room::new(bytes_max)),
            records: Arc::new(records),
            work: Work::default(),
            crowds: Crowds::default(),
            is_loaded: AtomicBool::new(is_loaded),
            stopping: CancellationToken::new(),
        })
    }

    /// Puts other rules in force. Counters of rules that stay keep their ratio.
    pub fn set_rules(&self, rules: Rules) {
        self.limiter.replace(rules, self.wall.now());
        self.is_loaded.store(true, Ordering::Relaxed);
    }

    /// Ends all streams, since the process stops.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Returns whether rules have been read. Before that, no door decides.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Relaxed)
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> Rules {
        self.limiter.rules()
    }

    /// Keeps the record of what outlasts the process. Runs for ever: spawn it.
    pub async fn keep_records(self: Arc<Self>) {
        loop {
            let next = self.clock.now() + RECORDS_EVERY;
            self.clock.sleep_until(next).await;
            self.records.renew(self.clock.now());
        }
    }

    /// Returns the record of what outlasts the process.
    pub const fn records(&self) -> &Arc<Records> {
        &self.records
    }

    /// Returns the rules with their counters.
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Returns the counts so far.
    pub fn seen(&self) -> Seen {
        let (callers, buckets) = (self.callers.lock(), self.buckets.lock());
        Seen {
            allowed: self.allowed.load(Ordering::Relaxed),
            shadow: self.shadow.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            refused_early: self.refused_early.load(Ordering::Relaxed),
            callers: callers.len(),
            bytes: self.room.bytes(),
            crowded: self.room.refused(),
            streams: buckets.len(),
            buckets: buckets.values().sum(),
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
        let mut logged = self.logged.lock();
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
        self.pace(asked).await;
        let shared = (self.limiter).shared(asked.domain, asked.descriptors, asked.hits);
        let leases = self.leases(asked);
        for (descriptor, rule, _) in &shared {
            match leases.of(rule, descriptor) {
                Some((caller, resource, _)) if rule.scope == Scope::Budget => {
                    caller.open_for_rule(&resource, self.clock.now());
                }
                Some((caller, resource, by)) => caller.open(&resource, &by, self.clock.now()),
                None => {}
            }
        }
        for (descriptor, rule, cost) in shared {
            match leases.of(&rule, &descriptor) {
                Some((caller, resource, _)) if rule.scope == Scope::Budget => {
                    let until = self.clock.now() + rule.max_wait;
                    caller
                        .await_budget(&resource, cost, until, self.clock)
                        .await;
                }
                Some((caller, resource, _)) => {
                    caller.ready(&resource, rule.max_wait, self.clock).await;
                }
                None => {}
            }
        }
        let now = self.wall.now();
        let (domain, descriptors, hits) = (asked.domain, asked.descriptors, asked.hits);
        let limiter = &self.limiter;
        let decision = limiter.decide_with(domain, descriptors, hits, Some(&leases), now);
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
    pub async fn settle(self: &Arc<Self>, asked: &Asked<'_>, settled: Settled) {
        self.pace(asked).await;
        let leases = self.leases(asked);
        let (domain, descriptors, hits) = (asked.domain, asked.descriptors, asked.hits);
        let now = self.wall.now();
        self.limiter
            .settle(domain, descriptors, hits, settled, &leases, now);
    }

    /// Waits for the turn of a request with many descriptors.
    async fn pace(&self, asked: &Asked<'_>) {
        let count = asked.descriptors.len();
        if count > DESCRIPTORS_FREE {
            let work = self.work.of(asked.caller.identity(), self.clock.now());
            let turn = work.charge(Duration::ZERO, self.clock.now());
            self.clock.sleep_until(turn).await;
            let took = WORK_OF_DESCRIPTOR * u32::try_from(count).unwrap_or(u32::MAX);
            work.charge(took, self.clock.now());
        }
    }

    fn leases<'a>(self: &'a Arc<Self>, asked: &Asked<'a>) -> CallerLeases<'a> {
        CallerLeases {
            edge: self,
            domain: asked.domain,
            asker: asked.caller,
        }
    }

    /// Returns the leases of an identity for a priority. A task keeps them until they are idle.
    pub(crate) fn caller(self: &Arc<Self>, identity: &str, priority: i64) -> Option<Arc<Caller>> {
        let identity = cut(identity);
        let mut callers = self.callers.lock();
        if let Some(caller) = callers.get(&(identity.into(), priority)) {
            return Some(Arc::clone(caller));
        }
        let has_room = callers.len() < CALLERS_MAX || identity == OTHERS;
        let key = (if has_room { identity } else { OTHERS }.into(), priority);
        if let Some(caller) = callers.get(&key) {
            return Some(Arc::clone(caller));
        }
        let name = holder_name(&key.0, priority)?;
        let holder = Holder::new(name, priority, clock::incarnation(), clock::sequence());
        let (room, records) = (Arc::clone(&self.room), Arc::clone(&self.records));
        let caller = Arc::new(Caller::new(&key.0, holder, room, records));
        callers.insert(key.clone(), Arc::clone(&caller));
        tokio::spawn(keep(Arc::downgrade(self), key, Arc::clone(&caller)));
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

/// Keeps the leases of an identity, and forgets the identity when it has none.
async fn keep(edge: Weak<Edge>, key: (Box<str>, i64), caller: Arc<Caller>) {
    let parts = edge.upgrade().map(|edge| (edge.node.clone(), edge.clock));
    let Some((node, clock)) = parts else {
        return;
    };
    loop {
        caller.run(&*node, clock).await;
        let Some(edge) = edge.upgrade() else {
            return;
        };
        let mut callers = edge.callers.lock();
        // A request that has the caller may open a resource.
        if Arc::strong_count(&caller) <= 2 {
            callers.remove(&key);
            return;
        }
    }
}

/// Returns the name of a holder for an identity, and a priority other than the usual one.
fn holder_name(identity: &str, priority: i64) -> Option<HolderName> {
    let mut id = String::from(CALLERS);
    ids::encode(identity, &mut id);
    if priority != 0 {
        id.push_str(&format!("~{priority}"));
    }
    HolderName::new(&id).ok()
}

/// The leases of a caller for the rules of a domain.
struct CallerLeases<'a> {
    edge: &'a Arc<Edge>,
    domain: &'a str,
    asker: &'a Asker,
}

impl CallerLeases<'_> {
    /// Returns the leases for a rule, the resource, and the caller among those that share them.
    fn of(&self, rule: &Rule, descriptor: &str) -> Option<(Arc<Caller>, String, By<'_>)> {
        let rank = rule.ranks.of(self.asker.name());
        let caller = self.edge.caller(self.asker.identity(), rank.priority)?;
        let by = By {
            name: cut(self.asker.name()),
            weight: rank.weight,
            is_safe: rule.on_failure == OnFailure::Safe,
            whole: rule.counted().map(|counted| Whole {
                rate: counted.rate.as_per_second(),
                at_once: counted.debt_max().as_f64(),
                usual: rule.cost as f64,
                part: f64::from(rule.processes.max(1)).recip(),
            }),
        };
        Some((caller, ids::resource(self.domain, descriptor), by))
    }

    fn now(&self) -> Time {
        self.edge.clock.now()
    }
}

impl Leases for CallerLeases<'_> {
    fn take(&self, rule: &Rule, descriptor: &str, cost: u64) -> Option<Result<(), Taken>> {
        let Some((caller, resource, by)) = self.of(rule, descriptor) else {
            return Some(Err(Taken::After(RETRY_IN)));
        };
        match rule.scope {
            Scope::Budget => caller.take_of_budget(&resource, cost, self.now()),
            Scope::Local | Scope::Shared => caller.take(&resource, &by, cost, self.now()),
        }
    }

    fn left(&self, rule: &Rule, descriptor: &str) -> Option<u64> {
        let (caller, resource, by) = self.of(rule, descriptor)?;
        match rule.scope {
            // The rest that others leave is not known here.
            Scope::Budget => None,
            Scope::Local | Scope::Shared => caller.left(&resource, &by, self.now()),
        }
    }

    fn give_back(&self, rule: &Rule, descriptor: &str, cost: u64, _took: Duration) -> u64 {
        match (self.of(rule, descriptor), rule.scope) {
            (None, _) => 0,
            (Some((caller, resource, _)), Scope::Budget) => {
                caller.give_back_to_budget(&resource, cost)
            }
            (Some((caller, resource, by)), _) => caller.give_back(&resource, &by, cost, self.now()),
        }
    }

    fn charge(&self, rule: &Rule, descriptor: &str, cost: u64, debt_max: u64) -> u64 {
        match (self.of(rule, descriptor), rule.scope) {
            (None, _) => 0,
            (Some((caller, resource, _)), Scope::Budget) => {
                caller.charge_budget(&resource, cost, debt_max, self.now())
            }
            (Some((caller, resource, by)), _) => {
                caller.charge(&resource, &by, cost, debt_max, self.now())
            }
        }
    }

    fn caller(&self) -> Option<&str> {
        Some(cut(self.asker.name()))
    }

    fn identity(&self) -> Option<&str> {
        Some(self.asker.identity())
    }
}
