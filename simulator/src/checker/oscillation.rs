//! Counts how often a client's grant turns, up after down or down after up, while no demand
//! changes.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::templates::Algorithm;
use doorward_engine::time::Time;

use crate::recording::part;

/// Smallest turn that counts, as a part of the grant.
const TURN: f64 = 0.01;

/// Direction of a client's grant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Last extreme of the grant, and whether the grant rises from there.
    extreme: f64,
    rises: bool,
}

#[derive(Debug, Default)]
pub(super) struct Oscillation {
    pub(super) settled_after: Time,
    count: u64,
    quiet_for: Duration,
    quiet_since: Time,
}

impl Oscillation {
    /// Notes that demand or capacity changed. Grants may follow for two refresh intervals.
    pub(super) fn note_unrest(&mut self, algorithm: &Algorithm, now: Time) {
        self.finish(now);
        self.quiet_since = now + algorithm.refresh_interval * 2;
    }

    /// Notes the present grant of a client.
    pub(super) fn note(&mut self, course: &mut Course, lease: Amount, now: Time) {
        let is_quiet = now >= self.quiet_since.max(self.settled_after);
        if course.turns(lease) && is_quiet {
            self.count += 1;
        }
    }

    /// Adds the quiet time until now.
    pub(super) fn finish(&mut self, now: Time) {
        self.quiet_for += now.since(self.quiet_since.max(self.settled_after));
    }

    /// Returns turns per client and minute of quiet.
    pub(super) fn per_minute(&self, clients: u32) -> f64 {
        let minutes = self.quiet_for.as_secs_f64() / 60.0;
        let (turns, clients) = (self.count as f64, f64::from(clients));
        part(part(turns, clients, 0.0), minutes, 0.0)
    }
}

impl Course {
    /// Returns whether the grant has turned.
    fn turns(&mut self, lease: Amount) -> bool {
        let now = lease.get();
        let goes_on = match self.rises {
            true => now >= self.extreme,
            false => now <= self.extreme,
        };
        if goes_on {
            self.extreme = now;
            return false;
        }
        let turns = (now - self.extreme).abs() > TURN * self.extreme.max(now);
        if turns {
            self.rises = !self.rises;
            self.extreme = now;
        }
        turns
    }
}
