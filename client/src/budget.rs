//! The limiter of a budget in a program's interface: an estimate before a call, and what the call used after it.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use doorward_limits::{Moment, Units};

use crate::handle::Handle;
use crate::limiter::budget::{BudgetHolder, Short};
use crate::lock::lock;
use crate::rate_permit::{Payer, RatePermit};
use crate::refusal::{Refusal, Why};
use crate::time::Time;

/// Longest wait for an answer that is on its way, before a call looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A limiter of an amount for each window of time, such as tokens a day. Cheap to clone; clones share one account.
///
/// A permit [settles](RatePermit::settle) what its call used, or [refunds](RatePermit::refund) everything. Dropped, it
/// counts as estimated, since the call may have been made. Use above the estimate counts at once. Amounts are
/// whole numbers: a part counts as one.
///
/// ```
/// # use doorward::Client;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("gateway-1");
/// # server.set_capacity("tokens/acme", 100_000.0);
/// let tokens = client.budget("tokens/acme")?;
/// let permit = tokens.acquire(1_200).await?;    // an estimate
/// let used = 980;                               // as the answer of the call says
/// permit.settle(used);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct BudgetLimiter {
    handle: Arc<Handle>,
}

debug_by_name!(BudgetLimiter);

impl BudgetLimiter {
    /// None: the resource is open as another kind of limit.
    pub(crate) fn new(handle: Arc<Handle>) -> Option<Self> {
        handle.slot.budget.is_some().then_some(Self { handle })
    }

    /// Reserves `cost`. Waits for an answer of a server if what it has is too little, but not for the next window.
    /// Callers are served in order of arrival. Safe to cancel: a dropped wait has reserved nothing.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the time until there may be more, if a server says that nothing more is there for such a call;
    /// or if the client is closed or no template matches the budget.
    pub async fn acquire(&self, cost: impl Into<Units>) -> Result<RatePermit<'_>, Refusal> {
        let units = cost.into();
        let slot = &*self.handle.slot;
        let waiter = slot.rate_queue.join(units.as_f64());
        let attempt = |_is_first| match self.attempt(units) {
            Err(refusal) if refusal.passes() => {
                self.handle.shared.before_refusal();
                let now = slot.clock.now();
                let wait = refusal
                    .retry_after
                    .map_or(LOOK_AGAIN, |wait| wait.min(LOOK_AGAIN));
                Err(Some(now + wait))
            }
            answer => Ok(answer),
        };
        let answer = waiter.serve(&slot.changed, &slot.clock, attempt).await;
        self.note(answer)
    }

    /// Tells a refusal to the program's metrics.
    fn note<T>(&self, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        let hooks = &self.handle.shared.hooks;
        if let Err(refusal) = &answer
            && self.handle.slot.is_observed
        {
            hooks.limited(self.resource_id());
            if refusal.passes() {
                hooks.refused_early(self.resource_id());
            }
        }
        answer
    }

    /// Reserves `cost` if it may be used now.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the time until there may be more.
    pub fn try_acquire(&self, cost: impl Into<Units>) -> Result<RatePermit<'_>, Refusal> {
        let answer = self.attempt(cost.into());
        if answer.is_err() {
            self.handle.shared.before_refusal();
        }
        self.note(answer)
    }

    /// Returns what calls may still use in this window without an answer of a server.
    pub fn left(&self) -> u64 {
        let now = self.handle.slot.clock.now();
        self.holder().map_or(0, |holder| holder.left(now))
    }

    /// Returns what remains of the window. None: it has no end, or no server has answered yet.
    pub fn window_ends_in(&self) -> Option<Duration> {
        let ends_at = self.holder()?.ends_at()?;
        Some(ends_at.since(self.handle.slot.clock.now()))
    }

    /// Returns whether the budget's soft limit is reached: most of it is used.
    pub fn is_soft(&self) -> bool {
        self.holder().is_some_and(|holder| holder.is_soft())
    }

    /// Returns the id of its resource.
    pub(crate) fn resource_id(&self) -> &str {
        &self.handle.slot.id
    }

    fn holder(&self) -> Option<MutexGuard<'_, BudgetHolder>> {
        self.handle.slot.budget.as_ref().map(lock)
    }

    fn attempt(&self, cost: Units) -> Result<RatePermit<'_>, Refusal> {
        let slot = &*self.handle.slot;
        if slot.is_closed() {
            return Err(Refusal::CLOSED);
        }
        let now = slot.clock.now();
        let mut holder = self.holder().ok_or(Refusal::CLOSED)?;
        let reserved = holder.reserve(whole(cost), now);
        let (turn, ends_at) = (holder.turn(), holder.ends_at());
        let asks_early = holder.asks_early(now);
        drop(holder);
        if asks_early {
            self.ask_early();
        }
        let short = match reserved {
            Ok(()) => {
                if slot.is_observed {
                    let hooks = &self.handle.shared.hooks;
                    hooks.admitted(self.resource_id(), cost.as_f64());
                }
                return Ok(RatePermit::of(self, cost, of_turn(turn)));
            }
            Err(short) => short,
        };
        let answer_in = slot.view.borrow().answer_in(now);
        let usual = match short {
            Short::Exhausted => {
                let ends_in = ends_at.map(|ends| ends.since(now));
                Refusal::new(Why::Exhausted, ends_in.into_iter().chain(answer_in).min())
            }
            Short::Ceiling | Short::Turning | Short::NoCeiling => Refusal::over(answer_in),
        };
        Err(self.handle.refusal(usual, f64::MIN_POSITIVE, now))
    }

    /// Asks before the next refresh.
    fn ask_early(&self) {
        let shared = &self.handle.shared;
        shared.book().state.ask_anew(self.resource_id());
        shared.wake();
    }
}

impl Payer for BudgetLimiter {
    fn settle(&self, turn: Time, estimate: Units, used: Units) {
        let turn = u64::try_from(turn.since_origin().as_nanos()).unwrap_or(0);
        if let Some(mut holder) = self.holder() {
            holder.settle(turn, whole(estimate), whole(used));
        }
        if used < estimate && !self.handle.slot.rate_queue.is_empty() {
            self.handle.slot.changed.notify_waiters();
        }
    }

    fn take(&self, more: Units) -> Result<Option<Moment>, Refusal> {
        self.try_acquire(more).map(|permit| Some(permit.taken_at()))
    }

    fn count(&self, more: Units) -> Option<Moment> {
        let mut holder = self.holder()?;
        let turn = holder.turn();
        holder.settle(turn, 0, whole(more));
        Some(of_turn(turn))
    }

    fn shared(&self) -> Arc<dyn Payer> {
        Arc::new(self.clone())
    }
}

/// Returns the window that an amount is settled in, as a time.
fn of_turn(turn: u64) -> Moment {
    Moment::ORIGIN.after(Duration::from_nanos(turn))
}

/// Returns the amount as a whole number. A part counts as one.
fn whole(amount: Units) -> u64 {
    amount.as_f64().ceil() as u64
}
