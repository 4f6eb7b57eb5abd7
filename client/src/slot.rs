//! Shared state of an open resource, for its handles and limiters.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use doorward_limits::Units;
use tokio::sync::{Notify, watch};

use crate::capacity::{Allowance, Source};
use crate::clock::Clock;
use crate::gate::OpenGate;
use crate::limiter::budget::BudgetHolder;
use crate::limiter::demand::{AdaptiveWants, DemandMeter};
use crate::limiter::rate::LeasedRate;
use crate::lock::lock;
use crate::measured::Measured;
use crate::queue::Queue;
use crate::state::{BudgetAnswer, Lease, LimitedBy, RefusalKind, ResourceState, Trouble};
use crate::time::Time;

/// Wants of a resource whose demand is measured, at the start, and of callers that wait in a shortage.
pub(crate) const START: f64 = 10.0;

/// Largest ratio of the wants of callers that wait to what is granted. With it, the wants of a newcomer reach its share
/// within two refreshes of the others, and those of a program in a long shortage stay bounded.
const GRANTED_TIMES: f64 = 8.0;

/// Shortest time until an answer that is on its way.
const ANSWER_MIN: Duration = Duration::from_millis(10);

/// State of a resource that handles see.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) allowance: Allowance,
    /// Lease, if it was valid at the time of publication.
    pub(crate) lease: Option<Lease>,
    pub(crate) limited_by: Option<LimitedBy>,
    pub(crate) learning_until: Option<Time>,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) wants: f64,
    /// Wants of the newest answered request.
    pub(crate) answered: Option<f64>,
    /// Time of the client's next request, or of the one under way.
    pub(crate) next_answer: Option<Time>,
    pub(crate) closed: bool,
    /// Newest answer about a budget.
    pub(crate) budget: Option<BudgetAnswer>,
}

impl View {
    /// Returns the present view of a resource.
    fn of(resource: &ResourceState, next_answer: Option<Time>, now: Time) -> Self {
        Self {
            allowance: resource.allowance(now),
            lease: resource.lease(now),
            limited_by: resource.limited_by(now),
            learning_until: resource.learning_until(now),
            trouble: resource.trouble().cloned(),
            wants: resource.wants(),
            answered: resource.answered(),
            next_answer,
            closed: false,
            budget: resource.budget(),
        }
    }

    /// Returns the lease, if it is valid now.
    pub(crate) fn lease(&self, now: Time) -> Option<Lease> {
        self.lease.filter(|lease| lease.expires_at > now)
    }

    /// Returns whether the lease is 0 because the server, or one above it, is in learning mode.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        let is_zero = self.lease(now).is_some_and(|lease| lease.capacity <= 0.0);
        is_zero && self.limited_by.is_some_and(LimitedBy::is_learning)
    }

    /// If there is no lease, and an operator or user must act before there can be one: returns the problem.
    pub(crate) fn permanent_failure(&self, now: Time) -> Option<&Trouble> {
        let is_permanent = |trouble: &&Trouble| trouble.kind == RefusalKind::Unknown;
        let trouble = self.trouble.as_ref().filter(is_permanent)?;
        self.lease(now).is_none().then_some(trouble)
    }

    /// Returns the time until the next answer is due, which may change the capacity.
    pub(crate) fn answer_in(&self, now: Time) -> Option<Duration> {
        self.next_answer.map(|at| at.since(now).max(ANSWER_MIN))
    }

    /// Returns whether the server refused the resource, and waiting would not help.
    pub(crate) fn is_refused(&self) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|it| it.kind != RefusalKind::NotReady)
    }

    /// Returns whether a lease answered a request with these wants.
    pub(crate) fn is_answer_to(&self, wants: f64) -> bool {
        self.answered == Some(wants) && self.trouble.is_none()
    }
}

/// An open resource.
pub(crate) struct Slot {
    pub(crate) id: String,
    pub(crate) view: watch::Sender<View>,
    /// The limiters, if any: at most one of a kind, because two would each use the whole lease.
    pub(crate) rate: OnceLock<LeasedRate>,
    pub(crate) concurrency: OnceLock<OpenGate>,
    /// Accounts of a budget.
    pub(crate) budget: Option<Mutex<BudgetHolder>>,
    pub(crate) clock: Clock,
    pub(crate) measured: Option<Measured>,
    /// Whether the program gave hooks, for limiters to call.
    pub(crate) is_observed: bool,
    /// Notification that the allowance or the problem has changed, or that the resource was closed.
    pub(crate) changed: Notify,
    /// Callers that wait for the rate limiter. Callers that wait for permits wait at the gate.
    pub(crate) rate_queue: Queue,
}

