//! Plays the demand of one client: what it wants, change by change.
//!
//! The first change is at the start; each is later than the one before it, and every amount is
//! finite, not negative and at most [`Amount::MAX`]. Curves are followed in steps: what is wanted
//! between two of them is what the curve says at the first. There may be millions of players, so
//! one remembers only where it is, and is handed its group's [`Demand`] each time.
//!
//! Sines and powers are computed in software, for those of the platform differ in the last bit from
//! one to the next. Traces are not played here: the world follows their rows.

use std::f64::consts::TAU;
use std::time::Duration;

use doorward_engine::amount::Amount;

use crate::chance::Chance;
use crate::scenario::demand::{Demand, Diurnal, Sine, Spike};

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
        let wants = wants.clamp(0.0, Amount::MAX.get());
        Some(DemandChange { at, wants })
    }

    /// Draws the start.
    fn start(&mut self, demand: &Demand) {
        self.has_started = true;
        match *demand {
            Demand::Walk { start, factor, .. } => {
                self.wants = walked(start, factor, &mut self.chance);
            }
            Demand::OnOff(it) => {
                // As likely as at any other time, so that the start is nothing special.
                let (on_s, off_s) = (it.on_for.as_secs_f64(), it.off_for.as_secs_f64());
                self.is_on = self.chance.happens(on_s / (on_s + off_s));
                self.wants = if self.is_on { it.on } else { it.off };
            }
            _ => {}
        }
    }

    /// When the next change is, counted from the start. Draws the random parts.
    fn step(&mut self, demand: &Demand, now: Duration) -> Option<Duration> {
        match *demand {
            Demand::Constant(_) | Demand::Trace(_) => None,
            Demand::Step { at, .. } => (now < at).then_some(at),
            Demand::Ramp(it) => steps_within(now, it.at, it.at.saturating_add(it.length), it.every),
            Demand::Sine(Sine { every, .. }) | Demand::Diurnal(Diurnal { every, .. }) => {
                Some(now.saturating_add(every))
            }
            Demand::Spike(Spike { at, length, .. }) => {
                let end = at.saturating_add(length);
                [at, end].into_iter().find(|change| now < *change)
            }
            Demand::FlashCrowd(it) => {
                let top = it.at.saturating_add(it.rise);
                let end = top.saturating_add(crowd_gone_after(it.half_life));
                let (from, to) = if now < top { (it.at, top) } else { (top, end) };
                steps_within(now, from, to, it.every)
            }
            Demand::Walk { factor, every, .. } => {
                self.wants = walked(self.wants, factor, &mut self.chance);
                Some(now.saturating_add(every))
            }
            Demand::OnOff(it) => {
                let lasts = if self.is_on { it.on_for } else { it.off_for };
                self.is_on = !self.is_on;
                self.wants = if self.is_on { it.on } else { it.off };
                Some(now.saturating_add(self.chance.exponential_duration(lasts)))
            }
        }
    }
}

/// Returns the amount of a curve without chance at a time.
fn value(demand: &Demand, number: u32, now: Duration) -> f64 {
    match *demand {
        Demand::Constant(wants) => wants,
        Demand::Step { from, at, .. } if now < at => from,
        Demand::Step { to, .. } => to,
        Demand::Ramp(it) => between(it.from, it.to, part(now, it.at, it.length)),
        Demand::Sine(it) => {
            let turns = now.as_secs_f64() / it.period.as_secs_f64() + it.shift * f64::from(number);
            it.mean + it.amplitude * libm::sin(turns.fract() * TAU)
        }
        Demand::Diurnal(day) => day.wants(number, now),
        Demand::Spike(it) if now < it.at || now >= it.at.saturating_add(it.length) => it.base,
        Demand::Spike(it) => it.peak,
        Demand::FlashCrowd(it) => {
            let top = it.at.saturating_add(it.rise);
            if now < top {
                return between(it.base, it.peak, part(now, it.at, it.rise));
            }
            let since = now.saturating_sub(top);
            if since >= crowd_gone_after(it.half_life) {
                return it.base;
            }
            let left = libm::exp2(-since.as_secs_f64() / it.half_life.as_secs_f64());
            it.base + (it.peak - it.base) * left
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
    (wants * chance.between(least, most)).clamp(0.0, Amount::MAX.get())
}

fn crowd_gone_after(half_life: Duration) -> Duration {
    let seconds = half_life.as_secs_f64() * -libm::log2(CROWD_GONE);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Returns the part of a time that has passed, 0…1.
fn part(now: Duration, start: Duration, length: Duration) -> f64 {
    let since = now.saturating_sub(start);
    match since >= length {
        true => 1.0,
        false => since.as_secs_f64() / length.as_secs_f64(),
    }
}

/// Exactly `to` at the end.
fn between(from: f64, to: f64, part: f64) -> f64 {
    from * (1.0 - part) + to * part
}

#[cfg(test)]
mod tests;
