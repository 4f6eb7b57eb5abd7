//! The speed of a service.

use doorward_limits::Moment;

/// Time constant over which the speed of the service is averaged.
const SPEED_SECONDS: f64 = 2.0;

/// Speed at which the service works off cost while requests wait.
#[derive(Debug, Default)]
pub(super) struct Speed {
    work: f64,
    seconds: f64,
    /// End of the last request, if others waited.
    since: Option<Moment>,
}

impl Speed {
    pub(super) fn record(&mut self, cost: u64, is_limited: bool, now: Moment) {
        if let Some(since) = self.since {
            // However long a stall was, it counts as one time constant.
            let seconds = (now.nanos_since(since) as f64 / 1e9).min(SPEED_SECONDS);
            let kept = (-seconds / SPEED_SECONDS).exp();
            self.work = self.work * kept + cost as f64;
            self.seconds = self.seconds * kept + seconds;
        }
        self.since = is_limited.then_some(now);
    }

    /// Returns the cost in a nanosecond; infinite if it is unknown.
    pub(super) fn per_nano(&self) -> f64 {
        if self.seconds > 0.0 && self.work > 0.0 {
            self.work / (self.seconds * 1e9)
        } else {
            f64::INFINITY
        }
    }
}
