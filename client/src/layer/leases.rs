//! Leases of a client, as layers use them: as those of shared rules, and as one that pays for the work of requests.

use std::pin::Pin;
use std::time::Duration;

use crate::Refusal;
use crate::rules::Leases;

/// Leases of shared rules, whose first answers requests wait for. The text of a descriptor is the key.
pub(crate) trait LeasesOfKeys: Leases + Send + Sync {
    /// Returns the wait for the first lease of a key, until `max_wait` has passed since the key was opened. None: there is
    /// nothing to wait for. Opens a new key.
    fn wait_for(&self, key: &str, max_wait: Duration) -> Option<Waiting>;
}

/// A wait for a lease.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Leases that requests obey.
#[derive(Clone, Default)]
pub(crate) struct LeasesOfWork {
    #[cfg(feature = "leases")]
    pub(crate) places: Vec<crate::ConcurrencyLimiter>,
    #[cfg(feature = "leases")]
    pub(crate) rates: Vec<crate::RateLimiter>,
}

/// The part of leases that a request took. If it is dropped before the request is [served](Held::serve), amounts go back.
#[derive(Default)]
pub(crate) struct Held {
    #[cfg(feature = "leases")]
    places: Vec<crate::Permit>,
    #[cfg(feature = "leases")]
    paid: Vec<crate::RatePermit<'static>>,
    is_served: bool,
}

impl Held {
    /// The request is served: what it paid stays paid, and its places are taken until this is dropped.
    pub(crate) fn serve(&mut self) {
        self.is_served = true;
    }
}

#[cfg(not(feature = "leases"))]
mod of_no_client {
    use super::{Held, LeasesOfWork, Refusal};

    impl LeasesOfWork {
        pub(crate) const fn is_empty(&self) -> bool {
            true
        }

        pub(crate) fn add(&mut self, _other: Self) {}

        pub(crate) async fn take(&self, _: f64, _: bool, _: &mut Held) -> Result<(), Refusal> {
            Ok(())
        }
    }

    impl Held {
        pub(crate) fn settle(self, _used: f64) {}
    }
}

#[cfg(feature = "leases")]
mod of_client {
    use doorward_limits::{Decision, Reason, Units};

    use super::{Duration, Held, Leases, LeasesOfKeys, LeasesOfWork, Refusal, Waiting};
    use crate::rules::{OnFailure, Rule};
    use crate::{Keyed, Why};

    impl Leases for Keyed {
        fn take(&self, rule: &Rule, key: &str, cost: u64) -> Option<Result<(), Decision>> {
            let cost = Units::whole(cost);
            match self.try_leased(key, cost, rule.on_failure == OnFailure::Safe)? {
                Ok(_) => Some(Ok(())),
                // The lease is gone: there is none any more.
                Err(refusal) if refusal.why != Why::Over => None,
                Err(refusal) => Some(Err(match refusal.retry_after {
                    Some(time) => Decision::After(time),
                    None => Decision::Never(Reason::RateIsZero),
                })),
            }
        }

        fn give_back(&self, _rule: &Rule, key: &str, cost: u64, took: Duration) -> u64 {
            self.settle(key, Units::whole(cost), Units::ZERO, took);
            cost
        }

        fn charge(&self, _rule: &Rule, key: &str, cost: u64, debt_max: u64) -> u64 {
            let cost = cost.min(debt_max);
            self.settle(key, Units::ZERO, Units::whole(cost), Duration::ZERO);
            cost
        }
    }

    impl LeasesOfKeys for Keyed {
        fn wait_for(&self, key: &str, max_wait: Duration) -> Option<Waiting> {
            Some(Box::pin(self.wait_for(key, max_wait)?))
        }
    }

    /// A predicted amount is finite and not negative.
    fn units(amount: f64) -> Units {
        Units::at_least(amount).unwrap_or(Units::MAX)
    }

    impl LeasesOfWork {
        #[inline]
        pub(crate) const fn is_empty(&self) -> bool {
            self.places.is_empty() && self.rates.is_empty()
        }

        pub(crate) fn add(&mut self, other: Self) {
            self.places.extend(other.places);
            self.rates.extend(other.rates);
        }

        /// Takes a place and the cost of a request of each lease, in the order in which they were added, if there is a place
        /// now, and no debt. Otherwise, a cost above the burst would never be paid, and its prediction never be corrected:
        /// later requests pay it back. `waits`: waits for them. Meanwhile the request holds what the earlier ones gave.
        pub(crate) async fn take(
            &self,
            cost: f64,
            waits: bool,
            held: &mut Held,
        ) -> Result<(), Refusal> {
            for limiter in &self.places {
                held.places.push(match waits {
                    true => limiter.acquire(1).await?,
                    false => limiter.try_acquire(1)?,
                });
            }
            let least = units(cost.min(1.0));
            for limiter in &self.rates {
                let permit = match waits {
                    true => limiter.acquire(least).await?,
                    false => limiter.try_acquire(least)?,
                };
                let mut permit = permit.into_owned();
                if cost > 1.0 {
                    permit.correct(units(cost));
                }
                held.paid.push(permit);
            }
            Ok(())
        }
    }

    impl Held {
        /// Ends the request, whose cost is known now.
        pub(crate) fn settle(mut self, used: f64) {
            let paid = std::mem::take(&mut self.paid);
            paid.into_iter().for_each(|it| it.settle(units(used)));
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            if !self.is_served {
                let paid = std::mem::take(&mut self.paid);
                paid.into_iter().for_each(crate::RatePermit::refund);
            }
        }
    }
}
