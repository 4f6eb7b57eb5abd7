//! What one open resource is to its handles and limiters.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::capacity::Allowance;
use crate::limiter::concurrency::ConcurrencyLimiter;
use crate::limiter::demand::{AdaptiveWants, Demand};
use crate::limiter::rate::RateLimiter;
use crate::state::{ResourceState, Trouble};
use crate::time::Time;

/// What handles see of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) allowance: Allowance,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) wants: f64,
    /// The wants of the newest request that was answered.
    pub(crate) answered: Option<f64>,
    pub(crate) closed: bool,
}

impl View {
    /// Whether the answer is no, and waiting would not help.
    pub(crate) fn is_refused(&self) -> bool {
        self.trouble
            .as_ref()
            .is_some_and(|trouble| !trouble.passes())
    }

    /// Whether a request that wanted so much was answered by a lease.
    pub(crate) fn is_answer_to(&self, wants: f64) -> bool {
        self.answered == Some(wants) && self.trouble.is_none()
    }
}

/// An open resource.
pub(crate) struct Slot {
    pub(crate) id: String,
    pub(crate) view: watch::Sender<View>,
    /// The limiters, once there are any: at most one of a kind, since two would each use all.
    pub(crate) rate: OnceLock<Mutex<RateLimiter>>,
    pub(crate) concurrency: OnceLock<Mutex<ConcurrencyLimiter>>,
    pub(crate) demand: Option<Mutex<Demand>>,
    /// The allowance has changed, a permit came back, or the resource was closed.
    pub(crate) changed: Notify,
    /// Who acquires waits for those before it.
    pub(crate) queue: tokio::sync::Mutex<()>,
    /// How many wait for a limiter, and how much for.
    pub(crate) waiting: Mutex<Waiting>,
}

/// Who waits for a limiter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) count: u64,
    pub(crate) cost: f64,
}

impl Slot {
    pub(crate) fn new(id: &str, wants: f64, adaptive: Option<AdaptiveWants>, now: Time) -> Self {
        let view = View {
            allowance: Allowance::NONE,
            trouble: None,
            wants,
            answered: None,
            closed: false,
        };
        Self {
            id: id.to_owned(),
            view: watch::Sender::new(view),
            rate: OnceLock::new(),
            concurrency: OnceLock::new(),
            demand: adaptive.map(|config| Mutex::new(Demand::new(config, now))),
            changed: Notify::new(),
            queue: tokio::sync::Mutex::new(()),
            waiting: Mutex::new(Waiting::default()),
        }
    }

    /// Tells handles and limiters what the state of the resource is, if that is news. Returns what
    /// may be used now, if that has changed.
    pub(crate) fn publish(&self, resource: &ResourceState, now: Time) -> Option<Allowance> {
        let before = self.view.borrow().clone();
        let view = View {
            allowance: resource.allowance(now),
            trouble: resource.trouble().cloned(),
            wants: resource.wants(),
            answered: resource.answered(),
            closed: before.closed,
        };
        if view == before {
            return None;
        }
        let allowance = view.allowance;
        let moved = allowance != before.allowance;
        let changed = (allowance.capacity, allowance.source)
            != (before.allowance.capacity, before.allowance.source);
        self.view.send_replace(view);
        if moved {
            if let Some(limiter) = self.rate.get() {
                lock(limiter).handle_allowance(allowance, now);
            }
            if let Some(limiter) = self.concurrency.get() {
                lock(limiter).handle_allowance(allowance);
            }
            self.changed.notify_waiters();
        }
        changed.then_some(allowance)
    }

    pub(crate) fn close(&self) {
        self.view.send_modify(|view| {
            view.closed = true;
            view.allowance = Allowance::NONE;
        });
        self.changed.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.view.borrow().closed
    }

    /// What is in use whether or not a lease allows it.
    pub(crate) fn in_flight(&self) -> f64 {
        self.concurrency
            .get()
            .map_or(0.0, |limiter| lock(limiter).in_flight() as f64)
    }

    /// If demand is measured: what to ask for, if that is worth a request, and how often to look.
    pub(crate) fn measured_wants(&self, now: Time) -> Option<(Option<f64>, Duration)> {
        let demand = self.demand.as_ref()?;
        let waiting = lock(&self.waiting).cost;
        let mut demand = lock(demand);
        let wants = if self.concurrency.get().is_some() {
            demand.at_once(self.in_flight() + waiting, now);
            demand.gauge(now)
        } else {
            demand.rate(now)
        };
        let asked = self.view.borrow().wants;
        Some((
            Demand::is_worth_asking(wants, asked).then_some(wants),
            demand.interval(),
        ))
    }
}

/// Nothing panics while holding one of these; should something, what is in it is still right.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
