//! What one open resource is to its handles and limiters.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::capacity::Allowance;
use crate::clock::Clock;
use crate::gate::OpenGate;
use crate::limiter::demand::{AdaptiveWants, DemandMeter};
use crate::limiter::rate::LeasedRate;
use crate::measured::Measured;
use crate::queue::Queue;
use crate::state::{Lease, LimitedBy, ResourceState, Trouble};
use crate::time::Time;

/// When to come back at the earliest for an answer that is on its way.
const ANSWER_MIN: Duration = Duration::from_millis(10);

/// What handles see of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) allowance: Allowance,
    /// The lease, if it was valid when this was published.
    pub(crate) lease: Option<Lease>,
    pub(crate) limited_by: Option<LimitedBy>,
    pub(crate) learning_until: Option<Time>,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) wants: f64,
    /// The wants of the newest request that was answered.
    pub(crate) answered: Option<f64>,
    /// When the client asks next, or did if the answer is on its way.
    pub(crate) next_answer: Option<Time>,
    pub(crate) closed: bool,
}

impl View {
    /// Of a resource that was just opened.
    fn new(wants: f64) -> Self {
        Self {
            allowance: Allowance::NONE,
            lease: None,
            limited_by: None,
            learning_until: None,
            trouble: None,
            wants,
            answered: None,
            next_answer: None,
            closed: false,
        }
    }

    /// What is seen of it now.
    fn of(resource: &ResourceState, next_answer: Option<Time>, closed: bool, now: Time) -> Self {
        Self {
            allowance: resource.allowance(now),
            lease: resource.lease(now),
            limited_by: resource.limited_by(now),
            learning_until: resource.learning_until(now),
            trouble: resource.trouble().cloned(),
            wants: resource.wants(),
            answered: resource.answered(),
            next_answer,
            closed,
        }
    }

    /// The lease, if it is valid now.
    pub(crate) fn lease(&self, now: Time) -> Option<Lease> {
        self.lease.filter(|lease| lease.expires_at > now)
    }

    /// If there is no lease, and will be none before somebody changes something: why.
    pub(crate) fn hopeless(&self, now: Time) -> Option<&Trouble> {
        let is_hopeless = |trouble: &&Trouble| {
            matches!(
                trouble,
                Trouble::UnknownResource(_) | Trouble::AnotherProcess { lasts: true, .. }
            )
        };
        let trouble = self.trouble.as_ref().filter(is_hopeless)?;
        self.lease(now).is_none().then_some(trouble)
    }

    /// How long until the next answer is due, by which what may be used may change.
    pub(crate) fn answer_in(&self, now: Time) -> Option<Duration> {
        self.next_answer.map(|at| at.since(now).max(ANSWER_MIN))
    }

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
    pub(crate) rate: OnceLock<LeasedRate>,
    pub(crate) concurrency: OnceLock<OpenGate>,
    pub(crate) clock: Clock,
    pub(crate) measured: Option<Measured>,
    /// Somebody gave hooks, which limiters are to call.
    pub(crate) is_observed: bool,
    /// The allowance or the trouble has changed, or the resource was closed.
    pub(crate) changed: Notify,
    /// Who waits for the rate limiter. Those who wait for permits are not in the way: they wait at the gate.
    pub(crate) rate_queue: Queue,
}

impl Slot {
    pub(crate) fn new(
        id: &str,
        wants: f64,
        adaptive: Option<AdaptiveWants>,
        clock: Clock,
        is_observed: bool,
    ) -> Self {
        let now = clock.now();
        Self {
            id: id.to_owned(),
            view: watch::Sender::new(View::new(wants)),
            rate: OnceLock::new(),
            concurrency: OnceLock::new(),
            measured: adaptive.map(|config| Measured::new(config, now)),
            clock,
            is_observed,
            changed: Notify::new(),
            rate_queue: Queue::default(),
        }
    }

    /// Tells handles and limiters what the state of the resource is, and when the next answer is due,
    /// if that is news. Returns what may be used now, if that has changed.
    pub(crate) fn publish(
        &self,
        resource: &ResourceState,
        next_answer: Option<Time>,
        now: Time,
    ) -> Option<Allowance> {
        let before = self.view.borrow().clone();
        // What is closed is fed nothing any more.
        if before.closed {
            return None;
        }
        let view = View::of(resource, next_answer, before.closed, now);
        if view == before {
            return None;
        }
        let allowance = view.allowance;
        let moved = allowance != before.allowance;
        let troubled = view.trouble != before.trouble;
        let changed = (allowance.capacity, allowance.source)
            != (before.allowance.capacity, before.allowance.source);
        self.view.send_modify(|seen| {
            *seen = view;
            if moved {
                self.feed(seen, now);
            }
        });
        if moved || troubled {
            self.notify();
        }
        changed.then_some(allowance)
    }

    pub(crate) fn close(&self) {
        self.view.send_modify(|view| {
            view.closed = true;
            view.allowance = Allowance::NONE;
            view.lease = None;
            // Those who do not look whether it is closed find nothing.
            self.feed(view, self.clock.now());
        });
        self.notify();
    }

    /// Has all who wait look again.
    fn notify(&self) {
        self.changed.notify_waiters();
        if let Some(gate) = self.concurrency.get() {
            gate.changed.notify_waiters();
        }
    }

    /// Hands limiters what is seen. To be called with the view, so that no older one is handed after a newer one.
    pub(crate) fn feed(&self, seen: &View, now: Time) {
        if let Some(limiter) = self.rate.get() {
            limiter.handle_allowance(seen.allowance, now);
        }
        if let Some(gate) = self.concurrency.get() {
            gate.limiter.handle_allowance(seen.allowance);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.view.borrow().closed
    }

    /// What is in use whether or not a lease allows it.
    pub(crate) fn in_flight(&self) -> f64 {
        self.concurrency
            .get()
            .map_or(0.0, |gate| gate.limiter.in_flight() as f64)
    }

    /// If demand is measured: what to ask for, if that is worth a request, and how often to look.
    pub(crate) fn measured_wants(&self, now: Time) -> Option<(Option<f64>, Duration)> {
        let measured = self.measured.as_ref()?;
        let wants = if let Some(gate) = self.concurrency.get() {
            let waiting = gate.queue.waiting().cost;
            measured.gauge(self.in_flight() + waiting, now)
        } else {
            measured.rate(now)
        };
        let asked = self.view.borrow().wants;
        Some((
            DemandMeter::is_worth_asking(wants, asked).then_some(wants),
            measured.interval(),
        ))
    }
}

/// Nothing panics while holding one of these; should something, what is in it is still right.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
