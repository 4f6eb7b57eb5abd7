//! Leases of a client as those of shared rules.

use std::time::Duration;

use doorward_client::{AcquireError, Keyed};
use doorward_limits::{Decision, Reason};
use doorward_rules::{Leases, OnFailure, Rule};

/// Leases of a client: the text of a descriptor is the key.
pub(crate) struct OfClient(pub(crate) Keyed);

impl Leases for OfClient {
    fn take(&self, rule: &Rule, key: &str, cost: u64) -> Option<Result<(), Decision>> {
        let taken = match rule.on_failure {
            OnFailure::Safe => self.0.try_safe(key, cost as f64),
            OnFailure::Open | OnFailure::Closed => self.0.try_leased(key, cost as f64),
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
        self.0.settle(key, cost as f64, 0.0, took);
        cost
    }

    fn charge(&self, _rule: &Rule, key: &str, cost: u64, debt_max: u64) -> u64 {
        let cost = cost.min(debt_max);
        self.0.settle(key, 0.0, cost as f64, Duration::ZERO);
        cost
    }
}
