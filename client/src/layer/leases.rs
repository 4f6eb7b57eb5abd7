//! Leases of a client, as layers use them: as those of shared rules, and as one that pays for the work of requests.

use std::pin::Pin;
use std::time::Duration;

use crate::Refusal;
use crate::rules::Leases;

/// Leases of shared rules, whose first answers requests wait for. The text of a descriptor is the key.
pub(crate) trait LeasesOfKeys: Leases + Send + Sync {
    /// Returns whether [`LeasesOfKeys::ready`] would wait. Opens a new key.
    fn is_new(&self, key: &str, max_wait: Duration) -> bool;

    /// Waits for the first lease of a key, until `max_wait` has passed since the key was opened.
    fn ready<'a>(&'a self, key: &'a str, max_wait: Duration) -> Waiting<'a, ()>;
}

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lease that pays for the work of requests.
pub(crate) trait LeaseOfWork: Send + Sync {
    /// Takes an amount, if the lease allows it now.
    fn take(&self, amount: f64) -> Result<(), Refusal>;

    /// Waits for an amount of 1, and takes it.
    fn wait(&self) -> Waiting<'_, Result<(), Refusal>>;

    /// Corrects an amount that was taken.
    fn settle(&self, paid: f64, used: f64);
}

#[cfg(feature = "leases")]
mod of_client {
    use doorward_limits::{Decision, Reason, Units};

    use super::{Duration, LeaseOfWork, Leases, LeasesOfKeys, Refusal, Waiting};
    use crate::rules::{OnFailure, Rule};
    use crate::{Keyed, RateLimiter, Why};

    impl Leases for Keyed {
        fn take(&self, rule: &Rule, key: &str, cost: u64) -> Option<Result<(), Decision>> {
            let cost = Units::whole(cost);
            let taken = match rule.on_failure {
                OnFailure::Safe => self.try_safe(key, cost),
                OnFailure::Open | OnFailure::Closed => self.try_leased(key, cost),
            };
            match taken? {
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
        fn is_new(&self, key: &str, max_wait: Duration) -> bool {
            self.is_new(key, max_wait)
        }

        fn ready<'a>(&'a self, key: &'a str, max_wait: Duration) -> Waiting<'a, ()> {
            Box::pin(self.ready_within(key, max_wait))
        }
    }

    /// A predicted amount is finite and not negative.
    fn units(amount: f64) -> Units {
        Units::at_least(amount).unwrap_or(Units::MAX)
    }

    impl LeaseOfWork for RateLimiter {
        fn take(&self, amount: f64) -> Result<(), Refusal> {
            self.try_acquire(units(amount)).map(|_permit| ())
        }

        fn wait(&self) -> Waiting<'_, Result<(), Refusal>> {
            Box::pin(async { self.acquire(1).await.map(|_permit| ()) })
        }

        fn settle(&self, paid: f64, used: f64) {
            self.settle_now(units(paid), units(used));
        }
    }
}
