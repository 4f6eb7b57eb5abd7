//! Wait after a refusal of a resource.
//!
//! A server that sends times spreads them. If it sends none, as an older server, the client spreads its own wait.
//! Otherwise all clients that are refused together after an outage would return together again and again.

use std::time::Duration;

/// Longest wait until a refresh, whatever a server asks for. With an interval of an hour, set by mistake, a client
/// would not notice the correction for an hour. Refusals may not ask for a longer wait either.
pub(super) const REFRESH_MAX: Duration = Duration::from_secs(60);

/// Shortest wait that a server may ask for.
const TOLD_MIN: Duration = Duration::from_millis(100);

/// Shortest wait for a server that waits for its parent, and sends no time.
const NOT_READY: Duration = Duration::from_secs(1);

/// Shortest wait after any other refusal.
const REFUSED: Duration = Duration::from_secs(5);

/// Known facts about the next try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// Time that the server sent.
    pub(super) told: Option<Duration>,
    /// Random number, uniform in 0…1.
    pub(super) chance: f64,
}

impl Retry {
    /// Returns the wait. `usual` is the refresh interval of a client with a valid lease.
    pub(super) fn wait(self, is_not_ready: bool, usual: Duration) -> Duration {
        let spread = |part: Duration| part.mul_f64(self.chance.clamp(0.0, 1.0));
        match self.told {
            Some(told) => told.clamp(TOLD_MIN, REFRESH_MAX),
            None if is_not_ready => NOT_READY + spread(NOT_READY),
            None => usual.max(REFUSED + spread(REFUSED / 4)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(told: Option<u64>, is_not_ready: bool, usual: u64, expected: [u64; 3]) {
        let waits = [0.0, 0.5, 1.0].map(|chance| {
            let told = told.map(Duration::from_millis);
            let retry = Retry { told, chance };
            retry.wait(is_not_ready, Duration::from_millis(usual))
        });
        assert_eq!(waits, expected.map(Duration::from_millis));
    }

    #[test]
    fn a_servers_time_is_obeyed_within_bounds_and_otherwise_the_wait_is_spread() {
        check(None, true, 0, [1_000, 1_500, 2_000]);
        check(None, true, 30_000, [1_000, 1_500, 2_000]);
        check(None, false, 0, [5_000, 5_625, 6_250]);
        check(None, false, 6_000, [6_000, 6_000, 6_250]);
        check(None, false, 30_000, [30_000; 3]);
        for is_not_ready in [true, false] {
            check(Some(1_618), is_not_ready, 30_000, [1_618; 3]);
            check(Some(0), is_not_ready, 30_000, [100; 3]);
            check(Some(u64::MAX), is_not_ready, 30_000, [60_000; 3]);
        }
    }
}
