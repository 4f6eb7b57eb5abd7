//! Verdicts: compares the figures of the checkers with the limits of the scenario.

use doorward_engine::time::Time;

use crate::checker::{MastershipChecker, ROUNDING, Watched};
use crate::recording::{Checker, Figures, Verdict};
use crate::scenario::Limits;
use doorward_pages::numbers::percent;

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

impl Watched {
    /// Returns averages and extremes.
    pub fn figures(&self) -> Figures {
        let (convergence, looks) = (&self.convergence, &self.fairness);
        #[expect(clippy::cast_precision_loss, reason = "a count for a mean")]
        let shifts = convergence.shifts.max(1) as f64;
        let unfinished = convergence.unfinished.unwrap_or_default();
        Figures {
            peak_of_capacity: self.overshoot.peak,
            peak_with_fallback: self.overshoot.peak_with_fallback,
            peak_of_safe_use: self.safe_use.peak,
            overshoot_s: self.overshoot.over_for.as_secs_f64(),
            unfairness: looks.unfair / f64::from(looks.usable.max(1)),
            restless: 1.0 - f64::from(looks.at_rest) / f64::from(looks.count.max(1)),
            shifts: convergence.shifts,
            convergence_max_s: convergence.longest.value.as_secs_f64(),
            convergence_mean_s: convergence.total.as_secs_f64() / shifts,
            unfinished_s: unfinished.as_secs_f64(),
            starvation_max_s: self.starvation.longest.value.as_secs_f64(),
            oscillation_per_minute: self.oscillation.per_minute(self.accounts.len()),
            comebacks: self.comebacks.count(),
            comeback_median_s: self.comebacks.median(),
            comeback_max_s: self.comebacks.longest.value.as_secs_f64(),
            not_back: self.comebacks.missing,
            waits: self.waits.parts(self.averages.usable_time),
            // The world knows all clients, and measures their spread.
            ..self.averages.figures()
        }
    }
}

/// Finding of a checker: its value, the time of the worst value, and a text for readers of the report.
type Finding = (f64, Option<Time>, String);

/// Returns the verdict of every checker on a resource.
pub fn judge(watched: &Watched, limits: &Limits) -> Vec<Verdict> {
    let figures = watched.figures();
    let judged = Checker::ALL.into_iter().filter(|checker| match checker {
        Checker::Overshoot
        | Checker::Nesting
        | Checker::Fairness
        | Checker::Utilisation
        | Checker::Convergence
        | Checker::Starvation
        | Checker::Oscillation => true,
        // These checkers report only if a limit asks for it or if they found something.
        Checker::Mastership => limits.of(*checker).is_some() || watched.mastership.answers > 0.0,
        Checker::SettledFairness
        | Checker::Comeback
        | Checker::NotBack
        | Checker::SafeUse
        | Checker::Requests => limits.of(*checker).is_some(),
    });
    let verdict = |checker: Checker| {
        let (value, at, detail) = watched.found(checker, &figures);
        let limit = limits.of(checker);
        Verdict {
            checker,
            resource: watched.resource.to_string(),
            value,
            limit,
            holds: limit.is_none_or(|limit| holds(checker, value, limit)),
            at_s: at.map(seconds),
            detail,
        }
    };
    judged.map(verdict).collect()
}

fn holds(checker: Checker, value: f64, limit: f64) -> bool {
    checker.bound().holds(value, limit)
}

impl Watched {
    fn found(&self, checker: Checker, figures: &Figures) -> Finding {
        match checker {
            Checker::Overshoot => self.found_overshoot(figures),
            Checker::Nesting => {
                let worst = self.nesting.worst;
                let detail =
                    "use below a node beyond its parent's reservation, as a part of the capacity";
                (worst.value, worst.time(), detail.to_owned())
            }
            Checker::Fairness => {
                let unfairness = percent(figures.unfairness);
                let detail =
                    format!("on average {unfairness} is with other clients than in the ideal");
                (figures.unfairness, None, detail)
            }
            Checker::Utilisation => {
                let utilisation = percent(figures.utilisation);
                let detail = format!("on average {utilisation} of the usable capacity was used");
                (figures.utilisation, None, detail)
            }
            Checker::Convergence => self.found_convergence(figures),
            Checker::Starvation => {
                let longest = self.starvation.longest;
                let detail = "longest time in which a client had no lease and wanted one";
                (figures.starvation_max_s, longest.time(), detail.to_owned())
            }
            Checker::Oscillation => {
                let detail = "turns of a grant per client and minute of rest";
                (figures.oscillation_per_minute, None, detail.to_owned())
            }
            Checker::Mastership => {
                let MastershipChecker { answers, first } = self.mastership;
                let detail =
                    "decisions of servers that were not master; the time is that of the first";
                (answers, first, detail.to_owned())
            }
            Checker::SettledFairness => {
                let worst = self.fairness.settled_worst;
                let detail =
                    "distance from the ideal when all clients had to have their ideal share";
                (worst.value, Some(worst.at), detail.to_owned())
            }
            Checker::Comeback => {
                let until = (figures.comebacks > 0).then_some(self.comebacks.longest.at);
                let (times, median) = (figures.comebacks, figures.comeback_median_s);
                let detail = format!("{times} times, half of them within {median:.1} s");
                (figures.comeback_max_s, until, detail)
            }
            Checker::NotBack => {
                #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
                let missing = figures.not_back as f64;
                let detail = "clients that lost their server and have no lease at the end";
                (missing, None, detail.to_owned())
            }
            Checker::SafeUse => self.found_safe_use(),
            Checker::Requests => {
                let detail = "most requests of one client within a second";
                let most = self.requests;
                (most.value.into(), most.time(), detail.to_owned())
            }
        }
    }

    fn found_overshoot(&self, figures: &Figures) -> Finding {
        let (instant, span) = (self.overshoot.worst, self.immediate.worst);
        let worst = match span.value > instant.value.max(1.0) {
            true => span,
            false => instant,
        };
        let over = match worst.value > 1.0 + ROUNDING {
            true => worst.value - 1.0,
            false => 0.0,
        };
        let detail = format!(
            "leases covered at most {} of the capacity, and exceeded it for {:.1} s",
            percent(figures.peak_of_capacity),
            figures.overshoot_s
        );
        (over, Some(worst.at), detail)
    }

    fn found_convergence(&self, figures: &Figures) -> Finding {
        let (shifts, mean) = (figures.shifts, figures.convergence_mean_s);
        let mut detail = format!("{shifts} shifts, {mean:.1} s on average");
        let unfinished = figures.unfinished_s;
        if unfinished > 0.0 {
            detail += &format!(", not at rest at the end, after {unfinished:.1} s");
        }
        let began = (shifts > 0).then_some(self.convergence.longest.at);
        (figures.convergence_max_s, began, detail)
    }

    fn found_safe_use(&self) -> Finding {
        let worst = self.safe_use.worst;
        let detail = "total that all clients may use in safe mode, once all were informed since the last join";
        // Rounding of a sum is not a violation.
        let part = match worst.value > 1.0 && worst.value <= 1.0 + ROUNDING {
            true => 1.0,
            false => worst.value,
        };
        (part, worst.time(), detail.to_owned())
    }
}
