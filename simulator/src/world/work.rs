//! Work for a client's limiters: the production limiters, on the client's own clock.
//!
//! Pieces of work arrive at random, as often as the load says. Each waits for the limiter in turn,
//! as calls of the library do; if the queue is full, it gives up. Admitted work is done whatever
//! happens to the lease: requests at once, other work for a time in which it holds its permits.
//!
//! **Use by leases.** Permits out beyond the present lease were taken under a larger one. They
//! count as use by that lease until it would have ended, as far as the client has reported it in
//! every request since; the server reserves that much. Permits beyond that were taken in the
//! client's mode, or outlast their lease, and count as use without a lease.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use doorward::capacity::Allowance;
use doorward::limiter::budget::{BudgetHolder, Short};
use doorward::limiter::concurrency::LeasedPermits;
use doorward::limiter::demand::DemandMeter;
use doorward::limiter::rate::{Burst, LeasedRate};
use doorward::state::{BudgetAnswer, BudgetAsk, Lease};
use doorward_engine::time::Time;

use crate::chance::Chance;
use crate::local_clock::LocalClock;
use crate::scenario::{Adaptive, Limiter, Span};
use crate::world::admission_check::AdmissionCheck;

/// Queue length at which further work gives up.
const QUEUE_MAX: u32 = 16;

/// Minimum interval between pieces of work, however large the load is.
const ARRIVALS_EVERY_MIN: Duration = Duration::from_millis(20);

/// Limiter of any kind, with the cost of each request, or the permits and the time of each piece of work.
#[derive(Debug)]
enum AnyLimiter {
    Rate(Box<LeasedRate>, f64),
    Concurrency(LeasedPermits, u32, Span),
    Budget(RefCell<BudgetHolder>, u32),
}

/// Limiter with its work.
#[derive(Debug)]
pub(crate) struct LimiterWork {
    gate: AnyLimiter,
    demand: Option<DemandMeter>,
    /// Demand measured when it was last worth a request, or what was taken of a budget.
    pub(crate) measured: f64,
    measure_at: Time,
    waiting: u32,
    chance: Chance,
    /// Load by which the next piece of work was drawn.
    load: f64,
    arrives_at: Option<Time>,
    /// End of each piece of work under way.
    ends: BinaryHeap<Reverse<Time>>,
    /// Next attempt of the first piece that waits.
    tries_at: Option<Time>,
    /// Newest lease, and earlier ones that were larger and would not have ended yet.
    newest: Option<Lease>,
    former: Vec<Lease>,
    /// Check of the limiter's admissions.
    pub(crate) admission: AdmissionCheck,
    /// End of the window of a budget of which something is held, by the client's clock.
    window_ends: Option<Time>,
    /// Whether more of a budget is asked for before the next refresh.
    pub(crate) asks_early: bool,
    /// Time of its next wake-up.
    pub(crate) wake_at: Option<Time>,
}

impl LimiterWork {
    pub(crate) fn new(limiter: Limiter, mut chance: Chance, clock: &LocalClock, now: Time) -> Self {
        let local = clock.shows(now);
        let gate = if let Some(cost) = limiter.budget {
            let book = chance.bits().max(1);
            AnyLimiter::Budget(BudgetHolder::new(book).into(), cost.0)
        } else if let Some((permits, takes)) = limiter.concurrency.zip(limiter.takes) {
            AnyLimiter::Concurrency(LeasedPermits::default(), permits.0, takes)
        } else {
            // A usual request passes at once.
            let least = limiter.rate.map_or(1.0, |cost| cost.0);
            let burst = Burst {
                least,
                ..Burst::default()
            };
            AnyLimiter::Rate(Box::new(LeasedRate::new(burst, local)), least)
        };
        let adaptive = limiter.adaptive.map(Adaptive::wants);
        Self {
            gate,
            demand: adaptive.map(|config| DemandMeter::new(config, local)),
            measured: adaptive.map_or(0.0, |config| config.least.min(config.most)),
            measure_at: now,
            waiting: 0,
            chance,
            load: 0.0,
            arrives_at: None,
            ends: BinaryHeap::new(),
            tries_at: None,
            newest: None,
            former: Vec::new(),
            admission: AdmissionCheck::new(local),
            window_ends: None,
            asks_early: false,
            wake_at: None,
        }
    }

    /// Returns what it asks for, if it measures its demand.
    pub(crate) fn measured(&self) -> Option<f64> {
        self.demand.as_ref().map(|_| self.measured).or(self.taken())
    }

    /// Returns the amount that was taken of a budget in the present window, if it is one.
    pub(crate) fn taken(&self) -> Option<f64> {
        matches!(self.gate, AnyLimiter::Budget(..)).then_some(self.measured)
    }

