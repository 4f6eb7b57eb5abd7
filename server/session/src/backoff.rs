//! When to try again after a failure.
//!
//! **In general** ([`Backoff::note_failure`]): each wait is twice as long as the one before, from a base to a
//! cap, and chance takes some of it away. Who has other addresses, or other endpoints, tries those at once
//! before it waits at all.
//!
//! **A client that asks for leases** ([`Backoff::fail`]) tells apart what failures say of the node.
//!
//! **Out of reach**: the n-th failure in a row waits a random time between nothing and base · 2ⁿ, at
//! most the cap. Full jitter spreads clients that failed together better than any narrower range. Who
//! has leases loses nothing by coming back late, and spares the servers; who has none works blindly
//! until it is back, so its cap is a lower one.
//!
//! **Masterless**: a server of the node answers, but there is no master to be had, so a successor is
//! being elected and comes within seconds. Each wait is about the base, from a half to one and a
//! half of it. Who fails otherwise within `ELECTION` of such an answer meets the same election at
//! another server, and waits as long. Half a minute without a master is no election any more: from
//! then on waits double too, up to eight times the base.
//!
//! **Overloaded**: the server says itself when to come back, and knows better than any rule of ours.

use std::time::Duration;

use crate::planted::{self, Bug};
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

/// When to come back, as a server tells it in gRPC's own trailer (gRFC A6): a number of milliseconds. What is
/// none from 0 up says nothing; there, gRPC means "do not come back", which is not for a server of leases to
/// say.
pub fn pushback(told: &str) -> Option<Duration> {
    let is_number = !told.is_empty() && told.bytes().all(|byte| byte.is_ascii_digit());
    // More than fits is as long as there is.
    is_number.then(|| Duration::from_millis(told.parse().unwrap_or(u64::MAX)))
}

/// What a failure says of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Nothing: no answer of use came.
    OutOfReach,
    /// A server of it is there, but no master.
    Masterless,
}

/// How waits grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The upper bound of the first wait.
    pub base: Duration,
    /// The upper bound of all waits.
    pub cap: Duration,
    /// The part of its upper bound that a wait has at least, from 0 (full jitter: those who failed together
    /// come back as far apart as they can) to 1 (no jitter).
    pub least: f64,
}

impl Limits {
    /// The wait after so many waits before it.
    fn wait(self, before: u32, chance: f64) -> Duration {
        let doubled = self.base.saturating_mul(1 << before.min(DOUBLED_MAX));
        let part = self.least + (1.0 - self.least) * chance.clamp(0.0, 1.0);
        doubled.min(self.cap).mul_f64(part.clamp(0.0, 1.0))
    }
}

/// How often a wait doubles at most, whatever its cap is: a million times as long is as good as the cap.
const DOUBLED_MAX: u32 = 20;

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
        if planted::is(Bug::BackoffGoesOn) {
            return;
        }
        *self = Self::default();
    }

    /// It failed; how long to wait: not at all after the first `at_once` failures in a row, for there are as
    /// many others to try. `chance` is uniform in 0…1.
    pub fn note_failure(&mut self, limits: Limits, at_once: u32, chance: f64) -> Duration {
        let before = self.out_of_reach.checked_sub(at_once);
        self.out_of_reach = self.out_of_reach.saturating_add(1);
        before.map_or(Duration::ZERO, |before| limits.wait(before, chance))
    }

    /// A client's request for leases failed; how long to wait. `is_served`: every open resource has a valid
    /// lease of something. `chance` is uniform in 0…1.
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
        let limits = Limits {
            base: config.base,
            cap,
            least: 0.0,
        };
        self.note_failure(limits, 0, chance)
    }

    /// Failures in a row, of the kind that came last.
    pub fn failures(&self) -> u32 {
        self.out_of_reach.saturating_add(self.masterless)
    }
}

#[cfg(test)]
mod tests;
