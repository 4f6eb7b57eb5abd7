//! Averages over the time after the run has settled.
//!
//! They are integrals, not means of samples: every change updates them first. So they do not depend
//! on the sampling interval, and a pattern in step with the samples does not distort them.

use doorward_engine::time::Time;

/// State of all clients between two changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientSums {
    pub(super) capacity: f64,
    /// Whether all clients share that capacity.
    pub(super) has_total: bool,
    pub(super) demand: f64,
    pub(super) granted: f64,
    pub(super) used: f64,
    pub(super) usable: f64,
    pub(super) wanting: usize,
    pub(super) short: usize,
}

/// Integrals over time; the unit is seconds times the unit of the figure.
#[derive(Debug, Default)]
pub(super) struct Averages {
    /// End of the time that the integrals cover.
    since: Time,
    time: f64,
    usable_time: f64,
    utilisation: f64,
    granted: f64,
    wanted: f64,
    got: f64,
    scarce: f64,
    wanting: f64,
    short: f64,
}

impl Averages {
    pub(super) fn new(settled_after: Time) -> Self {
        Self {
            since: settled_after,
            ..Self::default()
        }
    }

    /// Adds the time until now, during which `state` held. Returns the unused part of what could be
    /// used, in seconds.
    pub(super) fn advance(&mut self, now: Time, state: impl FnOnce() -> ClientSums) -> f64 {
        if now <= self.since {
            return 0.0;
        }
        let time = now.since(self.since).as_secs_f64();
        self.since = now;
        let state = state();
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
            self.granted += time * if state.has_total { part.min(1.0) } else { part };
        }
        self.wanted += time * state.demand;
        self.got += time * state.used;
        if state.demand > state.capacity {
            self.scarce += time;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of clients")]
        let (wanting, short) = (state.wanting as f64, state.short as f64);
        self.wanting += time * wanting;
        self.short += time * short;
        lost
    }

    /// Returns for how many seconds clients could use something.
    pub(super) const fn usable_time(&self) -> f64 {
        self.usable_time
    }

    /// Returns the mean used part of what could be used; 1 if nothing could be used.
    pub(super) fn utilisation(&self) -> f64 {
        part(self.utilisation, self.usable_time, 1.0)
    }

    /// Returns the mean granted part of the capacity.
    pub(super) fn granted_of_capacity(&self) -> f64 {
        part(self.granted, self.time, 0.0)
    }

    /// Returns the part of all wants that clients got; 1 if no client wanted anything.
    pub(super) fn demand_met(&self) -> f64 {
        part(self.got, self.wanted, 1.0)
    }

    /// Returns the part of their wanting time in which clients were short.
    pub(super) fn clients_short(&self) -> f64 {
        part(self.short, self.wanting, 0.0)
    }

    /// Returns the part of the time in which demand exceeded the capacity.
    pub(super) fn scarce(&self) -> f64 {
        part(self.scarce, self.time, 0.0)
    }
}

fn part(sum: f64, of: f64, of_nothing: f64) -> f64 {
    if of > 0.0 { sum / of } else { of_nothing }
}
