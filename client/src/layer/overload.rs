//! Overload control of a service: it admits the most critical requests that it can serve in time.
//!
//! An [`Overload`] is a [`Throttler`] with a clock, whose requests wait as futures. A
//! [`LimitLayer`](crate::layer::LimitLayer) puts it in front of a service. For work that comes in no request, call
//! [`Overload::acquire`].
//!
//! A request is critical by its header `x-doorward-criticality`. A [`CriticalityLayer`] around a client passes that on
//! to the calls on behalf of the request.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use doorward_limits::Moment;
use foldhash::fast::{FixedState, RandomState};
use tokio::sync::oneshot;

use crate::layer::clock;
use crate::layer::overload::meters::{Meters, count_one};
use crate::lock::lock;
use crate::overload::{Admission, Ask, Config, Criticality, Offer, Place, Reason, Throttler};
use crate::{Refusal, Why};

mod call;
mod in_flight;
mod meters;
mod propagate;

pub use call::{Cost, OverloadCall};
pub use in_flight::InFlight;
pub use propagate::{CriticalityLayer, CriticalityService, criticality, with_criticality};

/// Hash of users, the same in all processes: a page that needs several of them gets all answers or none.
const USERS: FixedState = FixedState::with_seed(0);

/// Time between two warnings of shadow mode.
const WARNING_NANOS: i64 = 60_000_000_000;

type Waiter = oneshot::Sender<Result<Admission, Refusal>>;

/// Overload control of one service. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Overload {
    shared: Arc<Shared>,
}

struct Shared {
    throttler: Mutex<Throttler<Waiter>>,
    /// Hash of names of operations, whose seed no caller knows.
    operations: RandomState,
    meters: Meters,
    /// When shadow mode last told of a refusal, in nanoseconds.
    warned_at: AtomicI64,
    /// Whether it was told that requests were dropped at the limit.
    has_warned: AtomicBool,
}

/// An admitted request. Dropped without [`Permit::settle`], it frees its place, and counts only if it was slower than
/// usual. So move it into the work: into a blocking task, or into the stream of an answer.
#[must_use = "the request uses concurrency until its permit is dropped"]
pub struct Permit {
    shared: Arc<Shared>,
    admission: Option<Admission>,
}

/// A waiting request, which leaves the queue when it is dropped.
struct Waiting {
    shared: Arc<Shared>,
    place: Place,
    decision: oneshot::Receiver<Result<Admission, Refusal>>,
    is_decided: bool,
}

debug_by_name!(Overload, Permit);

impl Overload {
    /// Creates the control of a service with this name, which is a label of its metrics.
    pub fn new(service: &str) -> Self {
        Self::with_config(service, Config::default())
    }

