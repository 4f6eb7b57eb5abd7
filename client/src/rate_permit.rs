//! Permits of rates: amounts that calls used, until their true cost is known.

use std::sync::Arc;
use std::time::Duration;

use doorward_limits::{Moment, Units};

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

    /// Does the same, and keeps the permit.
    pub(crate) fn correct(&mut self, used: Units) {
        let limiter = match &self.of {
            Of::Borrowed(limiter) => *limiter,
            Of::Shared(Shared(Some(limiter))) => &**limiter,
            Of::Shared(Shared(None)) | Of::NoLease => return,
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
