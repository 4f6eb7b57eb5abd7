//! When to try again after a failure.
//!
//! **Out of reach**: the n-th failure in a row waits a random time between nothing and base · 2ⁿ, at
//! most the cap. Full jitter spreads clients that failed together better than any narrower range. Who
//! has leases loses nothing by coming back late, and spares the servers; who has none works blindly
//! until it is back, so its cap is a lower one.
//!
//! **Masterless**: a server of the node answers, but there is no master to be had, so a successor is
//! being elected and comes within seconds. Each wait is about the base, from a half to one and a
//! half of it. Who fails otherwise within [`ELECTION`] of such an answer meets the same election at
//! another server, and waits as long. Half a minute without a master is no election any more: from
//! then on waits double too, up to eight times the base.
//!
//! **Overloaded**: the server says itself when to come back, and knows better than any rule of ours.

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
    /// The upper bound of waits, if it is less, while any open resource has no valid lease or one of
    /// nothing.
    pub cap_without_lease: Duration,
}

impl BackoffConfig {
    fn cap_of(&self, is_served: bool) -> Duration {
        if is_served {
            self.cap
        } else {
            self.cap.min(self.cap_without_lease)
        }
    }
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            cap_without_lease: Duration::from_secs(5),
        }
    }
}

/// The shortest wait that a server may tell: who says 0 for ever is not asked all the time.
const TOLD_MIN: Duration = Duration::from_millis(500);

/// The longest wait that a server may tell; with what chance adds to it, a minute.
const TOLD_MAX: Duration = Duration::from_secs(48);

/// How long to wait for an overloaded server that tells when to come back: so long, and up to a quarter
/// more, so that not all whom it told the same come back at one moment. `chance` is uniform in 0…1.
pub fn come_back(told: Duration, chance: f64) -> Duration {
    let told = told.clamp(TOLD_MIN, TOLD_MAX);
    told + (told / 4).mul_f64(chance.clamp(0.0, 1.0))
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

    /// It failed; how long to wait. `is_served`: every open resource has a valid lease of something.
    /// `chance` is uniform in 0…1.
    pub fn fail(
        &mut self,
        kind: FailureKind,
        config: BackoffConfig,
        is_served: bool,
        chance: f64,
        now: Time,
    ) -> Duration {
        let chance = chance.clamp(0.0, 1.0);
        let cap = config.cap_of(is_served);
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
            // Cut before the jitter, not after it, so that it stays one.
            return about.min(cap * 2 / 3).mul_f64(0.5 + chance);
        }
        self.masterless = 0;
        let doubled = config.base.saturating_mul(1 << self.out_of_reach.min(20));
        self.out_of_reach = self.out_of_reach.saturating_add(1);
        doubled.min(cap).mul_f64(chance)
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
    fn waits_of(is_served: bool, failures: &[(FailureKind, f64)]) -> Vec<f64> {
        let mut backoff = Backoff::default();
        let wait = |&(kind, now): &(FailureKind, f64)| {
            let config = BackoffConfig::default();
            let wait = backoff.fail(kind, config, is_served, 1.0, at(now));
            (wait.as_secs_f64() * 1e6).round() / 1e6
        };
        failures.iter().map(wait).collect()
    }

    /// As long as every resource has a lease.
    fn waits(failures: &[(FailureKind, f64)]) -> Vec<f64> {
        waits_of(true, failures)
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
            backoff.fail(kind, config, true, 1.0, at(0.0));
        }
        assert!(backoff.failures() > 0);
        backoff.succeed();
        assert_eq!(backoff.failures(), 0);
        let wait = backoff.fail(OutOfReach, config, true, 0.5, at(1.0));
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
            let waited = Backoff::default().fail(kind, config, true, chance, at(0.0));
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
            ..BackoffConfig::default()
        };
        let wait = Backoff::default().fail(Masterless, hasty, true, 1.0, at(0.0));
        assert!(wait <= hasty.cap, "{wait:?}");
    }

    #[test]
    fn without_a_lease_no_wait_is_longer_than_five_seconds() {
        assert_eq!(
            waits_of(false, &[(OutOfReach, 0.0); 6]),
            [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
        );
        let elections = waits_of(false, &[(Masterless, 0.0); 36]);
        assert_eq!(elections[29..32], [1.5, 1.5, 3.0]);
        assert_eq!(elections[32..], [5.0; 4]);
        // Jitter stays full at the cap, and is not cut off there during an election.
        let config = BackoffConfig::default();
        for (kind, least) in [(OutOfReach, 0.0), (Masterless, 5.0 / 3.0)] {
            let mut backoff = Backoff::default();
            for _ in 0..40 {
                backoff.fail(kind, config, false, 1.0, at(0.0));
            }
            for (chance, wait) in [(0.0, least), (0.5, f64::midpoint(least, 5.0))] {
                let waited = backoff.clone().fail(kind, config, false, chance, at(0.0));
                let waited = waited.as_secs_f64();
                assert!((waited - wait).abs() < 1e-6, "{kind:?} {chance}: {waited}");
            }
        }
        // Who set a lower cap for all has it here, too.
        let hasty = BackoffConfig {
            cap: Duration::from_millis(10),
            ..config
        };
        let wait = Backoff::default().fail(OutOfReach, hasty, false, 1.0, at(0.0));
        assert_eq!(wait, hasty.cap);
    }

    #[test]
    fn who_is_told_when_to_come_back_is_not_earlier_nor_all_at_one_moment() {
        for (told, earliest, latest) in [
            (0, 500, 625),
            (100, 500, 625),
            (2_000, 2_000, 2_500),
            (48_000, 48_000, 60_000),
            (3_600_000, 48_000, 60_000),
            (u64::MAX, 48_000, 60_000),
        ] {
            let waits = [0.0, 1.0].map(|chance| come_back(Duration::from_millis(told), chance));
            let expected = [earliest, latest].map(Duration::from_millis);
            assert_eq!(waits, expected, "{told} ms");
        }
    }
}
