//! Permits of rates: amounts that calls used, until their true cost is known.

use std::fmt;
use std::sync::Arc;

use doorward_limits::{Moment, Units};

use crate::keyed::Entry;
use crate::rate_limiter::RateLimiter;
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

/// The limiter that admitted the call.
enum Of<'a> {
    Limiter(&'a RateLimiter),
    Owned(Box<RateLimiter>),
    Key(Arc<Entry>),
    /// A key without a lease, by what its settings say then.
    NoLease,
}

impl<'a> RatePermit<'a> {
    #[inline]
    pub(crate) const fn of(limiter: &'a RateLimiter, cost: Units, taken_at: Moment) -> Self {
        Self {
            of: Of::Limiter(limiter),
            cost,
            taken_at,
        }
    }

    /// Returns the permit of a key that has the lease.
    pub(crate) const fn of_key(entry: Arc<Entry>, cost: Units, taken_at: Moment) -> Self {
        Self {
            of: Of::Key(entry),
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
                Of::Limiter(limiter) => Of::Owned(Box::new(limiter.clone())),
                Of::Owned(limiter) => Of::Owned(limiter),
                Of::Key(entry) => Of::Key(entry),
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
    pub fn settle(self, used: impl Into<Units>) {
        let limiter = match &self.of {
            Of::Limiter(limiter) => limiter,
            Of::Owned(limiter) => &**limiter,
            Of::Key(entry) if entry.has_lease() => &entry.limiter,
            Of::Key(_) | Of::NoLease => return,
        };
        let nanos = self.taken_at.nanos_since(Moment::ORIGIN);
        let taken_at = Time::after_origin(std::time::Duration::from_nanos(nanos));
        limiter.settle_since(taken_at, self.cost, used.into());
    }

    /// Gives the whole amount back: the call did nothing.
    pub fn refund(self) {
        self.settle(Units::ZERO);
    }
}

impl fmt::Debug for RatePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("RatePermit");
        text.field("cost", &self.cost).finish_non_exhaustive()
    }
}
