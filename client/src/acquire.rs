//! Limiters of any kind in one interface, and several of them as one.

use std::future::Future;

use doorward_limits::Units;

use crate::budget::BudgetLimiter;
use crate::concurrency_limiter::{ConcurrencyLimiter, Permit};
use crate::keyed::Keyed;
use crate::rate_limiter::RateLimiter;
use crate::rate_permit::RatePermit;
use crate::refusal::Refusal;

/// A limiter of any kind. Its [`Refusal`]s name the resource that refused.
///
/// Several make [one](And), such as the requests and the tokens of a call to a model:
///
/// ```
/// use doorward::Acquire as _;
/// # use doorward::{Client, limiter::rate::Burst};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("gateway-1");
/// # server.set_capacity("llm/calls", 8.0);
/// # server.set_capacity("llm/tokens/acme", 1_000.0);
/// let calls = client.resource("llm/calls").open()?.concurrency_limiter();
/// let limiter = calls.and(client.keyed("llm/tokens/{}").open()?);
///
/// let (place, tokens) = limiter.acquire((1, ("acme", 120))).await?;    // an estimate
/// // The call.
/// tokens.settle(97);
/// drop(place);
/// # Ok(()) }
/// ```
pub trait Acquire<C> {
    /// The acquired amount or places. A permit can be moved into a task.
    type Permit: Refund + Send;

    /// Waits until a cost may be used, and uses it. Safe to cancel.
    ///
    /// # Errors
    ///
    /// If waiting would not help, as for a closed client.
    fn acquire(&self, cost: C) -> impl Future<Output = Result<Self::Permit, Refusal>> + Send;

    /// Uses a cost if it may be used now.
    ///
    /// # Errors
    ///
    /// If not.
    fn try_acquire(&self, cost: C) -> Result<Self::Permit, Refusal>;
}

/// A permit that may be given back.
pub trait Refund {
    /// Gives the permit back: the call did nothing.
    fn refund(self);
}

/// Two limiters as one, for a cost of each: a call is admitted by both, or uses nothing of either. It asks them in their
/// order, and has what the first one gave while it waits for the second. So all calls should have the same order, with
/// numbers in flight first. In metrics and in the measured demand, the first one counts also what it gets back.
#[derive(Clone, Debug)]
pub struct And<A, B>(A, B);

/// Adds `and` to limiters.
macro_rules! compose {
    ($($(@$generic:ident)* $type:ty),+) => {$(
        impl<$($generic),*> $type {
            /// Makes one limiter of this and another one: see [`And`].
            pub fn and<Other>(self, other: Other) -> And<Self, Other> {
                And(self, other)
            }
        }
    )+};
}

compose!(RateLimiter, BudgetLimiter, ConcurrencyLimiter, Keyed, @A @B And<A, B>);

/// A permit that is given back unless it is kept.
struct RefundOnDrop<P: Refund>(Option<P>);

impl<P: Refund> Drop for RefundOnDrop<P> {
    fn drop(&mut self) {
        if let Some(permit) = self.0.take() {
            permit.refund();
        }
    }
}

impl<A, B, C, D> Acquire<(C, D)> for And<A, B>
where
    A: Acquire<C> + Sync,
    B: Acquire<D> + Sync,
    C: Send,
    D: Send,
{
    type Permit = (A::Permit, B::Permit);

    async fn acquire(&self, (first, second): (C, D)) -> Result<Self::Permit, Refusal> {
        let mut first = RefundOnDrop(Some(self.0.acquire(first).await?));
        let second = self.1.acquire(second).await?;
        // Nothing else has taken it.
        first.0.take().zip(Some(second)).ok_or(Refusal::CLOSED)
    }

    fn try_acquire(&self, (first, second): (C, D)) -> Result<Self::Permit, Refusal> {
        let first = self.0.try_acquire(first)?;
        match self.1.try_acquire(second) {
            Ok(second) => Ok((first, second)),
            Err(refusal) => {
                first.refund();
                Err(refusal)
            }
        }
    }
}

impl<A: Refund, B: Refund> Refund for (A, B) {
    fn refund(self) {
        self.0.refund();
        self.1.refund();
    }
}

/// Limiters of rates and budgets, whose permits are settled.
macro_rules! acquire_amounts {
    ($($type:ty),+) => {$(
        impl<C: Into<Units> + Send> Acquire<C> for $type {
            type Permit = RatePermit<'static>;

            async fn acquire(&self, cost: C) -> Result<Self::Permit, Refusal> {
                let permit = Self::acquire(self, cost).await;
                permit
                    .map(RatePermit::into_owned)
                    .map_err(|it| it.of(self.resource_id()))
            }

            fn try_acquire(&self, cost: C) -> Result<Self::Permit, Refusal> {
                let permit = Self::try_acquire(self, cost);
                permit
                    .map(RatePermit::into_owned)
                    .map_err(|it| it.of(self.resource_id()))
            }
        }
    )+};
}

acquire_amounts!(RateLimiter, BudgetLimiter);

impl<C: Into<Units> + Send> Acquire<C> for ConcurrencyLimiter {
    type Permit = Permit;

    async fn acquire(&self, cost: C) -> Result<Self::Permit, Refusal> {
        let permit = Self::acquire(self, cost).await;
        permit.map_err(|it| it.of(self.resource_id()))
    }

    fn try_acquire(&self, cost: C) -> Result<Self::Permit, Refusal> {
        Self::try_acquire(self, cost).map_err(|it| it.of(self.resource_id()))
    }
}

/// For a key, and its cost.
impl<K: AsRef<str> + Send + Sync, C: Into<Units> + Send> Acquire<(K, C)> for Keyed {
    type Permit = RatePermit<'static>;

    async fn acquire(&self, (key, cost): (K, C)) -> Result<Self::Permit, Refusal> {
        let permit = Self::acquire(self, key.as_ref(), cost).await;
        permit.map_err(|it| it.of(self.resource_id(key.as_ref())))
    }

    fn try_acquire(&self, (key, cost): (K, C)) -> Result<Self::Permit, Refusal> {
        let permit = Self::try_acquire(self, key.as_ref(), cost);
        permit.map_err(|it| it.of(self.resource_id(key.as_ref())))
    }
}

impl Refund for RatePermit<'_> {
    fn refund(self) {
        Self::refund(self);
    }
}

impl Refund for Permit {
    fn refund(self) {}
}
