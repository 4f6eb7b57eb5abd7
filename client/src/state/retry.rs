//! When to ask again for a resource that was refused.
//!
//! A server that tells a time spreads those times. If it tells none, as an older one, the client spreads its own wait:
//! after an outage all clients come at once, and those that are refused together would come back together for ever.

use std::time::Duration;

/// Never refreshed slower, whatever a server says: an interval of an hour, applied by mistake, would
/// keep from us for an hour that it was taken back. Refusals, too, may ask for no longer wait.
pub(super) const REFRESH_MAX: Duration = Duration::from_secs(60);

/// How long to wait for a server that waits for its parent, at least: it tells one to two seconds itself. Nothing a server
/// tells counts as less.
const NOT_READY: Duration = Duration::from_secs(1);

/// How long to wait after any other refusal, at least.
const REFUSED: Duration = Duration::from_secs(5);

/// What is known of when to ask again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// What the server told.
    pub(super) told: Option<Duration>,
    /// Uniform in 0…1.
    pub(super) chance: f64,
}

impl Retry {
    /// The server told no time.
    pub(super) const fn untold(chance: f64) -> Self {
        Self { told: None, chance }
    }

    /// How long to wait. `usual` is how long whoever has a valid lease waits as a rule.
    pub(super) fn wait(self, is_not_ready: bool, usual: Duration) -> Duration {
        let spread = |part: Duration| part.mul_f64(self.chance.clamp(0.0, 1.0));
        match self.told {
            Some(told) => told.clamp(NOT_READY, REFRESH_MAX),
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
    fn what_a_server_tells_is_obeyed_within_bounds_and_else_the_wait_is_spread() {
        check(None, true, 0, [1_000, 1_500, 2_000]);
        check(None, true, 30_000, [1_000, 1_500, 2_000]);
        check(None, false, 0, [5_000, 5_625, 6_250]);
        check(None, false, 6_000, [6_000, 6_000, 6_250]);
        check(None, false, 30_000, [30_000; 3]);
        for is_not_ready in [true, false] {
            check(Some(1_618), is_not_ready, 30_000, [1_618; 3]);
            check(Some(0), is_not_ready, 30_000, [1_000; 3]);
            check(Some(u64::MAX), is_not_ready, 30_000, [60_000; 3]);
        }
    }
}
