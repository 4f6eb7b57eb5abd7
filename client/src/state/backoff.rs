//! When to try again after a failure.
//!
//! **Out of reach**: the n-th failure in a row waits a random time between nothing and base · 2ⁿ, at
//! most the cap. Full jitter spreads clients that failed together better than any narrower range.
//!
//! **Masterless**: a server of the node answers, but there is no master to be had, so a successor is
//! being elected and comes within seconds. Each wait is about the base, from a half to one and a
//! half of it. Who fails otherwise within [`ELECTION`] of such an answer meets the same election at
//! another server, and waits as long. Half a minute without a master is no election any more: from
//! then on waits double too, up to eight times the base.

use std::time::Duration;

use crate::time::Time;

/// How long after a masterless answer other failures are taken for the same election's.
const ELECTION: Duration = Duration::from_secs(15);

/// Masterless failures in a row that are met with the same wait.
const PATIENCE: u32 = 30;

/// How often the wait for a master doubles at most.
const DOUBLINGS_MAX: u32 = 3;

/// How long to wait after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The upper bound of the first wait; about how long each wait for a master is.
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

/// What a failure says of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Nothing: no answer of use came.
    OutOfReach,
    /// A server of it is there, but no master.
    Masterless,
}

/// Counts failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    out_of_reach: u32,
    masterless: u32,
    /// When a server last answered that there is no master.
    masterless_at: Option<Time>,
}

impl Backoff {
    /// It worked.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// It failed; how long to wait. `chance` is uniform in 0…1.
    pub fn fail(
        &mut self,
        kind: FailureKind,
        config: BackoffConfig,
        chance: f64,
        now: Time,
    ) -> Duration {
        let chance = chance.clamp(0.0, 1.0);
        if kind == FailureKind::Masterless {
            self.masterless_at = Some(now);
            // Somebody is there: what nobody answered before says nothing any more.
            self.out_of_reach = 0;
        }
        let is_election = self
            .masterless_at
            .is_some_and(|at| now.since(at) < ELECTION);
        if is_election {
            let doublings = self.masterless.saturating_sub(PATIENCE).min(DOUBLINGS_MAX);
            self.masterless = self.masterless.saturating_add(1);
            let about = config.base.saturating_mul(1 << doublings);
            return about.mul_f64(0.5 + chance).min(config.cap);
        }
        self.masterless = 0;
        let doubled = config.base.saturating_mul(1 << self.out_of_reach.min(20));
        self.out_of_reach = self.out_of_reach.saturating_add(1);
        doubled.min(config.cap).mul_f64(chance)
    }

    /// Failures in a row, of the kind that came last.
    pub fn failures(&self) -> u32 {
        self.out_of_reach.saturating_add(self.masterless)
    }
}

#[cfg(test)]
mod tests {
    use super::FailureKind::{Masterless, OutOfReach};
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::after_origin(Duration::from_secs_f64(seconds))
    }

    /// The wait of each failure, in seconds, with the largest chance.
    fn waits(failures: &[(FailureKind, f64)]) -> Vec<f64> {
        let mut backoff = Backoff::default();
        let wait = |&(kind, now): &(FailureKind, f64)| {
            let wait = backoff.fail(kind, BackoffConfig::default(), 1.0, at(now));
            wait.as_secs_f64()
        };
        failures.iter().map(wait).collect()
    }

    #[test]
    fn waits_double_up_to_the_cap_and_start_over_after_a_success() {
        assert_eq!(
            waits(&[(OutOfReach, 0.0); 9]),
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
        );
        let config = BackoffConfig::default();
        let mut backoff = Backoff::default();
        for kind in [OutOfReach, OutOfReach, Masterless, OutOfReach] {
            backoff.fail(kind, config, 1.0, at(0.0));
        }
        assert!(backoff.failures() > 0);
        backoff.succeed();
        assert_eq!(backoff.failures(), 0);
        let wait = backoff.fail(OutOfReach, config, 0.5, at(1.0));
        assert_eq!(wait, Duration::from_millis(500));
    }

    #[test]
    fn jitter_is_full_but_not_while_a_master_is_awaited() {
        for (kind, chance, wait) in [
            (OutOfReach, 0.0, 0.0),
            (OutOfReach, 1.0, 1.0),
            (Masterless, 0.0, 0.5),
            (Masterless, 1.0, 1.5),
        ] {
            let config = BackoffConfig::default();
            let waited = Backoff::default().fail(kind, config, chance, at(0.0));
            assert_eq!(waited.as_secs_f64(), wait, "{kind:?} {chance}");
        }
    }

    #[test]
    fn while_a_master_is_elected_every_failure_is_retried_after_about_a_second() {
        assert_eq!(waits(&[(Masterless, 0.0); 30]), [1.5; 30]);
        // One of several servers is down, the others have no master.
        let mixed = [
            (Masterless, 0.0),
            (OutOfReach, 1.5),
            (OutOfReach, 3.0),
            (Masterless, 4.5),
            (OutOfReach, 19.0),
        ];
        assert_eq!(waits(&mixed), [1.5; 5]);
    }

    #[test]
    fn a_node_that_was_out_of_reach_and_now_elects_is_asked_about_every_second() {
        let failures = [
            (OutOfReach, 0.0),
            (OutOfReach, 0.0),
            (OutOfReach, 0.0),
            (Masterless, 9.0),
            (OutOfReach, 10.0),
        ];
        assert_eq!(waits(&failures), [1.0, 2.0, 4.0, 1.5, 1.5]);
    }

    #[test]
    fn a_node_that_is_not_heard_of_any_more_is_out_of_reach() {
        let failures = [(Masterless, 0.0), (OutOfReach, 15.0), (OutOfReach, 16.0)];
        assert_eq!(waits(&failures), [1.5, 1.0, 2.0]);
    }

    #[test]
    fn who_waits_for_a_master_in_vain_asks_less_often() {
        let waits = waits(&[(Masterless, 0.0); 36]);
        assert_eq!(waits[29..], [1.5, 1.5, 3.0, 6.0, 12.0, 12.0, 12.0]);
        let hasty = BackoffConfig {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(1),
        };
        let wait = Backoff::default().fail(Masterless, hasty, 1.0, at(0.0));
        assert_eq!(wait, hasty.cap);
    }
}
