//! The clock of the layers, and their chance. No other file reads them.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_limits::Moment;
use tokio::time::Instant;

/// Start of this process by both clocks.
static START: OnceLock<(Instant, Duration)> = OnceLock::new();

/// Returns the time since 1970. It never goes back: after its first call, the wall clock counts no more. In tests with
/// paused time, it is that of tokio's timers.
#[expect(
    clippy::disallowed_methods,
    reason = "the only reader of the wall clock"
)]
pub(crate) fn since_epoch() -> Duration {
    let (start, since_epoch) = START.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), since_epoch.unwrap_or_default())
    });
    let now = Instant::now();
    // Another test may have started the clock after the paused time of this one.
    let before = start.duration_since(now);
    (*since_epoch + now.duration_since(*start)).saturating_sub(before)
}

/// Returns the time for rules: nanoseconds since 1970.
pub(crate) fn moment() -> Moment {
    Moment::ORIGIN.after(since_epoch())
}

/// Draws a number, by the random keys that std gives its hash tables.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a random part of a time.
pub(crate) fn part_of(time: Duration) -> Duration {
    time.mul_f64(random() as f64 / u64::MAX as f64)
}
