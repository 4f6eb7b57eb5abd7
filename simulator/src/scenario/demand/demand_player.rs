//! Plays the demand of one client: what it wants, change by change.
//!
//! The first change is at the start; each is later than the one before it, and every amount is
//! finite, not negative and at most [`EngineAmount::MAX`]. Curves are followed in steps: what is wanted
//! between two of them is what the curve says at the first. There may be millions of players, so
//! one remembers only where it is, and is handed its group's [`Demand`] each time.
//!
//! Sines and powers are computed in software, for those of the platform differ in the last bit from
//! one to the next. Traces are not played here: the world follows their rows.

use std::f64::consts::TAU;
use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;

use crate::chance::Chance;
use crate::scenario::demand::{Demand, steps_of};
use crate::scenario::forms::{Amount, Step, Time};

/// A crowd is gone when this part of it is left.
const CROWD_GONE: f64 = 1e-3;

/// From then on a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemandChange {
    /// From the start of the simulation.
    pub at: Duration,
    /// The amount.
    pub wants: f64,
}

/// Where a client is in what it will want.
#[derive(Clone, Debug)]
pub struct DemandPlayer {
    chance: Chance,
    /// Time of the last change, in nanoseconds.
    last: u64,
    /// Amount of demand that depends on chance.
    wants: f64,
    /// Its place in its group.
    number: u32,
    has_started: bool,
    /// Whether a demand of two amounts is at the first.
    is_on: bool,
}

impl DemandPlayer {
    /// A client at the start; `number` is its place in its group.
    pub fn new(number: usize, chance: Chance) -> Self {
        Self {
            chance,
            last: 0,
            wants: 0.0,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            has_started: false,
            is_on: false,
        }
    }

    /// The next change. None: what is wanted stays as it is.
    pub fn next_change(&mut self, demand: &Demand) -> Option<DemandChange> {
        let last = Duration::from_nanos(self.last);
        let at = if self.has_started {
            // Later in any case, whatever was rounded away.
            self.step(demand, last)?.max(last + Duration::from_nanos(1))
        } else {
            self.start(demand);
            last
        };
        // A change in more than 584 years never comes, and none follows it.
        self.last = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let wants = match demand {
            Demand::Trace(_) => return None,
            _ if self.last == u64::MAX => return None,
            Demand::Walk { .. } | Demand::OnOff(_) => self.wants,
            curve => value(curve, self.number, at),
        };
        let wants = if wants.is_finite() { wants } else { 0.0 };
        let wants = wants.clamp(0.0, EngineAmount::MAX.get());
        Some(DemandChange { at, wants })
    }

    /// Draws the start.
    fn start(&mut self, demand: &Demand) {
        self.has_started = true;
        match *demand {
            Demand::Walk { start, factor, .. } => {
                self.wants = walked(start.0, factor, &mut self.chance);
            }
            Demand::OnOff(it) => {
                // As likely as at any other time, so that the start is nothing special.
                let (on_s, off_s) = (it.on_for.0.as_secs_f64(), it.off_for.0.as_secs_f64());
                self.is_on = self.chance.happens(on_s / (on_s + off_s));
                self.wants = if self.is_on { it.peak.0 } else { it.base.0 };
            }
            _ => {}
        }
    }

