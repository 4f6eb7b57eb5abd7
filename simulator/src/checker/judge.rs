//! What the checkers found, held against the limits that were set.

use doorward_engine::time::Time;

use crate::checker::Watched;
use crate::recording::{Figures, Verdict};
use crate::scenario::Limits;

fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

impl Watched {
    /// Averages and extremes.
    pub(crate) fn figures(&self) -> Figures {
        let (convergence, looks) = (&self.convergence, &self.looks);
        #[expect(clippy::cast_precision_loss, reason = "a count for a mean")]
        let shifts = convergence.shifts.max(1) as f64;
        let unfinished = convergence.unfinished.unwrap_or_default();
        Figures {
            utilisation: self.averages.utilisation(),
            demand_met: self.averages.demand_met(),
            clients_short: self.averages.clients_short(),
            scarce: self.averages.scarce(),
            granted_of_capacity: self.averages.granted_of_capacity(),
            peak_of_capacity: self.excess.peak,
            peak_with_fallback: self.excess.peak_with_fallback,
            peak_of_safe_use: self.safe_use.peak,
            overshoot_s: self.excess.over_for.as_secs_f64(),
            unfairness: looks.unfair / f64::from(looks.usable.max(1)),
            restless: 1.0 - f64::from(looks.at_rest) / f64::from(looks.count.max(1)),
            shifts: convergence.shifts,
            convergence_max_s: convergence.longest.0.as_secs_f64(),
            convergence_mean_s: convergence.total.as_secs_f64() / shifts,
            unfinished_s: unfinished.as_secs_f64(),
            starvation_max_s: self.starved.0.as_secs_f64(),
            oscillation_per_minute: self.turns.per_minute(self.accounts.len()),
            comebacks: self.comebacks.count(),
            comeback_median_s: self.comebacks.median(),
            comeback_max_s: self.comebacks.longest.0.as_secs_f64(),
            not_back: self.comebacks.missing,
            waits: self.waits.parts(self.averages.usable_time()),
        }
    }
}

/// What every checker says of a resource.
pub fn judge(watched: &Watched, limits: &Limits) -> Vec<Verdict> {
    let figures = watched.figures();
    let resource = watched.resource.to_string();
    let verdict = |checker: &str, value: f64, limit: Option<f64>, at: Option<Time>, detail| {
        let is_least = checker == "utilisation";
        Verdict {
            checker: checker.to_owned(),
            resource: resource.clone(),
            value,
            limit,
            holds: limit.is_none_or(|limit| {
                if is_least {
                    value >= limit
                } else {
                    value <= limit
                }
            }),
            at_s: at.map(seconds),
            detail,
        }
    };
    let (instant, span) = (watched.excess.worst, watched.immediate.worst);
    let worst = if span.0 > instant.0.max(1.0) {
        span
    } else {
        instant
    };
    let overshoot = match worst.0 > 1.0 + super::ROUNDING {
        true => worst.0 - 1.0,
        false => 0.0,
    };
    let began = watched.convergence.longest.1;
    let unfinished = figures.unfinished_s;
    let percent = |part: f64| format!("{:.2} %", part * 100.0);
    let mut verdicts = vec![
        verdict(
            "overshoot",
            overshoot,
            limits.overshoot_max,
            Some(worst.1),
            format!(
                "at most {} of what there was could be used by leases, {:.1} s above it",
                percent(figures.peak_of_capacity),
                figures.overshoot_s
            ),
        ),
        verdict(
            "nesting",
            watched.nesting.worst.0,
            limits.nesting_max,
            (watched.nesting.worst.0 > 0.0).then_some(watched.nesting.worst.1),
            "what is used below a node, beyond what its parent has reserved for it".to_owned(),
        ),
        verdict(
            "fairness",
            figures.unfairness,
            limits.unfairness_max,
            None,
            format!(
                "on average {} is with others than ideally",
                percent(figures.unfairness)
            ),
        ),
        verdict(
            "utilisation",
            figures.utilisation,
            limits.utilisation_min,
            None,
            format!(
                "on average {} of what could be used",
                percent(figures.utilisation)
            ),
        ),
        verdict(
            "convergence",
            figures.convergence_max_s,
            limits.convergence_max.map(|limit| limit.as_secs_f64()),
            (figures.shifts > 0).then_some(began),
            format!(
                "{} shifts, {:.1} s on average{}",
                figures.shifts,
                figures.convergence_mean_s,
                match unfinished > 0.0 {
                    true => format!(", not at rest at the end, after {unfinished:.1} s"),
                    false => String::new(),
                }
            ),
        ),
        verdict(
            "starvation",
            figures.starvation_max_s,
            limits.starvation_max.map(|limit| limit.as_secs_f64()),
            (figures.starvation_max_s > 0.0).then_some(watched.starved.1),
            "the longest time that a client had nothing and wanted something".to_owned(),
        ),
        verdict(
            "oscillation",
            figures.oscillation_per_minute,
            limits.oscillation_max,
            None,
            "turns of a grant per client and minute of rest".to_owned(),
        ),
    ];
    // Told only where it was asked for, or where there is something to tell.
    if limits.mastership_max.is_some() || watched.mastership.answers() > 0.0 {
        verdicts.push(verdict(
            "mastership",
            watched.mastership.answers(),
            limits.mastership_max,
            watched.mastership.first(),
            "answers of servers that were not the master, the first of them then".to_owned(),
        ));
    }
    if limits.rest_max.is_some() {
        verdicts.push(verdict(
            "rest",
            watched.rest.0,
            limits.rest_max,
            Some(watched.rest.1),
            "the distance from the ideal when everybody had to have what is right".to_owned(),
        ));
    }
    if limits.admission_max.is_some() {
        let (worst, at) = watched.admission;
        verdicts.push(verdict(
            "admission",
            worst,
            limits.admission_max,
            (worst > 0.0).then_some(at),
            "what a limiter admitted beyond what its rates gave and a burst".to_owned(),
        ));
    }
    if limits.comeback_max.is_some() {
        let (longest, until) = watched.comebacks.longest;
        verdicts.push(verdict(
            "comeback",
            longest.as_secs_f64(),
            limits.comeback_max.map(|limit| limit.as_secs_f64()),
            (figures.comebacks > 0).then_some(until),
            format!(
                "{} times, half of them within {:.1} s",
                figures.comebacks, figures.comeback_median_s
            ),
        ));
    }
    if limits.not_back_max.is_some() {
        #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
        let missing = figures.not_back as f64;
        let detail = "clients that had lost their server are without a lease at the end";
        verdicts.push(verdict(
            "not back",
            missing,
            limits.not_back_max,
            None,
            detail.to_owned(),
        ));
    }
    if limits.safe_use_max.is_some() {
        let (part, at) = watched.safe_use.worst;
        verdicts.push(verdict(
            "safe use",
            // What rounding adds to a sum is no use.
            if part > 1.0 && part <= 1.0 + super::ROUNDING {
                1.0
            } else {
                part
            },
            limits.safe_use_max,
            (part > 0.0).then_some(at),
            "what all may use in safe mode at once, with everybody told since the last one joined"
                .to_owned(),
        ));
    }
    verdicts
}