    /// Returns what was taken of a budget, and the end of that window.
    pub(crate) fn spent(&self, clock: &LocalClock) -> Option<(f64, Option<Time>)> {
        let taken = self.taken().filter(|taken| *taken > 0.0)?;
        Some((taken, self.window_ends.map(|ends| clock.when(ends))))
    }

    /// Brings an answer about a budget into force.
    pub(crate) fn handle_budget(&mut self, answer: &BudgetAnswer) {
        if let AnyLimiter::Budget(holder, _) = &mut self.gate {
            holder.get_mut().answer(answer);
        }
    }

    /// Returns the word about a budget, for a request with that refresh interval, on a stream or not.
    pub(crate) fn say(&self, pace: (Duration, bool), local: Time) -> Option<BudgetAsk> {
        match &self.gate {
            AnyLimiter::Budget(holder, _) => Some(holder.borrow_mut().say(pace.0, pace.1, local)),
            AnyLimiter::Rate(..) | AnyLimiter::Concurrency(..) => None,
        }
    }

    pub(crate) fn in_flight(&self) -> f64 {
        match &self.gate {
            AnyLimiter::Rate(..) | AnyLimiter::Budget(..) => 0.0,
            AnyLimiter::Concurrency(limiter, ..) => limiter.in_flight() as f64,
        }
    }

    /// Sets the load.
    pub(crate) fn handle_load(&mut self, load: f64, now: Time) {
        if load == self.load {
            return;
        }
        self.load = load;
        self.arrives_at = self.next_arrival(now);
    }

    /// Finishes the work under way, and begins no more.
    pub(crate) fn close(&mut self, now: Time) {
        self.waiting = 0;
        self.tries_at = None;
        self.handle_load(0.0, now);
    }

    fn next_arrival(&mut self, now: Time) -> Option<Time> {
        let each = match self.gate {
            AnyLimiter::Rate(_, cost) => cost,
            AnyLimiter::Budget(_, cost) => cost.into(),
            AnyLimiter::Concurrency(_, permits, takes) => {
                let seconds = (takes.0 + takes.1).as_secs_f64() / 2.0;
                f64::from(permits) * seconds
            }
        };
        let every = Duration::try_from_secs_f64(each / self.load).ok()?;
        // A tiny load brings no work.
        let is_some = every < Duration::from_secs(1_000_000);
        let every = every.max(ARRIVALS_EVERY_MIN);
        is_some.then(|| now + self.chance.exponential_duration(every))
    }

    /// Sets what the limiter may admit.
    pub(crate) fn handle_allowance(
        &mut self,
        allowance: Allowance,
        lease: Option<Lease>,
        clock: &LocalClock,
        now: Time,
    ) {
        let local = clock.shows(now);
        self.note_lease(lease, local);
        if allowance != self.admission.allowance {
            self.admission.handle_allowance(allowance, local);
            match &mut self.gate {
                AnyLimiter::Rate(limiter, _) => limiter.handle_allowance(allowance, local),
                AnyLimiter::Concurrency(limiter, ..) => limiter.handle_allowance(allowance),
                AnyLimiter::Budget(..) => {}
            }
        }
        self.attempt(clock, now);
    }

    fn note_lease(&mut self, lease: Option<Lease>, local: Time) {
        if lease != self.newest {
            let before = std::mem::replace(&mut self.newest, lease);
            self.former.extend(before);
        }
        let has = lease.map_or(0.0, |lease| lease.capacity);
        let counts = |it: &Lease| it.expires_at > local && it.capacity > has;
        self.former.retain(counts);
    }

    /// Notes the amount that a request reports as held. Former leases count for no more from now
    /// on.
    pub(crate) fn note_reported(&mut self, has: f64, lease: Option<Lease>, local: Time) {
        self.note_lease(lease, local);
        for former in &mut self.former {
            former.capacity = former.capacity.min(has);
        }
    }

    /// Notes a release: later use is not covered by a former lease.
    pub(crate) fn note_released(&mut self) {
        self.newest = None;
        self.former.clear();
    }

    /// Returns the use by leases, which includes work taken under former ones, and the use beyond
    /// that.
    pub(crate) fn used(&mut self, lease: f64, local: Time) -> (f64, f64) {
        if let AnyLimiter::Budget(holder, _) = &self.gate {
            let holder = holder.borrow();
            let (taken, most) = holder.amounts(local);
            self.measured = taken as f64;
            self.window_ends = holder.ends_at().filter(|_| most > 0);
            return (most as f64, 0.0);
        }
        let in_flight = self.in_flight();
        let former = self.former.iter().filter(|it| it.expires_at > local);
        let covered = former.fold(lease, |most, it| most.max(it.capacity));
        let by_leases = lease.max(in_flight.min(covered));
        (by_leases, (in_flight - by_leases).max(0.0))
    }

