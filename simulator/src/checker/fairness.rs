//! Distance of all clients from the ideal. It looks now and then for averages, often while a shift
//! is not over, and at the times by which clients must have their share: some time after the last
//! fault, or after the last change of demand where no faults happen. Each look goes over all
//! clients.

use doorward_engine::time::Time;

use crate::checker::ideal::Ideal;
use crate::checker::{ClientStanding, Extreme, ROUNDING, Watched, convergence};
use crate::recording::part;

/// Distances from the ideal since the run has settled.
#[derive(Debug, Default)]
pub(super) struct Fairness {
    /// Number of looks.
    pub(super) count: u32,
    /// Looks at which something could be used; the sum of the distances at these looks, as parts of
    /// what could be used; and looks at which all clients were at rest.
    pub(super) usable: u32,
    pub(super) unfair: f64,
    pub(super) at_rest: u32,
    /// Largest distance at a time by which clients must have their share, as a part of what all
    /// should have, and that time.
    pub(super) settled_worst: Extreme<f64>,
}

impl Watched {
    pub(super) fn ideal(&self) -> Ideal {
        let standings = self.standings.iter().filter(|standing| !standing.is_gone);
        let wishes = standings.map(|standing| standing.wish);
        Ideal::of(&self.algorithm, self.capacity(), wishes)
    }

    /// Returns half the sum of all clients' distances from the ideal.
    pub(super) fn distance(&self, ideal: &Ideal) -> f64 {
        let off =
            |standing: &ClientStanding| (standing.lease.get() - ideal.share(standing.wish)).abs();
        self.standings.iter().map(off).sum::<f64>() / 2.0
    }

    /// Returns a lower bound of that distance: any surplus or deficit of the total is a distance of
    /// some clients.
    fn distance_min(&self) -> f64 {
        if !self.overshoot.has_total() {
            return 0.0;
        }
        let ideally = self.sums.wishes.rounded_down().min(self.capacity());
        (self.sums.leases.rounded_down() - ideally).abs() / 2.0 * (1.0 - ROUNDING)
    }

    /// Measures the distance of all clients from the ideal.
    pub fn look_at_all(&mut self, now: Time) {
        if now < self.settled_after {
            return;
        }
        let ideal = self.ideal();
        let (unfair, usable) = (self.distance(&ideal), self.usable());
        self.fairness.count += 1;
        if usable > 0.0 {
            self.fairness.usable += 1;
            self.fairness.unfair += unfair / usable;
        }
        self.fairness.at_rest += u32::from(convergence::is_rest(unfair, usable));
        for (standing, account) in self.standings.iter().zip(self.accounts.iter_mut()) {
            account.shortage.ideal += ideal.share(standing.wish);
        }
    }

    /// Measures the distance at a time by which all clients must have their share.
    pub(crate) fn note_settled(&mut self, now: Time) {
        let ideal = self.ideal();
        let shares = self.standings.iter().map(|it| ideal.share(it.wish));
        let distance = self.distance(&ideal);
        // If nothing can be used, any lease is wrong.
        let of_nothing = if distance > 0.0 { 1.0 } else { 0.0 };
        let part = part(distance, shares.sum(), of_nothing);
        self.fairness.settled_worst.note(part, now);
    }

    /// Returns whether a shift of demand or capacity is not over.
    pub(crate) fn is_restless(&self) -> bool {
        self.convergence.pending.is_some()
    }

    /// Checks whether clients are at rest again.
    pub fn settle(&mut self, now: Time) {
        let usable = self.usable();
        // While the total is too small, as in learning mode, a look at every client is unnecessary.
        if self.is_restless() && convergence::is_rest(self.distance_min(), usable) {
            let unfair = self.distance(&self.ideal());
            self.convergence.settle(unfair, usable, now);
        }
    }
}
