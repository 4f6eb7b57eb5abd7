//! The leases of one identity: of a certificate, a token or an address. Its callers and the streams of its Envoys share
//! them.
//!
//! A resource opens at its first use, and is released when it is idle. Its wants follow the requests, refused ones
//! included. Callers of different priorities have leases apart, since their rule ranks them.

mod budgets;
mod changes;
mod demand;
mod settling;
mod sharing;
mod streams;
mod unleased;

pub use budgets::Amounts;
pub(crate) use budgets::{Kind, Refused};
pub use changes::Changes;
pub(crate) use streams::Part;
pub use unleased::Whole;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorward::capacity::{Allowance, Capacity, Source};
use doorward::limiter::demand::DemandMeter;
use doorward::limiter::rate::{Burst, LeasedRate};
use doorward::state::Step;
use doorward::time::Time;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::{GetCapacity, GetCapacityReply};
use doorward_engine::node::mastership::Outcome;
use doorward_limits::{Decision, Units};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio_stream::StreamExt as _;

use self::budgets::Budgets;
use self::sharing::Sharing;
use crate::clock::{self, Clock};
use crate::holder::Holder;
use crate::node::Node;
use crate::records::Records;
use crate::room::Room;

/// Largest number of open resources of an identity.
pub const RESOURCES_MAX: usize = 10_000;

/// Estimated bytes of an open resource: its use here, and its state as a client.
const USE_BYTES: usize = 2_048;

/// Amount of a lease that may be used at once. All identities with a lease of a resource together may exceed its
/// capacity by their bursts: by the amount of a tenth of a second, and a request for each.
const BURST: Burst = Burst {
    span: Duration::from_millis(100),
    least: 1.0,
};

/// Time after which a caller without a lease, with one of 0, or without room, may try again.
pub(crate) const RETRY_IN: Duration = Duration::from_secs(1);

/// Wants of a resource until its first requests are measured.
const WANTS_FIRST: f64 = 10.0;

/// Age of a use from which it may ask for nothing.
const MEASURED_FROM: Duration = Duration::from_secs(1);

/// Time between two measurements.
const MEASURED_EVERY: Duration = Duration::from_millis(250);

/// Time after which an unused resource is released; at the latest, twice that time.
const IDLE: Duration = Duration::from_secs(30);

/// The leases of an identity for the callers of one priority. Locks are taken in the order of the fields, and that of a
/// use's sharing last.
#[derive(Debug)]
pub struct Caller {
    /// Identity that room is taken for.
    identity: Box<str>,
    uses: RwLock<HashMap<Box<str>, Arc<Use>>>,
    holder: Mutex<Holder>,
    budgets: Mutex<Budgets>,
    /// An answer about budgets came, or something of one was given back.
    budgets_changed: Notify,
    wake: Notify,
    room: Arc<Room>,
    /// Amounts that the Envoys of the identity may use, and the name of its holder there.
    records: Arc<Records>,
    recorded_as: Box<str>,
}

/// A caller among those of the identity.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// Its name.
    pub name: &'a str,
    /// Weight by the rule.
    pub weight: u32,
    /// Whether the rule goes on by the safe capacity of the last lease.
    pub is_safe: bool,
    /// Amount of the rule, which bounds the costs of an identity among others. Before the first lease, it is divided among
    /// them if the rule is safe. None: it bounds nothing.
    pub whole: Option<Whole>,
}

/// An identity's use of a resource.
#[derive(Debug)]
struct Use {
    /// By the lease, less what streams hold.
    limiter: LeasedRate,
    sharing: Mutex<Sharing>,
    allowance: watch::Sender<Allowance>,
    /// Whether a lease came with a safe capacity.
    has_safe: AtomicBool,
    /// Whether a request used it since the last look for idle resources.
    is_used: AtomicBool,
    opened_at: Time,
}

impl Caller {
    /// Creates an identity without leases.
    pub fn new(identity: &str, holder: Holder, room: Arc<Room>, records: Arc<Records>) -> Self {
        Self {
            identity: identity.into(),
            records,
            recorded_as: holder.name().as_str().into(),
            uses: RwLock::default(),
            holder: Mutex::new(holder),
            budgets: Mutex::default(),
            budgets_changed: Notify::new(),
            wake: Notify::new(),
            room,
        }
    }

