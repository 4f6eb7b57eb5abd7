//! Verdicts: compares the figures of the checkers with the limits of the scenario.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::{ROUNDING, Watched};
use crate::recording::{Checker, Figures, Verdict};
use crate::scenario::Limits;
use doorward_pages::numbers::percent;

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

impl Watched {
    /// Returns averages and extremes.
    pub(crate) fn figures(&self) -> Figures {
        let (convergence, looks) = (&self.convergence, &self.fairness);
        #[expect(clippy::cast_precision_loss, reason = "a count for a mean")]
        let shifts = convergence.shifts.max(1) as f64;
        let unfinished = convergence.unfinished.unwrap_or_default();
        Figures {
            utilisation: self.averages.utilisation(),
            demand_met: self.averages.demand_met(),
            clients_short: self.averages.clients_short(),
            scarce: self.averages.scarce(),
            granted_of_capacity: self.averages.granted_of_capacity(),
            peak_of_capacity: self.overshoot.peak,
            peak_with_fallback: self.overshoot.peak_with_fallback,
            peak_of_safe_use: self.safe_use.peak,
            overshoot_s: self.overshoot.over_for.as_secs_f64(),
            unfairness: looks.unfair / f64::from(looks.usable.max(1)),
            restless: 1.0 - f64::from(looks.at_rest) / f64::from(looks.count.max(1)),
            shifts: convergence.shifts,
            convergence_max_s: convergence.longest.0.as_secs_f64(),
            convergence_mean_s: convergence.total.as_secs_f64() / shifts,
            unfinished_s: unfinished.as_secs_f64(),
            starvation_max_s: self.starvation.longest.0.as_secs_f64(),
            oscillation_per_minute: self.oscillation.per_minute(self.accounts.len()),
            comebacks: self.comebacks.count(),
            comeback_median_s: self.comebacks.median(),
            comeback_max_s: self.comebacks.longest.0.as_secs_f64(),
            not_back: self.comebacks.missing,
            waits: self.waits.parts(self.averages.usable_time()),
            // The world knows all clients, and measures it.
            spread: None,
        }
    }
}

/// Finding of a checker.
struct Finding {
    value: f64,
    /// Time of the worst value.
    at: Option<Time>,
    /// Text for readers of the report.
    detail: String,
}

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
        Checker::Mastership => limits.of(*checker).is_some() || watched.mastership.answers() > 0.0,
        Checker::SettledFairness
        | Checker::Comeback
        | Checker::NotBack
        | Checker::SafeUse
        | Checker::Requests => limits.of(*checker).is_some(),
    });
    let verdict = |checker: Checker| {
        let found = watched.found(checker, &figures);
        let limit = limits.of(checker);
        Verdict {
            checker,
            resource: watched.resource.to_string(),
            value: found.value,
            limit,
            holds: limit.is_none_or(|limit| holds(checker, found.value, limit)),
            at_s: found.at.map(seconds),
            detail: found.detail,
        }
    };
    judged.map(verdict).collect()
}

fn holds(checker: Checker, value: f64, limit: f64) -> bool {
    checker.bound().holds(value, limit)
}

impl Watched {
    fn found(&self, checker: Checker, figures: &Figures) -> Finding {
        let found = |value: f64, at: Option<Time>, detail: &str| Finding {
            value,
            at,
            detail: detail.to_owned(),
        };
        match checker {
            Checker::Overshoot => self.found_overshoot(figures),
            Checker::Nesting => {
                let (worst, at) = self.nesting.worst;
                let detail =
                    "use below a node beyond its parent's reservation, as a part of the capacity";
                found(worst, (worst > 0.0).then_some(at), detail)
            }
            Checker::Fairness => {
                let unfairness = percent(figures.unfairness);
                let detail =
                    format!("on average {unfairness} is with other clients than in the ideal");
                found(figures.unfairness, None, &detail)
            }
            Checker::Utilisation => {
                let utilisation = percent(figures.utilisation);
                let detail = format!("on average {utilisation} of the usable capacity was used");
                found(figures.utilisation, None, &detail)
            }
            Checker::Convergence => self.found_convergence(figures),
            Checker::Starvation => {
                let (longest, until) = self.starvation.longest;
                let until = (longest > Duration::ZERO).then_some(until);
                let detail = "longest time in which a client had no lease and wanted one";
                found(longest.as_secs_f64(), until, detail)
            }
            Checker::Oscillation => {
                let detail = "turns of a grant per client and minute of rest";
                found(figures.oscillation_per_minute, None, detail)
            }
            Checker::Mastership => {
                let (answers, first) = (self.mastership.answers(), self.mastership.first());
                let detail =
                    "decisions of servers that were not master; the time is that of the first";
                found(answers, first, detail)
            }
            Checker::SettledFairness => {
                let (part, at) = self.fairness.settled_worst;
                let detail =
                    "distance from the ideal when all clients had to have their ideal share";
                found(part, Some(at), detail)
            }
            Checker::Comeback => self.found_comeback(figures),
            Checker::NotBack => {
                #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
                let missing = figures.not_back as f64;
                let detail = "clients that lost their server and have no lease at the end";
                found(missing, None, detail)
            }
            Checker::SafeUse => self.found_safe_use(),
            Checker::Requests => {
                let (most, at) = self.requests;
                let detail = "most requests of one client within a second";
                found(most.into(), (most > 0).then_some(at), detail)
            }
        }
    }

    fn found_overshoot(&self, figures: &Figures) -> Finding {
        let (instant, span) = (self.overshoot.worst, self.immediate.worst);
        let (part, at) = if span.0 > instant.0.max(1.0) {
            span
        } else {
            instant
        };
        Finding {
            value: match part > 1.0 + ROUNDING {
                true => part - 1.0,
                false => 0.0,
            },
            at: Some(at),
            detail: format!(
                "leases covered at most {} of the capacity, and exceeded it for {:.1} s",
                percent(figures.peak_of_capacity),
                figures.overshoot_s
            ),
        }
    }

    fn found_convergence(&self, figures: &Figures) -> Finding {
        let unfinished = figures.unfinished_s;
        let (_, began) = self.convergence.longest;
        Finding {
            value: figures.convergence_max_s,
            at: (figures.shifts > 0).then_some(began),
            detail: format!(
                "{} shifts, {:.1} s on average{}",
                figures.shifts,
                figures.convergence_mean_s,
                match unfinished > 0.0 {
                    true => format!(", not at rest at the end, after {unfinished:.1} s"),
                    false => String::new(),
                }
            ),
        }
    }

    fn found_comeback(&self, figures: &Figures) -> Finding {
        let (longest, until) = self.comebacks.longest;
        Finding {
            value: longest.as_secs_f64(),
            at: (figures.comebacks > 0).then_some(until),
            detail: format!(
                "{} times, half of them within {:.1} s",
                figures.comebacks, figures.comeback_median_s
            ),
        }
    }

    fn found_safe_use(&self) -> Finding {
        let (part, at) = self.safe_use.worst;
        let detail = "total that all clients may use in safe mode, once all were informed since the last join";
        Finding {
            // Rounding of a sum is not a violation.
            value: match part > 1.0 && part <= 1.0 + ROUNDING {
                true => 1.0,
                false => part,
            },
            at: (part > 0.0).then_some(at),
            detail: detail.to_owned(),
        }
    }
}