    /// Creates it with other settings.
    pub fn with_config(service: &str, config: Config) -> Self {
        let shared = Shared {
            throttler: Mutex::new(Throttler::new(config)),
            operations: RandomState::default(),
            meters: Meters::new(service),
            warned_at: AtomicI64::new(0),
            has_warned: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Waits until a request may be served. Safe to cancel.
    ///
    /// # Errors
    ///
    /// If the service cannot serve it in time.
    pub async fn acquire(&self, call: &OverloadCall<'_>) -> Result<Permit, Refusal> {
        self.admit(&self.ask(call)).await
    }

    fn ask(&self, call: &OverloadCall<'_>) -> Ask {
        Ask {
            operation: self.shared.operations.hash_one(call.operation),
            criticality: call.criticality,
            user: call.user.map(|user| USERS.hash_one(user)),
            deadline: call.timeout.map(|timeout| clock::moment().after(timeout)),
        }
    }

    pub(crate) async fn admit(&self, ask: &Ask) -> Result<Permit, Refusal> {
        let shared = &self.shared;
        let now = clock::moment();
        let mut receiver = None;
        let waiter = || {
            let (sender, decision) = oneshot::channel();
            receiver = Some(decision);
            sender
        };
        let offer = shared.with(|throttler| throttler.offer(ask, waiter, now));
        let decision = match (offer, receiver) {
            (Offer::Admitted(admission), _) => Ok(admission),
            (Offer::Refused(refusal), _) => Err(refusal),
            (Offer::Queued(place), Some(decision)) => {
                let waiting = Waiting {
                    shared: shared.clone(),
                    place,
                    decision,
                    is_decided: false,
                };
                let decision = waiting.decision(now).await;
                if decision.is_ok() {
                    count_one(&shared.meters.waited, ask.criticality);
                }
                decision
            }
            (Offer::Queued(_), None) => unreachable!("a request that waits has a waiter"),
        };
        shared.meters.count(ask.criticality, &decision);
        let admission = decision?;
        if let Some(reason) = admission.shadow()
            && shared.may_warn(now)
        {
            tracing::warn!(?reason, "shadow mode: this request would be refused");
        }
        Ok(Permit {
            shared: shared.clone(),
            admission: Some(admission),
        })
    }

    /// Counts a request that the service's lease does not allow.
    pub(crate) fn count_no_lease(&self, criticality: Criticality) {
        count_one(&self.shared.meters.no_lease, criticality);
    }

    /// Returns the predicted cost of an operation, in units of the service.
    pub fn predicted_cost(&self, operation: &str) -> f64 {
        let operation = self.shared.operations.hash_one(operation);
        self.shared.throttler().predicted_cost(operation)
    }

    /// Returns the largest number of requests that are served at once.
    pub fn limit(&self) -> u32 {
        self.shared.throttler().limit()
    }

    /// Returns the number of requests that are served now.
    pub fn in_flight(&self) -> u32 {
        self.shared.throttler().in_flight()
    }
}

impl Shared {
    /// Locks the throttler. It never panics, and even then, its next decisions would be valid.
    fn throttler(&self) -> MutexGuard<'_, Throttler<Waiter>> {
        lock(&self.throttler)
    }

    /// Returns whether a minute has passed since the last warning.
    fn may_warn(&self, now: Moment) -> bool {
        let (nanos, last) = (now.nanos(), self.warned_at.load(Ordering::Relaxed));
        let is_due = last == 0 || nanos - last >= WARNING_NANOS;
        if is_due {
            self.warned_at.store(nanos, Ordering::Relaxed);
        }
        is_due
    }

    /// Calls the throttler, and wakes the requests that it decided.
    fn with<R>(&self, call: impl FnOnce(&mut Throttler<Waiter>) -> R) -> R {
        let mut throttler = self.throttler();
        let answer = call(&mut throttler);
        while let Some((waiter, decision)) = throttler.poll_decided() {
            // The request has gone.
            if let Err(Ok(admission)) = waiter.send(decision) {
                throttler.cancel(admission, clock::moment());
            }
        }
        self.meters.show(&throttler);
        answer
    }
}

impl Permit {
    /// Tells once that a request is dropped before its answer at the limit: its work may go on uncounted.
    fn warn_of_drop(&self) {
        let shared = &self.shared;
        let is_full = {
            let throttler = shared.throttler();
            throttler.in_flight() >= throttler.limit()
        };
        if is_full && !shared.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a caller gave up while the service is at its limit. If work goes on after that, such as in \
                 spawn_blocking, move the extension InFlight into it: otherwise, more is in flight than the limit"
            );
        }
    }

    /// Ends the request, and returns its cost. `cost`: what it cost, in any unit of the service, at most 10⁹; none: the
    /// time since it was admitted, in milliseconds.
    pub fn settle(mut self, cost: Option<f64>) -> f64 {
        let Some(admission) = self.admission.take() else {
            return 0.0;
        };
        let now = clock::moment();
        let predicted = admission.predicted_cost();
        let end = |throttler: &mut Throttler<Waiter>| throttler.handle_end(admission, cost, now);
        let used = self.shared.with(end);
        self.shared.meters.costs(predicted, used);
        used
    }

    /// Returns the predicted cost, in units of the service.
    pub fn predicted_cost(&self) -> f64 {
        let admission = self.admission.as_ref();
        admission.map_or(0.0, Admission::predicted_cost)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            let now = clock::moment();
            self.shared
                .with(|throttler| throttler.cancel(admission, now));
        }
    }
}

impl Waiting {
    /// Waits for the decision, which comes at the latest when the request gives up.
    async fn decision(mut self, now: Moment) -> Result<Admission, Refusal> {
        let longest = Duration::from_nanos(self.place.leaves_at().nanos_since(now));
        let decided = tokio::select! {
            biased;
            decided = &mut self.decision => Some(decided),
            () = tokio::time::sleep(longest) => None,
        };
        let decided = match decided {
            Some(decided) => decided,
            None => {
                let now = self.place.leaves_at().max(clock::moment());
                self.shared.with(|throttler| throttler.handle_timeout(now));
                (&mut self.decision).await
            }
        };
        self.is_decided = true;
        // The throttler drops no waiter without a decision, and lives as long as this.
        let late = Why::Overloaded(Reason::TooLate);
        decided.unwrap_or(Err(Refusal::new(late, Some(Duration::from_secs(1)))))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_decided {
            return;
        }
        let now = clock::moment();
        let (place, decision) = (self.place, &mut self.decision);
        // Decisions are sent under the lock of the throttler, so none is lost between the look and the leave.
        self.shared.with(|throttler| match decision.try_recv() {
            Ok(Ok(admission)) => throttler.cancel(admission, now),
            _ => throttler.leave(place),
        });
    }
}