    /// Takes `cost` of a resource. None: there is no lease. Without room for the resource, it refuses, since an identity
    /// that fills its room would have no limit otherwise.
    pub fn take(
        &self,
        resource: &str,
        by: &By<'_>,
        cost: u64,
        now: Time,
    ) -> Option<Result<(), Decision>> {
        let Some(used) = self.use_of(resource, by.weight, WANTS_FIRST, now) else {
            return Some(Err(Decision::After(RETRY_IN)));
        };
        let whole = cost;
        let cost = Units::whole(cost).as_f64();
        let mut sharing = used.sharing.lock();
        sharing.demand.asked(cost, now);
        let (name, level) = sharing.name(by, |bytes| self.room.take(&self.identity, bytes), now);
        name.asked(cost, now);
        if !used.decides(by, now) {
            let identities = self.room.holders(resource);
            let whole = by.whole.filter(|_| by.is_safe)?;
            let taken = sharing.unleased.take(whole, identities, cost, now);
            return taken.err().map(|wait| Err(Decision::After(wait)));
        }
        if let Some(wait) = name.wait(level, now) {
            return Some(Err(Decision::After(wait)));
        }
        if cost > self.most(resource, &used, by, now) {
            return Some(Err(Decision::After(RETRY_IN)));
        }
        let at_once = cost.min(used.burst(now));
        let taken = used.limiter.try_acquire(at_once, now);
        if taken.is_ok() && cost > at_once {
            // A cost above the burst passes when the burst is there, and later requests pay the rest.
            let units = |amount| Units::at_least(amount).unwrap_or(Units::MAX);
            let (part, all) = (units(at_once), units(cost));
            used.limiter.settle(now, part, all, Units::ZERO, now);
        }
        if taken.is_ok() {
            name.pass(cost, level, now);
            name.counted = name.counted.saturating_add(whole);
            if cost > at_once {
                sharing.owe(cost - at_once, used.rate(now), now);
            }
        }
        // Where nothing may be used, the next refresh may bring something.
        Some(taken.map_err(|it| Decision::After(it.retry_after.unwrap_or(RETRY_IN))))
    }

    /// Returns the amount of a lease that may be used at once. None: there is no lease.
    pub fn left(&self, resource: &str, by: &By<'_>, now: Time) -> Option<u64> {
        let used = self.used(resource)?;
        used.decides(by, now)
            .then(|| used.limiter.left(now).floor())
    }

    /// Returns the largest cost and debt of the identity. Alone, it may use all.
    fn most(&self, resource: &str, used: &Use, by: &By<'_>, now: Time) -> f64 {
        let whole = by.whole.filter(|_| self.room.holders(resource) > 1);
        whole.map_or(f64::INFINITY, |it| {
            it.most(used.rate(now)).max(used.burst(now))
        })
    }

    /// Opens a resource.
    pub fn open(&self, resource: &str, by: &By<'_>, now: Time) {
        let _ = self.use_of(resource, by.weight, WANTS_FIRST, now);
    }

    /// Waits for the first lease of a resource, until `max_wait` has passed since its first use.
    pub async fn ready(&self, resource: &str, max_wait: Duration, clock: Clock) {
        let now = clock.now();
        let Some(used) = self.used(resource) else {
            return;
        };
        let until = used.opened_at + max_wait;
        if used.has_lease(now) || until <= now {
            return;
        }
        let mut allowance = used.allowance.subscribe();
        tokio::select! {
            _ = allowance.wait_for(|it| it.source == Source::Lease) => {}
            () = clock.sleep_until(until) => {}
        }
    }

    /// Returns the use of a resource, and opens it. None: there is no room, or its id is too long.
    fn use_of(&self, resource: &str, weight: u32, wants: f64, now: Time) -> Option<Arc<Use>> {
        let uses = self.uses.read();
        if let Some(used) = uses.get(resource) {
            used.is_used.store(true, Ordering::Relaxed);
            return Some(Arc::clone(used));
        }
        drop(uses);
        self.open_new(resource, weight, wants, now)
    }

