//! A steady limit: rounds of two halves, one slightly below the centre and one slightly above it.

use std::f64::consts::LN_2;
use std::time::Duration;

use doorward_limits::Moment;

use super::state::{Half, Run, State};
use super::window::End;
use super::{CLEAR, ConcurrencyLimit, LIMITED, NOISE, PROBE, RANGE, TARGET};

/// Relative difference of the two windows of a steady limit from the centre.
const SPREAD: f64 = 0.08;

/// Number of requests that tell the latency of a half.
const ENOUGH: f64 = 128.0;

/// Limit below which one round tells whether more requests at once are as fast.
const FEW: f64 = 3.0;

/// Limit below which the two windows are at neighbouring whole numbers.
pub(super) const SMALL: f64 = 6.0;

/// Largest step up of a limit below that.
const SMALL_STEP: f64 = 0.75;

/// Change of the centre for a difference of 1 from the target, relative to the distance of the halves.
const GAIN: f64 = 0.3;

/// Number of rounds in one direction after which steps double.
const RUN: u32 = 3;

/// Largest number of doublings.
const DOUBLINGS: u32 = 3;

/// Elasticity from which on more requests at once end more slowly in all, and the step down then, relative to the distance
/// of the halves.
const COLLAPSE: (f64, f64) = (2.0, 0.6);

/// Range of the upper half, as a part of the ceiling, in which steps do not double and the limit does not open; and the
/// part up to which it grows soon after a collapse.
const NEAR: (f64, f64) = (0.7, 1.1);
const KEPT: f64 = 0.95;

/// The same share from which on a limit grows that is reached now and then, by requests that are not slow.
const SELDOM: f64 = 0.05;

impl ConcurrencyLimit {
    /// Collects the windows of a round.
    pub(super) fn handle_steady(&mut self, end: &End, usual: Duration, now: Moment) {
        let State::Steady { half, first, run } = self.state else {
            return;
        };
        // Of a small limit, the halves are further apart, and fewer requests tell their difference.
        let (low, high) = self.halves();
        let spread = (high / low).ln() / (2.0 * SPREAD);
        let noise = (self.noise / NOISE.0).powi(2).clamp(NOISE.1, NOISE.2);
        let enough = (ENOUGH * noise / spread.powi(2)).max(PROBE.1) as usize;
        let age = Duration::from_nanos(now.nanos_since(self.window.began));
        // A request that ends earlier has mostly run under the other half. Of few at once, all have to begin under this
        // one, so a usual latency that is out of date does not matter.
        let is_few = low < FEW;
        if is_few && end.admitted_at < self.window.began || !is_few && age < usual {
            return;
        }
        let latency = end.ratio.ln();
        self.window.push(end, latency, self.noise, 4 * enough);
        let is_young = !is_few && age < 2 * usual;
        if self.window.len() < enough || is_young {
            return;
        }
        let seen = self.take(now);
        let in_flight = seen.in_flight.ln();
        match first {
            // The next round begins with the upper half, which is less of a limit.
            _ if seen.limited < LIMITED => {
                if seen.limited >= SELDOM && seen.excess < LN_2 {
                    self.centre = (self.centre * (1.0 + SPREAD / 2.0)).min(RANGE.1);
                }
                self.begin(Half::High, run);
            }
            None => {
                let half = half.other();
                let first = Some((seen.latency, in_flight));
                self.state = State::Steady { half, first, run };
            }
            Some((then, others)) => {
                let grown = (seen.latency - then, in_flight - others);
                self.step((half, run), grown, usual, now);
            }
        }
    }

    /// Moves the centre. `grown`: the logarithms of the growth of latency and of the number of requests in flight from
    /// the first half to the second.
    fn step(&mut self, (half, run): (Half, Run), grown: (f64, f64), usual: Duration, now: Moment) {
        let (low, high) = self.halves();
        let apart = (high / low).ln();
        // If requests in flight do not follow the limit, some never end: more have to pass.
        let follows = grown.1.abs() >= apart / 4.0;
        let elasticity = if follows { grown.0 / grown.1 } else { 0.0 };
        if !elasticity.is_finite() {
            return self.begin(half, run);
        }
        let difference = (TARGET - elasticity).clamp(-1.0, 1.0);
        let grows = difference > 0.0;
        let before = if run.grows == grows {
            run
        } else {
            Run {
                grows,
                ..Run::default()
            }
        };
        let run = Run {
            length: before.length + 1,
            sum: before.sum + if follows { difference } else { 0.0 },
            ..before
        };
        // Neighbouring small limits differ so much that one round tells.
        let is_clear = follows && low < FEW && difference > CLEAR
            || run.length >= RUN && run.sum > CLEAR * f64::from(run.length);
        let is_small = self.centre < SMALL;
        let collapses = !is_small && elasticity >= COLLAPSE.0;
        if collapses {
            (self.ceiling, self.failed_at) = (high, now);
        }
        let near = NEAR.0 * self.ceiling..NEAR.1 * self.ceiling;
        let is_near = !is_small && near.contains(&high);
        if is_clear && self.has_waited(usual, now) && !is_near {
            return self.open(self.centre);
        }
        let doublings = match is_near {
            true => 0,
            false => run.length.saturating_sub(RUN).min(DOUBLINGS),
        };
        let step = match is_small {
            // One place too few costs more than one too many.
            true if grows => (difference * SMALL_STEP / self.centre).ln_1p(),
            true if low < FEW => GAIN * apart * difference,
            _ if collapses => -COLLAPSE.1 * apart,
            _ => GAIN * apart * difference * f64::from(1 << doublings),
        };
        let most = match is_small || self.has_waited(usual, now) {
            true => RANGE.1,
            false => KEPT * self.ceiling / (1.0 + SPREAD),
        };
        self.centre = (self.centre * step.exp()).clamp(RANGE.0, most.max(RANGE.0));
        // The halves change places from round to round.
        self.begin(half, run);
    }

    /// Returns the limits of both halves.
    pub(super) fn halves(&self) -> (f64, f64) {
        if self.centre < SMALL {
            let low = self.centre.round().max(RANGE.0);
            return (low, low + 1.0);
        }
        (self.centre * (1.0 - SPREAD), self.centre * (1.0 + SPREAD))
    }
}
