//! The leases of one caller, and its requests' way through them.
//!
//! A resource opens at its first use, and is released when it is idle. Its wants follow the requests of the last second,
//! refused ones included.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use doorward_client::capacity::{Allowance, Source};
use doorward_client::limiter::demand::{AdaptiveWants, DemandMeter};
use doorward_client::limiter::rate::{Burst, LeasedRate, NotNow};
use doorward_client::state::Step;
use doorward_client::time::Time;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_limits::{Decision, Units};
use doorward_rules::Rank;
use tokio::sync::{Notify, watch};

use crate::clock::{self, Clock};
use crate::holder::Holder;
use crate::node::Node;

/// Largest number of open resources of a caller.
pub const RESOURCES_MAX: usize = 10_000;

/// Largest number of open resources of all callers.
pub const OPEN_MAX: usize = 100_000;

/// Amount of a lease that may be used at once. All callers of a resource together may exceed its capacity by their
/// bursts: by the amount of a tenth of a second, and a request for each.
const BURST: Burst = Burst {
    span: Duration::from_millis(100),
    least: 1.0,
};

/// Time after which a caller with a lease of 0 may try again.
const RETRY_IN: Duration = Duration::from_secs(1);

/// Measurement of a caller's demand.
const WANTS: AdaptiveWants = AdaptiveWants {
    window: Duration::from_secs(1),
    headroom: 1.1,
    least: 1.0,
    most: 1e15,
};

/// Time between two measurements.
const MEASURED_EVERY: Duration = Duration::from_millis(250);

/// Time after which an unused resource is released; at the latest, twice that time.
const IDLE: Duration = Duration::from_secs(30);

/// A caller of the doors, which holds leases of the node.
#[derive(Debug)]
pub struct Caller {
    clock: Clock,
    holder: Mutex<Holder>,
    uses: RwLock<HashMap<Box<str>, Arc<Use>>>,
    wake: Notify,
    /// Open resources of all callers.
    open: Arc<AtomicUsize>,
}

/// A caller's use of a resource.
#[derive(Debug)]
struct Use {
    limiter: LeasedRate,
    demand: Mutex<DemandMeter>,
    allowance: watch::Sender<Allowance>,
    /// Whether a request used it since the last look for idle resources.
    is_used: AtomicBool,
    /// Amount that the next lease pays.
    debt: AtomicU64,
    /// Amount that requests took of leases: no more is given back.
    counted: AtomicU64,
    rank: Mutex<Rank>,
    opened_at: Time,
}

impl Caller {
    /// Creates a caller without leases.
    ///
    /// `open` counts the open resources of all callers.
    pub fn new(name: HolderName, clock: Clock, open: Arc<AtomicUsize>) -> Self {
        let holder = Holder::new(name, clock::incarnation(), clock::sequence());
        Self {
            clock,
            holder: Mutex::new(holder),
            uses: RwLock::default(),
            wake: Notify::new(),
            open,
        }
    }

    /// Takes `cost` of a resource. None: there is no lease.
    pub fn take(&self, resource: &str, cost: u64) -> Option<Result<(), Decision>> {
        let used = self.use_of(resource, None)?;
        let now = self.clock.now();
        let whole = cost;
        let cost = Units::whole(cost).as_f64();
        used.demand().asked(cost, now);
        if !used.has_lease(now) {
            return None;
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
            used.counted.fetch_add(whole, Ordering::Relaxed);
        }
        Some(taken.map_err(|not_now| match not_now {
            NotNow::RetryAfter { retry_after } => Decision::After(retry_after),
            // The next refresh may bring something.
            NotNow::Blocked => Decision::After(RETRY_IN),
        }))
    }

    /// Returns the amount of a lease that may be used at once. None: there is no lease.
    pub fn left(&self, resource: &str) -> Option<u64> {
        let (used, now) = (self.used(resource)?, self.clock.now());
        used.has_lease(now).then(|| used.limiter.left(now).floor())
    }