    #[cold]
    fn open_new(&self, resource: &str, weight: u32, wants: f64, now: Time) -> Option<Arc<Use>> {
        let mut uses = self.uses.write();
        if let Some(used) = uses.get(resource) {
            return Some(Arc::clone(used));
        }
        let is_possible = uses.len() < RESOURCES_MAX && ResourceId::new(resource).is_ok();
        if !is_possible || !self.room.take(&self.identity, USE_BYTES) {
            return None;
        }
        let (former, until) = self.records.take_over(resource, &self.recorded_as, now);
        let mut sharing = Sharing::new(weight, now);
        let former = sharing.take_over(former, until);
        let used = Arc::new(Use {
            limiter: LeasedRate::new(BURST, now),
            sharing: Mutex::new(sharing),
            allowance: watch::Sender::new(Allowance::NONE),
            has_safe: AtomicBool::new(false),
            is_used: AtomicBool::new(true),
            opened_at: now,
        });
        uses.insert(resource.into(), Arc::clone(&used));
        drop(uses);
        self.room.enter(resource);
        let mut holder = self.holder.lock();
        holder.open(resource, wants + former, now);
        if former > 0.0 {
            holder.state.note_former(resource, former, until);
        }
        drop(holder);
        self.wake.notify_one();
        Some(used)
    }

    fn used(&self, resource: &str) -> Option<Arc<Use>> {
        let uses = self.uses.read();
        uses.get(resource).cloned()
    }

