//! Averages over the time after the run has settled.
//!
//! They are integrals, not means of samples: every change updates them first. So they do not depend
//! on the sampling interval, and a pattern in step with the samples does not distort them.

use doorward_engine::time::Time;

use crate::recording::{Figures, Sample, part};

/// Integrals over time; the unit is seconds times the unit of the figure.
#[derive(Debug, Default)]
pub(super) struct Averages {
    /// End of the time that the integrals cover.
    pub(super) since: Time,
    time: f64,
    /// Seconds in which clients could use something.
    pub(super) usable_time: f64,
    utilisation: f64,
    granted: f64,
    wanted: f64,
    got: f64,
    scarce: f64,
    wanting: f64,
    short: f64,
}

impl Averages {
    /// Moves on to a time. Returns the seconds to add, if any.
    pub(super) fn pass(&mut self, now: Time) -> Option<f64> {
        let time = (now > self.since).then(|| now.since(self.since).as_secs_f64())?;
        self.since = now;
        Some(time)
    }

    /// Adds that many seconds, during which `state` held; `has_total`: all clients share the
    /// capacity. Returns the unused part of what could be used, in seconds.
    pub(super) fn add(&mut self, time: f64, state: &Sample, has_total: bool) -> f64 {
        self.time += time;
        let mut lost = 0.0;
        if state.usable > 0.0 {
            self.usable_time += time;
            // While a lowered capacity comes down, clients use more than the new capacity. The
            // surplus does not compensate for idle time elsewhere.
            let utilisation = (state.used / state.usable).min(1.0);
            self.utilisation += time * utilisation;
            lost = time * (1.0 - utilisation);
        }
        if state.capacity > 0.0 {
            let part = state.granted / state.capacity;
            self.granted += time * if has_total { part.min(1.0) } else { part };
        }
        self.wanted += time * state.demand;
        self.got += time * state.used;
        if state.demand > state.capacity {
            self.scarce += time;
        }
        let (wanting, short) = (state.wanting as f64, state.short as f64);
        self.wanting += time * wanting;
        self.short += time * short;
        lost
    }

    /// Returns the figures that are averages: parts of 1 where nothing was usable or wanted.
    pub(super) fn figures(&self) -> Figures {
        Figures {
            utilisation: part(self.utilisation, self.usable_time, 1.0),
            demand_met: part(self.got, self.wanted, 1.0),
            clients_short: part(self.short, self.wanting, 0.0),
            scarce: part(self.scarce, self.time, 0.0),
            granted_of_capacity: part(self.granted, self.time, 0.0),
            ..Figures::default()
        }
    }
}
