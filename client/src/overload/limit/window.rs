//! Ends of requests, and windows of them: those that ended at one limit.

use doorward_limits::Moment;

/// Logarithm of the latency of a slow request, relative to the shortest usual one of its operation: 2.5 times.
pub(super) const SLOW: f64 = 0.916;

/// Part of the deviation of latencies by which the shortest usual one is too short.
pub(super) const BIAS: f64 = 0.4;

/// The end of a request.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// When it was admitted.
    pub admitted_at: Moment,
    /// Its latency, relative to the usual one of its operation.
    pub ratio: f64,
    /// Logarithm of its latency, relative to the shortest usual one of its operation in the last time.
    pub excess: f64,
    /// Whether that one is known.
    pub has_best: bool,
    /// Whether its answer came after its deadline, or its caller gave up.
    pub is_late: bool,
    /// Whether its caller gave up, so its latency is a lower bound.
    pub is_cut: bool,
    /// Whether requests can wait for many times its latency.
    pub is_short: bool,
    /// Whether requests wait, or had to in the second half of its time, or were refused then.
    pub is_limited: bool,
    /// Number of requests in flight, with this one and without short ones.
    pub in_flight: u32,
}

/// Result of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Logarithm of the relative latency; infinite if most requests were slow, and did not come to their end.
    pub(super) latency: f64,
    /// Deviation of those logarithms, if it is known.
    pub(super) deviation: Option<f64>,
    /// Mean of the logarithms relative to the shortest usual latencies.
    pub(super) excess: f64,
    /// Mean number of requests in flight.
    pub(super) in_flight: f64,
    /// Share of requests that ended while others waited.
    pub(super) limited: f64,
    pub(super) late: f64,
}

/// Requests that ended at one limit.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) began: Moment,
    /// Logarithms of latencies, relative to their references.
    latencies: Vec<f64>,
    /// Sum of those relative to the shortest usual ones.
    excess: f64,
    /// Number of ends while requests waited.
    limited: usize,
    late: usize,
    /// Sum of the numbers of requests in flight.
    in_flight: f64,
}

impl End {
    /// Returns whether it took much longer than its operation does at best, or longer and too long for its caller. `noise`: the deviation of latencies.
    pub(super) fn is_slow(&self, noise: f64) -> bool {
        let slow = if self.is_late { 0.0 } else { SLOW };
        self.excess >= slow + BIAS * noise
    }
}

impl Window {
    pub(super) fn new(began: Moment) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    /// Adds an end, unless there are enough. `latency` is the logarithm of a relative one.
    pub(super) fn push(&mut self, end: &End, latency: f64, noise: f64, enough: usize) {
        if self.latencies.len() < enough {
            let is_unknown = end.is_cut && end.is_slow(noise);
            self.latencies
                .push(if is_unknown { f64::INFINITY } else { latency });
            self.excess += end.excess;
            self.limited += usize::from(end.is_limited);
            self.late += usize::from(end.is_late);
            self.in_flight += f64::from(end.in_flight);
        }
    }

    /// Returns the number of ends.
    pub(super) const fn len(&self) -> usize {
        self.latencies.len()
    }

    /// Ends this window, and begins the next one.
    pub(super) fn take(&mut self, now: Moment) -> Seen {
        let ends = self.latencies.len() as f64;
        let latency = median(&mut self.latencies);
        // Of a normal distribution, the deviation is 1.25 times the mean distance from the median.
        let finite = self.latencies.iter().filter(|it| it.is_finite());
        let distances: f64 = finite.map(|it| (it - latency).abs()).sum();
        let seen = Seen {
            latency,
            deviation: latency.is_finite().then_some(1.25 * distances / ends),
            excess: self.excess / ends,
            in_flight: self.in_flight / ends,
            limited: self.limited as f64 / ends,
            late: self.late as f64 / ends,
        };
        *self = Self::new(now);
        seen
    }
}

/// Returns the median of the values; 0 if there are none.
fn median(values: &mut [f64]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return 0.0;
    };
    *values.select_nth_unstable_by(last / 2, f64::total_cmp).1
}
