//! Blocks: some requests in the order of admission, which tell early whether requests are slow.
//!
//! A block is judged as soon as enough of its requests were fast, or all of them had the time to be. So a limit does not
//! wait for the end of requests that are slow because too many are in flight.

use doorward_limits::Moment;

use super::window::{BIAS, End, SLOW};

/// Number of requests in a block: if few are in flight, and else.
const LEN: (usize, usize) = (8, 16);

/// Share of slow ones that makes a block slow.
const SLOW_SHARE: f64 = 0.75;

/// The last admitted requests.
#[derive(Debug, Default)]
pub(super) struct Block {
    began: Moment,
    /// Number of requests whose shortest usual latency is known, and the sum of those latencies in seconds.
    admitted: usize,
    seconds: f64,
    /// When the last one was admitted, if there are enough.
    filled_at: Option<Moment>,
    /// Number of them that ended and were not slow.
    fast: usize,
    /// Number of all requests that came, that had to wait or were refused, and that ended meanwhile.
    pub(super) arrivals: u32,
    pub(super) pressed: u32,
    ends: u32,
}

/// Verdict of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub(super) is_slow: bool,
    /// Whether half of the requests had to wait, or were refused.
    pub(super) is_limited: bool,
    /// Number of requests in flight that would do the same throughput if none was slow (Little's law).
    pub(super) useful: f64,
}

impl Block {
    pub(super) fn new(began: Moment) -> Self {
        Self {
            began,
            ..Self::default()
        }
    }

    pub(super) fn admit(&mut self, best: f64, in_flight: u32, now: Moment) {
        if self.filled_at.is_none() {
            let is_small = in_flight <= 2 * LEN.0 as u32;
            let enough = if is_small { LEN.0 } else { LEN.1 };
            self.admitted += 1;
            self.seconds += best;
            self.filled_at = (self.admitted >= enough).then_some(now);
        }
    }

    pub(super) fn end(&mut self, end: &End, noise: f64) {
        self.ends += 1;
        let is_after = self.filled_at.is_some_and(|at| end.admitted_at > at);
        let is_mine = end.admitted_at >= self.began && !is_after;
        self.fast += usize::from(is_mine && end.has_best && !end.is_slow(noise));
    }

    /// Returns what the block tells, if it is clear already. `noise`: the deviation of latencies.
    pub(super) fn judge(&self, noise: f64, now: Moment) -> Option<Verdict> {
        let filled_at = self.filled_at?;
        let best = self.seconds / self.admitted as f64;
        let is_slow = self.fast as f64 <= (1.0 - SLOW_SHARE) * self.admitted as f64;
        let seconds = best * (SLOW + BIAS * noise).exp();
        if is_slow && (now.nanos_since(filled_at) as f64) < seconds * 1e9 {
            return None;
        }
        let span = now.nanos_since(self.began) as f64 / 1e9;
        Some(Verdict {
            is_slow,
            is_limited: 2 * self.pressed >= self.arrivals,
            useful: f64::from(self.ends) / span * best,
        })
    }
}