    /// When the next change is, counted from the start. Draws the random parts.
    fn step(&mut self, demand: &Demand, now: Duration) -> Option<Duration> {
        match *demand {
            Demand::Constant(_) | Demand::Trace(_) => None,
            Demand::Step { at, .. } => (now < at.0).then_some(at.0),
            Demand::Ramp(it) => {
                let end = it.at.0.saturating_add(it.over.0);
                steps_within(now, it.at.0, end, steps_of(it.every, it.over, 20))
            }
            Demand::Sine(it) => Some(now.saturating_add(steps_of(it.every, it.period, 100))),
            Demand::Diurnal(day) => Some(now.saturating_add(steps_of(day.every, day.period, 100))),
            Demand::Spike(it) => {
                let end = it.at.0.saturating_add(it.length.0);
                [it.at.0, end].into_iter().find(|change| now < *change)
            }
            Demand::FlashCrowd(it) => {
                let top = it.at.0.saturating_add(it.rise.0);
                let end = top.saturating_add(crowd_gone_after(it.half_life.0));
                let (from, to) = if now < top {
                    (it.at.0, top)
                } else {
                    (top, end)
                };
                let every = steps_of(it.every, it.rise.min(it.half_life), 10);
                steps_within(now, from, to, every)
            }
            Demand::Walk { factor, every, .. } => {
                self.wants = walked(self.wants, factor, &mut self.chance);
                Some(now.saturating_add(every.0))
            }
            Demand::OnOff(it) => {
                let lasts = if self.is_on { it.on_for } else { it.off_for };
                self.is_on = !self.is_on;
                self.wants = if self.is_on { it.peak.0 } else { it.base.0 };
                Some(now.saturating_add(self.chance.exponential_duration(lasts.0)))
            }
        }
    }
}

/// Returns the amount of a curve without chance at a time.
fn value(demand: &Demand, number: u32, now: Duration) -> f64 {
    match *demand {
        Demand::Constant(wants) => wants.0,
        Demand::Step { from, to, at } => {
            if now < at.0 {
                from.0
            } else {
                to.0
            }
        }
        Demand::Ramp(it) => between(it.from, it.to, part(now, it.at, it.over)),
        Demand::Sine(it) => {
            let turns = now.as_secs_f64() / it.period.0.as_secs_f64();
            let turns = turns + it.shift.0 * f64::from(number);
            it.mean.0 + it.amplitude.0 * libm::sin(turns.fract() * TAU)
        }
        Demand::Diurnal(day) => day.wants(number, now),
        Demand::Spike(it) => {
            let at = it.at.0..it.at.0.saturating_add(it.length.0);
            if at.contains(&now) {
                it.peak.0
            } else {
                it.base.0
            }
        }
        Demand::FlashCrowd(it) => {
            let top = it.at.0.saturating_add(it.rise.0);
            if now < top {
                return between(it.base, it.peak, part(now, it.at, it.rise));
            }
            let since = now.saturating_sub(top);
            if since >= crowd_gone_after(it.half_life.0) {
                return it.base.0;
            }
            let left = libm::exp2(-since.as_secs_f64() / it.half_life.0.as_secs_f64());
            it.base.0 + (it.peak.0 - it.base.0) * left
        }
        Demand::Walk { .. } | Demand::OnOff(_) | Demand::Trace(_) => 0.0,
    }
}

/// The next step of a curve that moves from `start` to `end`, where there is one in any case.
fn steps_within(now: Duration, from: Duration, end: Duration, every: Duration) -> Option<Duration> {
    // At `from` itself nothing has changed yet.
    (now < end).then(|| now.max(from).saturating_add(every).min(end))
}

fn walked(wants: f64, (least, most): (f64, f64), chance: &mut Chance) -> f64 {
    (wants * chance.between(least, most)).clamp(0.0, EngineAmount::MAX.get())
}

fn crowd_gone_after(half_life: Duration) -> Duration {
    let seconds = half_life.as_secs_f64() * -libm::log2(CROWD_GONE);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Returns the part of a time that has passed, 0…1.
fn part(now: Duration, start: Time, length: Step) -> f64 {
    let since = now.saturating_sub(start.0);
    match since >= length.0 {
        true => 1.0,
        false => since.as_secs_f64() / length.0.as_secs_f64(),
    }
}

/// Exactly `to` at the end.
fn between(from: Amount, to: Amount, part: f64) -> f64 {
    from.0 * (1.0 - part) + to.0 * part
}

#[cfg(test)]
mod tests;
