//! Limits that are open or falling: windows of requests at one limit, which are compared with those at another one.

use std::time::Duration;

use doorward_limits::Moment;

use super::state::{Cut, Drained, State};
use super::steady::SMALL;
use super::window::{BIAS, End, SLOW, Seen, Window};
use super::{
    CHANGED, ConcurrencyLimit, FACTORS, LIMITED, NOISE, OPEN, PROBE, RANGE, TARGET, UNKNOWN,
};

impl ConcurrencyLimit {
    /// Collects a window of requests that were admitted at this limit, and compares it with the one before.
    pub(super) fn handle_probe(&mut self, end: &End, usual: Duration, now: Moment) {
        let is_there = if let State::Falling(cut) = self.state {
            // One is admitted for two that end.
            self.open = (self.open - 0.5).max(self.centre);
            let is_there = self.open == self.centre && end.in_flight <= self.limit() + 1;
            if !is_there && self.has_waited(usual, now) {
                // Requests that do not end keep the places.
                self.open(cut.back);
                self.failed_at = now;
            }
            is_there
        } else {
            if end.is_short {
                self.centre = self.centre.min(f64::max(OPEN.0, OPEN.1 * self.peak));
            }
            let more = if end.has_best || self.round > 1 {
                1.0
            } else {
                UNKNOWN
            };
            self.open = (self.open + more).min(self.centre);
            end.is_limited && self.open == self.centre
        };
        if !is_there && self.window.len() == 0 {
            self.window = Window::new(now);
        }
        if end.admitted_at < self.window.began {
            if let State::Falling(cut) = &mut self.state {
                cut.drained.count += 1.0;
                cut.drained.excess += end.excess;
                cut.drained.late += f64::from(u8::from(end.is_late));
            }
            return;
        }
        let noise = (self.noise / NOISE.0).powi(2).clamp(1.0, NOISE.2);
        let enough = (noise * (2.0 * self.centre).clamp(PROBE.0, PROBE.1)) as usize;
        self.window.push(end, end.excess, self.noise, enough);
        if self.window.len() < enough {
            return;
        }
        let seen = self.take(now);
        match self.state {
            State::Falling(cut) => self.judge_cut(cut, &seen, now),
            State::Open { latency, most } => {
                if seen.limited < LIMITED {
                    let latency = None;
                    self.state = State::Open { latency, most };
                } else if self.is_alike(latency, &seen) {
                    let was_steady = latency.is_none() && self.round > 1;
                    let factor = match was_steady && self.centre >= SMALL {
                        true => FACTORS.0,
                        false => FACTORS.1,
                    };
                    self.rise(seen.latency, most, factor);
                } else {
                    self.end_rise(latency, &seen, end.in_flight, now);
                }
            }
            State::Steady { .. } => {}
        }
    }

    /// Returns whether requests are about as fast as at the lower limit.
    fn is_alike(&self, latency: Option<(f64, f64)>, seen: &Seen) -> bool {
        let (grown, apart) = self.grown(latency, seen);
        grown <= CHANGED * apart
    }

    /// Returns the logarithms of the growth of latency since a lower limit, and of that of the limit.
    fn grown(&self, latency: Option<(f64, f64)>, seen: &Seen) -> (f64, f64) {
        let (then, lower) = latency.unwrap_or((BIAS * self.noise, self.centre / 2.0));
        (seen.latency - then, (self.centre / lower).ln())
    }

    /// Ends the growth of an open limit, at which requests are slower.
    fn end_rise(&mut self, latency: Option<(f64, f64)>, seen: &Seen, in_flight: u32, now: Moment) {
        let (grown, apart) = self.grown(latency, seen);
        let is_known = latency.is_some();
        if self.round == 1 && (!is_known || grown >= TARGET * apart) {
            let cut = self.cut(1.0, Some(seen.latency));
            return self.fall(in_flight, seen.latency.exp(), cut, now);
        }
        if is_known {
            self.centre = (self.centre / grown.min(apart).exp()).max(RANGE.0);
            if grown >= TARGET * apart {
                self.failed_at = now;
            }
        }
        self.settle();
    }

    /// Looks whether requests are faster since the limit was cut.
    fn judge_cut(&mut self, cut: Cut, seen: &Seen, now: Moment) {
        let drained = cut.drained;
        // At least, it was that of slow requests.
        let slow = (drained.excess / drained.count.max(1.0)).max(SLOW + BIAS * self.noise);
        let latency = cut.latency.unwrap_or(slow);
        let elasticity = (latency - seen.latency) / (cut.before / self.centre).ln();
        // Callers that give up cut latencies off.
        let is_late = seen.late >= 0.5;
        let is_faster = elasticity >= CHANGED || 2.0 * drained.late > drained.count && !is_late;
        if is_faster {
            self.rise(seen.latency, cut.most, FACTORS.1);
        } else if is_late && self.centre > RANGE.0 {
            let next = Cut {
                latency: Some(seen.latency),
                drained: Drained::default(),
                ..cut
            };
            self.fall(self.centre as u32, seen.latency.exp(), next, now);
        } else {
            // Fewer requests at once are as slow. So this is their usual latency now, unless it is too long for callers.
            self.level += if seen.latency.is_finite() {
                seen.latency
            } else {
                0.0
            };
            self.open(cut.back);
        }
    }
}