    /// Does what is due.
    pub(crate) fn pass(&mut self, clock: &LocalClock, now: Time) {
        let local = clock.shows(now);
        while self.ends.peek().is_some_and(|end| end.0 <= now) {
            self.ends.pop();
            if let AnyLimiter::Concurrency(limiter, permits, _) = &mut self.gate {
                limiter.release((*permits).into());
            }
        }
        if self.arrives_at.is_some_and(|at| at <= now) {
            self.arrive(local);
            self.arrives_at = self.next_arrival(now);
        }
        self.attempt(clock, now);
    }

    /// Adds a piece of work.
    fn arrive(&mut self, local: Time) {
        let waits = self.waiting < QUEUE_MAX;
        self.waiting += u32::from(waits);
        let waiting = f64::from(self.waiting + u32::from(!waits));
        let in_flight = self.in_flight();
        let Some(demand) = &mut self.demand else {
            return;
        };
        match self.gate {
            AnyLimiter::Rate(_, cost) => demand.asked(cost, local),
            AnyLimiter::Budget(..) => {}
            AnyLimiter::Concurrency(_, permits, _) => {
                demand.at_once(in_flight + waiting * f64::from(permits), local);
            }
        }
    }

    /// Lets waiting work try in turn.
    fn attempt(&mut self, clock: &LocalClock, now: Time) {
        let local = clock.shows(now);
        self.tries_at = None;
        while self.waiting > 0 {
            let again = match &mut self.gate {
                AnyLimiter::Rate(limiter, cost) => match limiter.try_acquire(*cost, local) {
                    Ok(()) => {
                        self.admission.note_admitted(*cost, local);
                        self.waiting -= 1;
                        continue;
                    }
                    Err(refusal) => refusal.retry_after.map(|time| local + time),
                },
                AnyLimiter::Budget(holder, cost) => {
                    let holder = holder.get_mut();
                    let reserved = holder.reserve((*cost).into(), local);
                    match reserved {
                        Ok(()) => self.waiting -= 1,
                        Err(Short::Exhausted) => self.waiting = 0,
                        // The next answer wakes them.
                        Err(_) => {}
                    }
                    self.asks_early |= holder.asks_early(local);
                    if reserved.is_ok() {
                        continue;
                    }
                    None
                }
                AnyLimiter::Concurrency(limiter, permits, takes) => {
                    if limiter.try_acquire((*permits).into(), local) {
                        let in_flight = limiter.in_flight() as f64;
                        self.admission.note_taken(in_flight, local);
                        self.waiting -= 1;
                        let ends = now + self.chance.duration(takes.0, takes.1);
                        self.ends.push(Reverse(ends));
                        continue;
                    }
                    limiter.until().filter(|until| *until > local)
                }
            };
            self.tries_at = again.map(|at| clock.when(at).max(now));
            return;
        }
    }

    /// Returns a new value to ask for, if it measures its demand and the change is worth a request.
    pub(crate) fn measure(&mut self, clock: &LocalClock, now: Time) -> Option<f64> {
        let local = clock.shows(now);
        let (in_flight, waiting) = (self.in_flight(), f64::from(self.waiting));
        let demand = self.demand.as_mut()?;
        if now < self.measure_at {
            return None;
        }
        self.measure_at = now + demand.interval();
        let wants = match self.gate {
            AnyLimiter::Rate(..) | AnyLimiter::Budget(..) => demand.rate(local),
            AnyLimiter::Concurrency(_, permits, _) => {
                demand.at_once(in_flight + waiting * f64::from(permits), local);
                demand.gauge(local)
            }
        };
        if !DemandMeter::is_worth_asking(wants, self.measured) {
            return None;
        }
        self.measured = wants;
        Some(wants)
    }

    /// Returns when it has something to do. `measures`: whether it still measures its demand.
    pub(crate) fn due(&self, clock: &LocalClock, measures: bool) -> Option<Time> {
        let measure_at = (measures && self.demand.is_some()).then_some(self.measure_at);
        let work = self.ends.peek().map(|end| end.0);
        let lease = self.former.iter().map(|it| it.expires_at).min();
        let lease = lease.map(|ends| clock.when(ends));
        let window = self.window_ends.map(|ends| clock.when(ends));
        let early = self.asks_early.then_some(Time::ZERO);
        let all = [
            self.arrives_at,
            self.tries_at,
            measure_at,
            work,
            lease,
            window,
            early,
        ];
        all.into_iter().flatten().min()
    }
}