impl Slot {
    pub(crate) fn new(
        id: &str,
        wants: f64,
        adaptive: Option<AdaptiveWants>,
        budget: Option<BudgetHolder>,
        clock: Clock,
        is_observed: bool,
    ) -> Self {
        let now = clock.now();
        let view = View::of(&ResourceState::default(), None, now);
        Self {
            id: id.to_owned(),
            view: watch::Sender::new(View { wants, ..view }),
            rate: OnceLock::new(),
            concurrency: OnceLock::new(),
            budget: budget.map(Mutex::new),
            measured: adaptive.map(|config| Measured::new(config, wants, now)),
            clock,
            is_observed,
            changed: Notify::new(),
            rate_queue: Queue::default(),
        }
    }

    /// Publishes the state of the resource and the time of the next answer to handles and limiters, if they changed.
    /// Returns the former view and the new one, if they differ.
    pub(crate) fn publish(
        &self,
        resource: &ResourceState,
        next_answer: Option<Time>,
        now: Time,
    ) -> Option<(View, View)> {
        let before = self.view.borrow().clone();
        // A closed resource publishes nothing.
        if before.closed {
            return None;
        }
        let after = View::of(resource, next_answer, now);
        if after == before {
            return None;
        }
        let moved = after.allowance != before.allowance || after.budget != before.budget;
        self.view.send_modify(|seen| {
            *seen = after.clone();
            if moved {
                self.feed(seen, now);
            }
        });
        if moved || after.trouble != before.trouble {
            self.notify();
        }
        Some((before, after))
    }

    pub(crate) fn close(&self) {
        self.view.send_modify(|view| {
            view.closed = true;
            view.allowance = Allowance::NONE;
            view.lease = None;
            // Limiters that do not check whether it is closed have nothing to give.
            self.feed(view, self.clock.now());
        });
        self.notify();
    }

    /// Wakes all waiting callers.
    fn notify(&self) {
        self.changed.notify_waiters();
        if let Some(gate) = self.concurrency.get() {
            gate.changed.notify_waiters();
        }
    }

    /// Feeds the limiters. The caller must hold the view, so that an older view never follows a newer one.
    pub(crate) fn feed(&self, seen: &View, now: Time) {
        if let Some(limiter) = self.rate.get() {
            let waiting = Units::at_least(self.rate_queue.waiting().first);
            let waiting = waiting.unwrap_or(Units::MAX);
            limiter.handle_while_waiting(seen.allowance, waiting, now);
        }
        if let Some(gate) = self.concurrency.get() {
            gate.limiter.handle_allowance(seen.allowance);
        }
        if let (Some(budget), Some(answer)) = (&self.budget, &seen.budget) {
            lock(budget).answer(answer);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.view.borrow().closed
    }

    /// Returns the number of permits that are out, whether or not a lease allows them.
    pub(crate) fn in_flight(&self) -> f64 {
        self.concurrency
            .get()
            .map_or(0.0, |gate| gate.limiter.in_flight() as f64)
    }

    /// Returns whether the next look at the demand is due.
    pub(crate) fn is_look_due(&self, now: Time) -> bool {
        let measured = self.measured.as_ref();
        measured.is_some_and(|measured| measured.next_look() <= now)
    }

    /// If demand is measured: returns the wants, if they are worth a request, and the time between two looks.
    pub(crate) fn measured_wants(
        &self,
        is_due: bool,
        now: Time,
    ) -> Option<(Option<f64>, Duration)> {
        let measured = self.measured.as_ref().filter(|it| !it.has_ended())?;
        if !is_due {
            return Some((None, measured.next_look().since(now)));
        }
        let view = self.view.borrow();
        let (asked, allowance) = (view.wants, view.allowance);
        drop(view);
        let gate = self.concurrency.get();
        let queue = gate.map_or(&self.rate_queue, |gate| &gate.queue);
        let is_waiting = !queue.is_empty();
        let wants = if let Some(gate) = self.concurrency.get() {
            let waiting = gate.queue.waiting().cost;
            measured.gauge(self.in_flight() + waiting, now)
        } else {
            // Callers that wait could use more, and how much is unknown. By mode, a program uses what it wants, so its
            // wants do not grow by that.
            let granted = allowance.at(now).get();
            let more = (asked * 2.0).min((granted * GRANTED_TIMES).max(START));
            let is_leased = allowance.source == Source::Lease;
            measured.rate((is_waiting && is_leased).then_some(more), now)
        };
        Some((
            DemandMeter::is_worth_asking(wants, asked).then_some(wants),
            measured.look_again(is_waiting, now),
        ))
    }
}