    /// Keeps the leases fresh, until no resource is open any more.
    pub async fn run(&self, node: &dyn Node, clock: Clock) {
        let mut looks_at = clock.now() + IDLE;
        let (mut measures_at, mut is_empty) = (clock.now(), false);
        let mut pushes = node.pushes(self.holder.lock().id());
        if pushes.is_some() {
            self.holder.lock().state.set_streaming(true, clock.now());
        }
        loop {
            let now = clock.now();
            if now >= looks_at {
                looks_at = now + IDLE;
                is_empty = self.close_idle(now);
            }
            if now >= measures_at {
                measures_at = now + MEASURED_EVERY;
                self.measure(now);
            }
            self.publish(now);
            let step = self.next_step(now);
            match step {
                Step::Send => {
                    let request = self.request(now);
                    let outcome = node.get_capacity(request).await;
                    self.handle_outcome(outcome, clock::chance(), clock.now());
                }
                Step::Release => {
                    let mut release = self.holder.lock().release();
                    release.words = self.budgets.lock().take_last_words();
                    node.release(release).await;
                }
                Step::Wait(_) if is_empty && self.is_empty() => return,
                Step::Wait(until) => {
                    let at = until.unwrap_or(Time::MAX).min(measures_at).min(looks_at);
                    tokio::select! {
                        () = clock.sleep_until(at) => {}
                        () = self.wake.notified() => {}
                        Some(push) = async { pushes.as_mut()?.next().await } => {
                            let now = clock.now();
                            self.holder.lock().handle_push(push, now);
                        }
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.uses.read().is_empty() && self.budgets.lock().is_empty()
    }

    /// Returns the next action.
    pub fn next_step(&self, now: Time) -> Step {
        self.holder.lock().state.next_step(now)
    }

    /// Returns the request for leases to send now.
    pub fn request(&self, now: Time) -> GetCapacity {
        let uses = self.uses.read();
        let sharing = |resource: &str| uses.get(resource).map(|used| used.sharing.lock());
        let held = |resource: &str| sharing(resource).map_or(0.0, |it| it.held(now));
        let weight = |resource: &str| sharing(resource).map_or(1, |it| it.weight);
        let mut holder = self.holder.lock();
        let word = |id: &str, pace| self.budgets.lock().say(id, pace, now);
        holder.request(held, weight, word, now)
    }

    /// Handles the outcome of the last request. `chance` is uniform in 0…1. None: the node was started anew.
    pub fn handle_outcome(
        &self,
        outcome: Option<Outcome<GetCapacityReply>>,
        chance: f64,
        now: Time,
    ) {
        self.holder.lock().handle_outcome(outcome, chance, now);
    }

    /// Asks for what requests and streams wanted lately, and divides the leases by it.
    pub fn measure(&self, now: Time) {
        let all = self.uses.read();
        let mut uses: Vec<_> = all
            .iter()
            .map(|(id, it)| (id.clone(), it.clone()))
            .collect();
        drop(all);
        uses.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (id, used) in uses {
            let wants = self.divide(&id, &used, now);
            // A use may be measured before its first request counts.
            if wants <= 0.0 && now.since(used.opened_at) < MEASURED_FROM {
                continue;
            }
            let mut holder = self.holder.lock();
            if DemandMeter::is_worth_asking(wants, holder.wants(&id)) {
                holder.ask(&id, wants);
            }
        }
    }

    /// Divides a lease anew. Returns the wants.
    fn divide(&self, resource: &str, used: &Use, now: Time) -> f64 {
        let allowance = *used.allowance.borrow();
        let mut sharing = used.sharing.lock();
        let record = (&*self.records, &*self.recorded_as);
        let freed = sharing.divide(allowance, resource, record, now);
        let (held, wants) = (sharing.held(now), sharing.wants(now));
        used.limiter.handle_allowance(less(allowance, held), now);
        drop(sharing);
        if freed > 0 {
            self.room.free(&self.identity, freed);
        }
        wants
    }

    /// Passes changed allowances to the limiters.
    pub fn publish(&self, now: Time) {
        let changes = self.holder.lock().changes(now);
        self.hear_budgets(changes.iter().map(|(id, _)| &**id));
        for (id, allowance) in changes {
            let Some(used) = self.used(&id) else {
                continue;
            };
            let is_lease = allowance.source == Source::Lease;
            if is_lease && allowance.safe.is_some() {
                used.has_safe.store(true, Ordering::Relaxed);
            }
            if is_lease && !used.has_lease(now) {
                let (held, debt) = {
                    let mut sharing = used.sharing.lock();
                    (sharing.held(now), sharing.take_debts())
                };
                used.limiter.handle_allowance(less(allowance, held), now);
                // A lease begins empty, and the first requests need not wait for its first amount.
                let burst = Units::at_least(burst(allowance)).unwrap_or(Units::ONE);
                used.limiter
                    .settle(now, burst, Units::whole(debt), Units::ZERO, now);
            }
            // Requests and streams that wait find the limiter ready, and the lease.
            used.allowance.send_replace(allowance);
            self.divide(&id, &used, now);
        }
    }

    /// Closes the resources that nothing used since the last such call. Returns whether none is left. A use stays until
    /// its debt is paid.
    pub fn close_idle(&self, now: Time) -> bool {
        let mut uses = self.uses.write();
        let mut holder = self.holder.lock();
        uses.retain(|id, used| {
            let is_used = used.is_used.swap(false, Ordering::Relaxed);
            let stays = is_used || used.sharing.lock().stays(now);
            if !stays {
                let names = used.sharing.lock().forget();
                self.room.free(&self.identity, USE_BYTES + names);
                self.room.leave(id);
                holder.state.close(id, now);
            }
            stays
        });
        let has_no_budget = self.close_idle_budgets(&mut holder, now);
        uses.is_empty() && has_no_budget
    }
}

impl Use {
    /// Returns the amount that the lease admits at once.
    fn burst(&self, now: Time) -> f64 {
        burst(self.allowance.borrow().seen_at(now))
    }

    /// Returns the rate of the lease.
    fn rate(&self, now: Time) -> f64 {
        self.allowance.borrow().at(now).get()
    }

    /// Returns the amount that the lease owes.
    fn debt(&self, now: Time) -> f64 {
        let Err(refusal) = self.limiter.look(0.0, now) else {
            return 0.0;
        };
        // A lease of nothing pays no debt.
        let time = refusal.retry_after;
        time.map_or(f64::INFINITY, |it| it.as_secs_f64() * self.rate(now))
    }

    fn has_lease(&self, now: Time) -> bool {
        self.allowance.borrow().seen_at(now).source == Source::Lease
    }

    /// Returns whether the lease decides, or after it its safe capacity.
    fn decides(&self, by: &By<'_>, now: Time) -> bool {
        self.has_lease(now) || by.is_safe && self.has_safe.load(Ordering::Relaxed)
    }
}

/// Returns the amount that an allowance admits at once.
fn burst(allowance: Allowance) -> f64 {
    BURST.least + allowance.capacity.get() * BURST.span.as_secs_f64()
}

/// Returns an allowance without the amount that streams hold.
fn less(allowance: Allowance, held: f64) -> Allowance {
    if held <= 0.0 {
        return allowance;
    }
    let left = |capacity| match capacity {
        Capacity::Limited(amount) => Capacity::Limited((amount - held).max(0.0)),
        Capacity::Unlimited => Capacity::Unlimited,
    };
    Allowance {
        capacity: left(allowance.capacity),
        then: Capacity::NONE,
        safe: None,
        ..allowance
    }
}
