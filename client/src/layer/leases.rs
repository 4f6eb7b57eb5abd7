//! Leases of a client, as layers use them: as those of shared rules, and as one that pays for the work of requests.

use std::pin::Pin;
use std::time::Duration;

use crate::rules::Leases;

/// Leases of shared rules, whose first answers requests wait for. The text of a descriptor is the key.
pub(crate) trait LeasesOfKeys: Leases + Send + Sync {
    /// Returns whether [`LeasesOfKeys::ready`] would wait. Opens a new key.
    fn is_new(&self, key: &str, max_wait: Duration) -> bool;

    /// Waits for the first lease of a key, until `max_wait` has passed since the key was opened.
    fn ready<'a>(&'a self, key: &'a str, max_wait: Duration) -> Waiting<'a>;
}

type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A lease that pays for the work of requests.
pub(crate) trait LeaseOfWork: Send + Sync {
    /// Takes an amount. The error: the time after which to come back, if there is one.
    fn take(&self, amount: f64) -> Result<(), Option<Duration>>;

    /// Corrects an amount that was taken.
    fn settle(&self, paid: f64, used: f64);
}

#[cfg(feature = "leases")]
mod of_client {
    use doorward_limits::{Decision, Reason};

    use super::{Duration, LeaseOfWork, Leases, LeasesOfKeys, Waiting};
    use crate::rules::{OnFailure, Rule};
    use crate::{AcquireError, Keyed, RateLimiter};

    impl Leases for Keyed {
        fn take(&self, rule: &Rule, key: &str, cost: u64) -> Option<Result<(), Decision>> {
            let taken = match rule.on_failure {
                OnFailure::Safe => self.try_safe(key, cost as f64),
                OnFailure::Open | OnFailure::Closed => self.try_leased(key, cost as f64),
            };
            let refusal = match taken? {
                Ok(()) => return Some(Ok(())),
                Err(AcquireError::RetryAfter { retry_after }) => Decision::After(retry_after),
                Err(AcquireError::Blocked) => Decision::Never(Reason::RateIsZero),
                // The lease is gone: there is none any more.
                Err(_) => return None,
            };
            Some(Err(refusal))
        }

        fn give_back(&self, _rule: &Rule, key: &str, cost: u64, took: Duration) -> u64 {
            self.settle(key, cost as f64, 0.0, took);
            cost
        }

        fn charge(&self, _rule: &Rule, key: &str, cost: u64, debt_max: u64) -> u64 {
            let cost = cost.min(debt_max);
            self.settle(key, 0.0, cost as f64, Duration::ZERO);
            cost
        }
    }

    impl LeasesOfKeys for Keyed {
        fn is_new(&self, key: &str, max_wait: Duration) -> bool {
            self.is_new(key, max_wait)
        }

        fn ready<'a>(&'a self, key: &'a str, max_wait: Duration) -> Waiting<'a> {
            Box::pin(self.ready(key, max_wait))
        }
    }

    impl LeaseOfWork for RateLimiter {
        fn take(&self, amount: f64) -> Result<(), Option<Duration>> {
            self.try_acquire(amount).map_err(|error| match error {
                AcquireError::RetryAfter { retry_after } => Some(retry_after),
                _ => None,
            })
        }

        fn settle(&self, paid: f64, used: f64) {
            self.settle(paid, used);
        }
    }
}
