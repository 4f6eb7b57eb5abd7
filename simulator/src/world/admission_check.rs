//! What a limiter admits, against what it may. Of a rate limiter that is in any span of time what the rates in
//! force gave in it, and one burst, or one request if that is larger; of a concurrency limiter, with whatever it
//! admits, no more in flight than there may be at that moment.
//!
//! Of rates it is computed from the allowances alone: what came in and what was admitted since each moment are at
//! most a burst apart, so the largest difference over all spans is that of a running maximum.

use doorward_client::capacity::Allowance;
use doorward_client::limiter::rate::Burst;
use doorward_client::time::Time;

/// What rounding may add to sums, relative to them.
const ROUNDING: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionCheck {
    allowance: Allowance,
    /// Up to when all was taken into account.
    at: Time,
    /// What was admitted beyond what came in, since the moment for which that is most.
    balance: f64,
    /// The largest burst of the rates in force since all that had come in was last used up.
    burst: f64,
    /// The most that was admitted beyond a burst, or beyond what may be in flight, as a part of that.
    pub(crate) worst: f64,
}

impl AdmissionCheck {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            allowance: Allowance::NONE,
            at: now,
            balance: 0.0,
            burst: 0.0,
            worst: 0.0,
        }
    }

    pub(crate) fn handle_allowance(&mut self, allowance: Allowance, now: Time) {
        self.pass(now);
        self.allowance = allowance;
    }

    pub(crate) fn note_admitted(&mut self, cost: f64, now: Time) {
        self.pass(now);
        let rate = self.allowance.at(now).get();
        if rate.is_infinite() {
            // Everything may be.
            self.balance = 0.0;
            return;
        }
        if self.balance <= 0.0 {
            self.burst = 0.0;
        }
        let span = Burst::default().span.as_secs_f64();
        self.burst = self.burst.max(cost + rate * span);
        self.balance += cost;
        let over = self.balance / self.burst - 1.0;
        // At a rate of 0 nothing may be admitted at all.
        let over = if rate > 0.0 || cost == 0.0 { over } else { 1.0 };
        if over > ROUNDING {
            self.worst = self.worst.max(over);
        }
    }

    /// Permits were taken: with them, so much is in flight.
    pub(crate) fn note_taken(&mut self, in_flight: f64, now: Time) {
        let most = self.allowance.at(now).get();
        let over = if most > 0.0 {
            in_flight / most - 1.0
        } else {
            1.0
        };
        if over > ROUNDING {
            self.worst = self.worst.max(over);
        }
    }

    /// What came in since.
    fn pass(&mut self, now: Time) {
        let before = self.at;
        self.at = now.max(before);
        let turn = self
            .allowance
            .until
            .map_or(now, |until| until.clamp(before, now.max(before)));
        for (from, to) in [(before, turn), (turn, now)] {
            if to > from {
                let came = self.allowance.at(from).get() * to.since(from).as_secs_f64();
                self.balance = (self.balance - came).max(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