    /// Takes `cost` of a resource, available or not, up to a debt. Without a lease, the next one pays.
    pub fn charge(&self, resource: &str, cost: u64, debt_max: u64) {
        let now = self.clock.now();
        let Some(used) = self.use_of(resource, None) else {
            return;
        };
        if used.has_lease(now) {
            let more = (debt_max as f64 - used.debt(now)).max(0.0);
            let cost = cost.min(more as u64);
            used.counted.fetch_add(cost, Ordering::Relaxed);
            let cost = Units::whole(cost);
            used.limiter
                .settle(now, Units::ZERO, cost, Units::ZERO, now);
        } else {
            let more = |debt: u64| Some(debt.saturating_add(cost).min(debt_max));
            let _former = used
                .debt
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// Gives back `cost` of a resource, up to the amount that requests took. Without a lease, the next one pays less.
    /// Returns the amount that was given back.
    pub fn give_back(&self, resource: &str, cost: u64) -> u64 {
        let Some(used) = self.used(resource) else {
            return 0;
        };
        let now = self.clock.now();
        let has_lease = used.has_lease(now);
        let counter = if has_lease { &used.counted } else { &used.debt };
        let less = |counted: u64| Some(counted.saturating_sub(cost));
        let counted = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let given = counted.unwrap_or_default().min(cost);
        if has_lease {
            let given = Units::whole(given);
            used.limiter
                .settle(now, given, Units::ZERO, Units::ZERO, now);
        }
        given
    }

    /// Opens a resource, or changes the rank in it.
    pub fn open(&self, resource: &str, rank: Rank) {
        if let Some(used) = self.use_of(resource, Some(rank)) {
            *used.rank() = rank;
        }
    }

    /// Waits for the first lease of a resource, until `max_wait` has passed since its first use.
    pub async fn ready(&self, resource: &str, max_wait: Duration) {
        let Some(used) = self.use_of(resource, None) else {
            return;
        };
        let until = used.opened_at + max_wait;
        let now = self.clock.now();
        if used.has_lease(now) || until <= now {
            return;
        }
        let mut allowance = used.allowance.subscribe();
        tokio::select! {
            _ = allowance.wait_for(|it| it.source == Source::Lease) => {}
            () = self.clock.sleep_until(until) => {}
        }
    }

    /// Returns the use of a resource, and opens it with a rank. None: there is no room, or its id is too long.
    fn use_of(&self, resource: &str, rank: Option<Rank>) -> Option<Arc<Use>> {
        let uses = self.uses.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = uses.get(resource) {
            used.is_used.store(true, Ordering::Relaxed);
            return Some(Arc::clone(used));
        }
        drop(uses);
        self.open_new(resource, rank.unwrap_or_default())
    }

    #[cold]
    fn open_new(&self, resource: &str, rank: Rank) -> Option<Arc<Use>> {
        let mut uses = self.uses.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = uses.get(resource) {
            return Some(Arc::clone(used));
        }
        let has_room = uses.len() < RESOURCES_MAX && self.open.load(Ordering::Relaxed) < OPEN_MAX;
        if !has_room || ResourceId::new(resource).is_err() {
            return None;
        }
        let now = self.clock.now();
        let used = Arc::new(Use {
            limiter: LeasedRate::new(BURST, now),
            demand: Mutex::new(DemandMeter::new(WANTS, now)),
            allowance: watch::Sender::new(Allowance::NONE),
            is_used: AtomicBool::new(true),
            debt: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            rank: Mutex::new(rank),
            opened_at: now,
        });
        uses.insert(resource.into(), Arc::clone(&used));
        self.open.fetch_add(1, Ordering::Relaxed);
        drop(uses);
        self.holder().open(resource, rank, WANTS.least, now);
        self.wake.notify_one();
        Some(used)
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self, resource: &str) -> Option<Arc<Use>> {
        let uses = self.uses.read().unwrap_or_else(PoisonError::into_inner);
        uses.get(resource).cloned()
    }

    /// Keeps the leases fresh, until no resource is open any more.
    pub async fn run(&self, node: &dyn Node) {
        let mut looks_at = self.clock.now() + IDLE;
        let mut measures_at = self.clock.now();
        loop {
            let now = self.clock.now();
            if now >= looks_at {
                looks_at = now + IDLE;
                if self.close_idle(node).await {
                    return;
                }
            }
            if now >= measures_at {
                measures_at = now + MEASURED_EVERY;
                self.measure(now);
            }
            self.publish(now);
            let step = self.holder().next_step(now);
            match step {
                Step::Send => {
                    let request = self.holder().request(|_| 0.0, now);
                    let outcome = node.get_capacity(request).await;
                    let (chance, now) = (clock::chance(), self.clock.now());
                    self.holder().handle_outcome(outcome, chance, now);
                }
                Step::Wait(until) => {
                    let at = until.unwrap_or(Time::MAX).min(measures_at).min(looks_at);
                    tokio::select! {
                        () = self.clock.sleep_until(at) => {}
                        () = self.wake.notified() => {}
                    }
                }
            }
        }
    }

    /// Asks for what requests wanted lately.
    fn measure(&self, now: Time) {
        let all = self.uses.read().unwrap_or_else(PoisonError::into_inner);
        let mut uses: Vec<_> = all
            .iter()
            .map(|(id, it)| (id.clone(), it.clone()))
            .collect();
        drop(all);
        uses.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut holder = self.holder();
        for (id, used) in uses {
            holder.set_rank(&id, *used.rank());
            let wants = used.demand().rate(now);
            if DemandMeter::is_worth_asking(wants, holder.wants(&id)) {
                holder.ask(&id, wants);
            }
        }
    }

    /// Passes changed allowances to the limiters.
    fn publish(&self, now: Time) {
        let changes = self.holder().changes(now);
        for (id, allowance) in changes {
            let Some(used) = self.used(&id) else {
                continue;
            };
            let had_lease = used.has_lease(now);
            used.limiter.handle_allowance(allowance, now);
            if !had_lease && allowance.source == Source::Lease {
                // A lease begins empty, and the first request need not wait for its first amount.
                let debt = used.debt.swap(0, Ordering::Relaxed);
                used.counted.fetch_add(debt, Ordering::Relaxed);
                let debt = Units::whole(debt);
                used.limiter.settle(now, Units::ONE, debt, Units::ZERO, now);
            }
            used.allowance.send_replace(allowance);
        }
    }

    /// Releases the resources that no request used since the last such call. Returns whether none is left.
    async fn close_idle(&self, node: &dyn Node) -> bool {
        let mut releases = Vec::new();
        let is_empty = {
            let mut uses = self.uses.write().unwrap_or_else(PoisonError::into_inner);
            let mut holder = self.holder();
            let now = self.clock.now();
            uses.retain(|id, used| {
                let is_used = used.is_used.swap(false, Ordering::Relaxed);
                if !is_used {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                    releases.extend(holder.close(id, now));
                }
                is_used
            });
            uses.is_empty()
        };
        for release in releases {
            node.release(release).await;
        }
        is_empty
    }
}

impl Use {
    fn demand(&self) -> MutexGuard<'_, DemandMeter> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rank(&self) -> MutexGuard<'_, Rank> {
        self.rank.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the amount that the lease admits at once.
    fn burst(&self, now: Time) -> f64 {
        let rate = self.allowance.borrow().at(now).get();
        BURST.least + rate * BURST.span.as_secs_f64()
    }

    /// Returns the amount that the lease owes.
    fn debt(&self, now: Time) -> f64 {
        match self.limiter.look(0.0, now) {
            Ok(()) => 0.0,
            Err(NotNow::RetryAfter { retry_after }) => {
                retry_after.as_secs_f64() * self.allowance.borrow().at(now).get()
            }
            // A lease of nothing pays no debt.
            Err(NotNow::Blocked) => f64::INFINITY,
        }
    }

    fn has_lease(&self, now: Time) -> bool {
        self.allowance.borrow().seen_at(now).source == Source::Lease
    }
}
