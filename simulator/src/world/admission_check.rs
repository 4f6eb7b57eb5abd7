//! Checks what a limiter admits. Over any span of time a rate limiter may admit what the rates in
//! force gave in it, plus one burst, or plus one request if that is larger. A concurrency limiter
//! may admit a request only if no more permits are then in flight than the limit at that moment.
//!
//! For rates the check needs only the allowances: over every span, admissions may exceed income by
//! at most a burst, so the largest difference is that of a running maximum.

use doorward::capacity::Allowance;
use doorward::limiter::rate::Burst;
use doorward::time::Time;

use crate::recording::part;

/// Relative error that rounding may add to sums.
const ROUNDING: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionCheck {
    pub(crate) allowance: Allowance,
    /// End of the time counted so far.
    at: Time,
    /// Largest surplus of admissions over income, over all spans that end now.
    balance: f64,
    /// Largest burst of the rates in force since income was last used up.
    burst: f64,
    /// Largest excess over a burst or over the permits in flight, as a part of it.
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
            // Without a limit everything may be admitted.
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
        // A rate of 0 admits nothing.
        let over = if rate > 0.0 || cost == 0.0 { over } else { 1.0 };
        if over > ROUNDING {
            self.worst = self.worst.max(over);
        }
    }

    /// Notes that permits were taken, and how many are in flight with them.
    pub(crate) fn note_taken(&mut self, in_flight: f64, now: Time) {
        let most = self.allowance.at(now).get();
        let over = part(in_flight, most, 2.0) - 1.0;
        if over > ROUNDING {
            self.worst = self.worst.max(over);
        }
    }

    /// Adds the income since the last change.
    fn pass(&mut self, now: Time) {
        let before = self.at;
        self.at = now.max(before);
        let until = self.allowance.until;
        let turn = until.map_or(now, |until| until.clamp(before, self.at));
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
