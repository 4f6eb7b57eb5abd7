//! When to try again after a failure: exponential backoff with full jitter.
//!
//! The n-th failure in a row waits a random time between nothing and base · 2ⁿ, at most the cap.
//! Full jitter spreads clients that failed together better than any narrower range.

use std::time::Duration;

/// How long to wait after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The upper bound of the first wait.
    pub base: Duration,
    /// The upper bound of all waits.
    pub cap: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
        }
    }
}

/// Counts failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// It worked.
    pub fn succeed(&mut self) {
        self.failures = 0;
    }

    /// It failed; how long to wait. `chance` is uniform in 0…1.
    pub fn fail(&mut self, config: BackoffConfig, chance: f64) -> Duration {
        let doubled = config.base.saturating_mul(1 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        doubled.min(config.cap).mul_f64(chance.clamp(0.0, 1.0))
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_over_after_a_success() {
        let config = BackoffConfig::default();
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..9)
            .map(|_| backoff.fail(config, 1.0).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        backoff.succeed();
        assert_eq!(backoff.fail(config, 0.5), Duration::from_millis(500));
    }

    #[test]
    fn jitter_is_full() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.fail(BackoffConfig::default(), 0.0), Duration::ZERO);
    }
}
