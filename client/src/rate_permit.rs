//! Permits of rates: amounts that calls used, until their true cost is known.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_limits::{Moment, Units};

use crate::lock::lock;
use crate::refusal::Refusal;
use crate::time::Time;

/// An amount that a call used. Dropped, it stays used. A call whose cost is known only afterwards, such as the tokens of
/// an answer, keeps the permit and [settles](RatePermit::settle) it. While the permit of a key lives, its lease does
/// too.
///
/// ```
/// # use doorward::Client;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("gateway-1");
/// # server.set_capacity("tokens/acme", 1_000.0);
/// let tokens = client.keyed("tokens/{}").open()?;
/// let permit = tokens.acquire("acme", 20).await?;    // an estimate
/// let used = 17;                                     // as the answer says
/// permit.settle(used);
/// # Ok(()) }
/// ```
pub struct RatePermit<'a> {
    of: Of<'a>,
    cost: Units,
    taken_at: Moment,
}

/// A limiter that calls have taken from.
pub(crate) trait Payer: Send + Sync {
    /// Corrects the amount of a call of that time: `used` instead of `estimate`. Without effect if its lease has ended.
    fn settle(&self, taken_at: Time, estimate: Units, used: Units);

    /// Takes more for a call that goes on. Returns the window of the amount if it is of a budget.
    fn take(&self, more: Units) -> Result<Option<Moment>, Refusal>;

    /// Counts more for a call that goes on, whether there is so much or not, in the present window of a budget. Returns
    /// that window. None: it is no budget.
    fn count(&self, _more: Units) -> Option<Moment> {
        None
    }

    /// Returns the same limiter for as long as a permit lives.
    fn shared(&self) -> Arc<dyn Payer>;
}

/// A limiter that a permit holds until it is dropped. That is a call of its own, which takes it out: otherwise each permit
/// would be written to memory.
struct Shared(Option<Arc<dyn Payer>>);

/// The limiter that admitted the call.
enum Of<'a> {
    Borrowed(&'a dyn Payer),
    Shared(Shared),
    /// A key without a lease, by what its settings say then.
    NoLease,
}

impl<'a> RatePermit<'a> {
    #[inline]
    pub(crate) const fn of(limiter: &'a dyn Payer, cost: Units, taken_at: Moment) -> Self {
        Self {
            of: Of::Borrowed(limiter),
            cost,
            taken_at,
        }
    }

    /// Returns the permit of a key that has the lease, which keeps the key.
    pub(crate) fn of_key(key: Arc<dyn Payer>, cost: Units, taken_at: Moment) -> Self {
        Self {
            of: Of::Shared(Shared(Some(key))),
            cost,
            taken_at,
        }
    }

    pub(crate) const fn taken_at(&self) -> Moment {
        self.taken_at
    }

    pub(crate) const fn without_lease(cost: Units) -> Self {
        Self {
            of: Of::NoLease,
            cost,
            taken_at: Moment::ORIGIN,
        }
    }

    /// Returns a permit that can be moved into a task or a stream.
    pub fn into_owned(self) -> RatePermit<'static> {
        RatePermit {
            of: match self.of {
                Of::Borrowed(limiter) => Of::Shared(Shared(Some(limiter.shared()))),
                Of::Shared(limiter) => Of::Shared(limiter),
                Of::NoLease => Of::NoLease,
            },
            cost: self.cost,
            taken_at: self.taken_at,
        }
    }

    /// Returns the amount.
    pub const fn cost(&self) -> Units {
        self.cost
    }

    /// Sets the amount that the call used instead. Later calls pay for a larger use: they wait for longer. The rest of
    /// a smaller one is free again, up to the burst. Without effect if the lease that admitted the call has ended.
    pub fn settle(mut self, used: impl Into<Units>) {
        self.correct(used.into());
    }

    /// Takes more for the same call, such as the next part of a long answer. An amount that was taken in an
    /// earlier window of a budget counts there as it is.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if so much may not be used now: the call should stop. It keeps the amount that it
    /// has.
    pub fn extend(&mut self, more: impl Into<Units>) -> Result<(), Refusal> {
        let more = more.into();
        let Some(limiter) = self.limiter() else {
            self.cost = self.cost.saturating_add(more);
            return Ok(());
        };
        match limiter.take(more)? {
            Some(window) if window != self.taken_at => {
                (self.cost, self.taken_at) = (more, window);
            }
            _ => self.cost = self.cost.saturating_add(more),
        }
        Ok(())
    }

    /// Counts more for the same call, whether there is so much or not, as for a part of an answer that has come already.
    pub fn debit(&mut self, more: impl Into<Units>) {
        let more = more.into();
        match self.limiter().and_then(|limiter| limiter.count(more)) {
            None => self.correct(self.cost.saturating_add(more)),
            Some(window) if window == self.taken_at => {
                self.cost = self.cost.saturating_add(more);
            }
            Some(window) => (self.cost, self.taken_at) = (more, window),
        }
    }

    /// Returns a receipt, by which the permit may be ended from several places.
    pub fn into_receipt(self) -> Receipt {
        Receipt(Arc::new(Mutex::new(Ok(self.into_owned()))))
    }

    fn limiter(&self) -> Option<&dyn Payer> {
        match &self.of {
            Of::Borrowed(limiter) => Some(*limiter),
            Of::Shared(Shared(limiter)) => limiter.as_deref(),
            Of::NoLease => None,
        }
    }

    /// Does the same as [`Self::settle`], and keeps the permit.
    pub(crate) fn correct(&mut self, used: Units) {
        let Some(limiter) = self.limiter() else {
            return;
        };
        let nanos = self.taken_at.nanos_since(Moment::ORIGIN);
        let taken_at = Time::after_origin(Duration::from_nanos(nanos));
        limiter.settle(taken_at, self.cost, used);
        self.cost = used;
    }

    /// Gives the whole amount back: the call did nothing.
    pub fn refund(self) {
        self.settle(Units::ZERO);
    }
}

/// A permit that may be ended from several places, such as a call, its retry and its timeout. The first end counts; the
/// others change nothing. Cheap to clone. If all are dropped without an end, the amount counts as it was taken.
///
/// ```
/// # use doorward::Client;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("gateway-1");
/// # server.set_capacity("tokens/acme", 100_000.0);
/// let receipt = client.budget("tokens/acme")?.acquire(1_200).await?.into_receipt();
/// let of_retry = receipt.clone();
/// assert_eq!(receipt.settle(980), 980.into());
/// assert_eq!(of_retry.settle(1_100), 980.into());    // the answer of the first
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Receipt(Arc<Mutex<Result<RatePermit<'static>, Units>>>);

impl Receipt {
    /// Sets the amount that the call used, unless it is ended. Returns what counts.
    pub fn settle(&self, used: impl Into<Units>) -> Units {
        let mut ended = lock(&self.0);
        if let Ok(permit) = &mut *ended {
            let used = used.into();
            permit.correct(used);
            *ended = Err(used);
        }
        match *ended {
            Err(counted) => counted,
            Ok(ref permit) => permit.cost(),
        }
    }

    /// Gives the whole amount back, unless it is ended. Returns what counts.
    pub fn refund(&self) -> Units {
        self.settle(Units::ZERO)
    }
}

debug_by_name!(Receipt);

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if let Some(limiter) = self.0.take() {
            leave(limiter);
        }
    }
}

#[inline(never)]
fn leave(limiter: Arc<dyn Payer>) {
    drop(limiter);
}

debug_by_name!(RatePermit<'_>);
