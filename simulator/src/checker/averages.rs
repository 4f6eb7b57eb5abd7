//! Averages over the time after the run has settled.
//!
//! They are integrals, not means of samples: every change updates them first. So they do not depend
//! on the sampling interval, and a pattern in step with the samples does not distort them.

use doorward_engine::time::Time;

use crate::recording::Sample;

/// Integrals over time; the unit is seconds times the unit of the figure.
#[derive(Debug, Default)]
pub(super) struct Averages {
    /// End of the time that the integrals cover.
    pub(super) since: Time,
    pub(super) time: f64,
    /// Seconds in which clients could use something.
    pub(super) usable_time: f64,
    pub(super) utilisation: f64,
    pub(super) granted: f64,
    pub(super) wanted: f64,
    pub(super) got: f64,
    pub(super) scarce: f64,
    pub(super) wanting: f64,
    pub(super) short: f64,
}

impl Averages {
    /// Adds the time until now, during which `state` held; `has_total`: all clients share the
    /// capacity. Returns the unused part of what could be used, in seconds.
    pub(super) fn add(&mut self, state: &Sample, has_total: bool, now: Time) -> f64 {
        let time = now.since(self.since).as_secs_f64();
        self.since = now;
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
        self.wanting += time * state.wanting as f64;
        self.short += time * state.short as f64;
        lost
    }
}
