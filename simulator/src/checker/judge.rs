//! Verdicts: compares the figures of the checkers with the limits of the scenario.

use doorward_engine::time::Time;

use crate::checker::{ROUNDING, Watched};
use crate::recording::{Checker, Figures, Verdict, part};
use crate::scenario::Limits;

impl Watched {
    /// Returns averages and extremes.
    pub fn figures(&self) -> Figures {
        let (convergence, looks) = (&self.convergence, &self.fairness);
        let shifts = convergence.shifts.max(1) as f64;
        let averages = &self.averages;
        Figures {
            // Where nothing was usable or wanted, these are parts of 1.
            utilisation: part(averages.utilisation, averages.usable_time, 1.0),
            demand_met: part(averages.got, averages.wanted, 1.0),
            clients_short: part(averages.short, averages.wanting, 0.0),
            scarce: part(averages.scarce, averages.time, 0.0),
            granted_of_capacity: part(averages.granted, averages.time, 0.0),
            peak_of_capacity: self.overshoot.peak,
            peak_with_fallback: self.overshoot.peak_with_fallback,
            peak_of_safe_use: self.safe_use.peak,
            overshoot_s: self.overshoot.over_for.as_secs_f64(),
            unfairness: looks.unfair / f64::from(looks.usable.max(1)),
            restless: 1.0 - f64::from(looks.at_rest) / f64::from(looks.count.max(1)),
            shifts: convergence.shifts,
            convergence_max_s: convergence.longest.value.as_secs_f64(),
            convergence_mean_s: convergence.total.as_secs_f64() / shifts,
            unfinished_s: convergence.unfinished.as_secs_f64(),
            starvation_max_s: self.starvation.longest.value.as_secs_f64(),
            oscillation_per_minute: self.oscillation.per_minute(self.accounts.len()),
            comebacks: self.comebacks.took.len(),
            comeback_median_s: self.comebacks.median(),
            comeback_max_s: self.comebacks.longest.value.as_secs_f64(),
            not_back: self.comebacks.missing,
            waits: self.waits.parts(averages.usable_time),
            // The world knows all clients, and measures their spread.
            ..Figures::default()
        }
    }
}

/// Returns the verdict of every checker on a resource.
pub fn judge(watched: &Watched, limits: &Limits) -> Vec<Verdict> {
    let figures = watched.figures();
    // The last checkers report only if a limit asks for it, or if a server decided that was not master.
    let judged = Checker::ALL.into_iter().filter(|checker| {
        let is_usual = *checker as usize <= Checker::Oscillation as usize;
        let has_failed = *checker == Checker::Mastership && watched.mastership.answers > 0.0;
        is_usual || has_failed || limits.of(*checker).is_some()
    });
    let verdict = |checker: Checker| {
        let (value, at) = watched.found(checker, &figures);
        let limit = limits.of(checker);
        Verdict {
            checker,
            resource: watched.resource.to_string(),
            value,
            limit,
            holds: limit.is_none_or(|limit| match checker.is_at_least() {
                true => value >= limit,
                false => value <= limit,
            }),
            at_s: at.map(|at| at.since(Time::ZERO).as_secs_f64()),
        }
    };
    judged.map(verdict).collect()
}

impl Watched {
    /// Returns the value of a checker, and the time of the worst value.
    fn found(&self, checker: Checker, figures: &Figures) -> (f64, Option<Time>) {
        match checker {
            Checker::Overshoot => self.found_overshoot(),
            Checker::Nesting => (self.nesting.worst.value, self.nesting.worst.time()),
            Checker::Fairness => (figures.unfairness, None),
            Checker::Utilisation => (figures.utilisation, None),
            Checker::Convergence => (figures.convergence_max_s, self.convergence.longest.time()),
            Checker::Starvation => (figures.starvation_max_s, self.starvation.longest.time()),
            Checker::Oscillation => (figures.oscillation_per_minute, None),
            Checker::Mastership => (self.mastership.answers, self.mastership.first),
            Checker::SettledFairness => {
                let worst = self.fairness.settled_worst;
                (worst.value, worst.time())
            }
            Checker::Comeback => (figures.comeback_max_s, self.comebacks.longest.time()),
            Checker::NotBack => (figures.not_back as f64, None),
            Checker::SafeUse => self.found_safe_use(),
            Checker::Requests => (self.requests.value.into(), self.requests.time()),
        }
    }

    fn found_overshoot(&self) -> (f64, Option<Time>) {
        let (instant, span) = (self.overshoot.worst, self.immediate.worst);
        let worst = match span.value > instant.value.max(1.0) {
            true => span,
            false => instant,
        };
        let over = match worst.value > 1.0 + ROUNDING {
            true => worst.value - 1.0,
            false => 0.0,
        };
        (over, Some(worst.at))
    }

    fn found_safe_use(&self) -> (f64, Option<Time>) {
        let worst = self.safe_use.worst;
        // Rounding of a sum is not a violation.
        let part = match worst.value > 1.0 && worst.value <= 1.0 + ROUNDING {
            true => 1.0,
            false => worst.value,
        };
        (part, worst.time())
    }
}
