//! Waits after failures.
//!
//! **In general** ([`Backoff::note_failure`]): each wait is twice as long as the last one, from a base to a cap, less a
//! random part. The caller tries other addresses or endpoints at once, before the first wait.
//!
//! **A client that asks for leases** ([`Backoff::fail`]) distinguishes failures by their meaning for the node.
//!
//! **Out of reach**: the n-th failure in a row waits a random time between zero and base · 2ⁿ, at most the cap. Full
//! jitter spreads clients that failed together better than any narrower range. A client with leases loses nothing by a
//! later retry, and spares the servers. A client without leases has no limits to work by until it is back, so its cap
//! is lower.
//!
//! **Masterless**: a server of the node answers, but there is no master. The candidates elect a successor within
//! seconds. Each wait is about the base, from a half to one and a half of it. Any other failure within `ELECTION` of
//! such an answer belongs to the same election, and waits as long. After half a minute without a master, these waits
//! double too, up to eight times the base.
//!
//! **Overloaded**: the server sends a retry delay, which takes precedence over all rules here.

use std::time::Duration;

use crate::time::Time;

/// Time after a masterless answer in which other failures count as part of the same election.
const ELECTION: Duration = Duration::from_secs(15);

/// Number of masterless failures in a row with the same wait.
const PATIENCE: u32 = 30;

/// Largest number of doublings of the wait for a master.
const DOUBLINGS_MAX: u32 = 3;

/// Waits after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// Upper bound of the first wait, and approximate length of each wait for a master.
    pub base: Duration,
    /// Upper bound of all waits.
    pub cap: Duration,
    /// Upper bound, if it is less, while any open resource has no valid lease, or a lease of zero.
    pub cap_without_lease: Duration,
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

/// Shortest retry delay of a server. It prevents a loop of requests to a server that always sends 0.
const RETRY_MIN: Duration = Duration::from_millis(500);

/// Longest retry delay of a server: with the jitter, a minute.
const RETRY_MAX: Duration = Duration::from_secs(48);

/// Returns the wait for an overloaded server's retry delay: that delay and up to a quarter more, so that callers with
/// the same answer do not return at once. `chance` is uniform in 0…1.
pub fn come_back(retry_in: Duration, chance: f64) -> Duration {
    let retry_in = retry_in.clamp(RETRY_MIN, RETRY_MAX);
    retry_in + (retry_in / 4).mul_f64(chance.clamp(0.0, 1.0))
}

/// Parses the retry delay in gRPC's trailer (gRFC A6): a number of milliseconds, 0 or more. Anything else is ignored.
/// In gRPC it means "do not retry", which a lease server never means.
pub fn pushback(trailer: &str) -> Option<Duration> {
    let is_number = !trailer.is_empty() && trailer.bytes().all(|byte| byte.is_ascii_digit());
    // A number that does not fit counts as the largest.
    is_number.then(|| Duration::from_millis(trailer.parse().unwrap_or(u64::MAX)))
}

/// Meaning of a failure for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The caller got no usable answer.
    OutOfReach,
    /// A server of the node answered that there is no master.
    Masterless,
}

/// Growth of waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitLimits {
    /// Upper bound of the first wait.
    pub base: Duration,
    /// Upper bound of all waits.
    pub cap: Duration,
    /// Smallest wait as a part of its upper bound, from 0 (full jitter: callers that failed together return as far
    /// apart as possible) to 1 (no jitter).
    pub least: f64,
}

impl WaitLimits {
    /// Returns the wait that follows `before` other waits.
    fn wait(self, before: u32, chance: f64) -> Duration {
        let doubled = self.base.saturating_mul(1 << before.min(DOUBLED_MAX));
        let part = self.least + (1.0 - self.least) * chance.clamp(0.0, 1.0);
        doubled.min(self.cap).mul_f64(part.clamp(0.0, 1.0))
    }
}

/// Largest number of doublings of a wait, so that nothing overflows.
const DOUBLED_MAX: u32 = 20;

/// Counts failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    out_of_reach: u32,
    masterless: u32,
    /// Time of a server's last answer that there is no master.
    masterless_at: Option<Time>,
}

impl Backoff {
    /// Notes a success.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Notes a failure. Returns the wait: zero after the first `at_once` failures in a row, because the caller tries
    /// that many others first. `chance` is uniform in 0…1.
    pub fn note_failure(&mut self, limits: WaitLimits, at_once: u32, chance: f64) -> Duration {
        let before = self.out_of_reach.checked_sub(at_once);
        self.out_of_reach = self.out_of_reach.saturating_add(1);
        before.map_or(Duration::ZERO, |before| limits.wait(before, chance))
    }

    /// Notes a failed request of a client for leases. Returns the wait. `is_served`: every open resource has a valid
    /// lease above zero. `chance` is uniform in 0…1.
    pub fn fail(
        &mut self,
        kind: FailureKind,
        config: BackoffConfig,
        is_served: bool,
        chance: f64,
        now: Time,
    ) -> Duration {
        let chance = chance.clamp(0.0, 1.0);
        let cap = if is_served {
            config.cap
        } else {
            config.cap.min(config.cap_without_lease)
        };
        if kind == FailureKind::Masterless {
            self.masterless_at = Some(now);
            // The node is reachable, so earlier failures do not count.
            self.out_of_reach = 0;
        }
        let is_new = |at| now.since(at) < ELECTION;
        if self.masterless_at.is_some_and(is_new) {
            let doublings = self.masterless.saturating_sub(PATIENCE).min(DOUBLINGS_MAX);
            self.masterless = self.masterless.saturating_add(1);
            let about = config.base.saturating_mul(1 << doublings);
            // The cap comes before the jitter. A cap after it would give many callers the same wait.
            return about.min(cap * 2 / 3).mul_f64(0.5 + chance);
        }
        self.masterless = 0;
        let limits = WaitLimits {
            base: config.base,
            cap,
            least: 0.0,
        };
        self.note_failure(limits, 0, chance)
    }

    /// Number of failures in a row, of the last kind.
    pub fn failures(&self) -> u32 {
        self.out_of_reach.saturating_add(self.masterless)
    }
}

#[cfg(test)]
mod tests;
