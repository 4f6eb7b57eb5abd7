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
        let mean = |sum: f64| {
            if self.sums.samples == 0 {
                0.0
            } else {
                sum / f64::from(self.sums.samples)
            }
        };
        let shifts = self.convergence.shifts;
        #[expect(clippy::cast_precision_loss, reason = "counts for a mean")]
        let (clients, turns, many) = (
            self.accounts.len() as f64,
            self.turns as f64,
            shifts.max(1) as f64,
        );
        let quiet_minutes = self.quiet_for.as_secs_f64() / 60.0;
        Figures {
            // Of nothing, all was used.
            utilisation: if self.sums.samples == 0 {
                1.0
            } else {
                mean(self.sums.used)
            },
            demand_met: self.shortage.demand_met(),
            clients_short: self.shortage.clients_short(),
            scarce: self.shortage.scarce(),
            granted_of_capacity: mean(self.sums.granted),
            peak_of_capacity: self.worst.0,
            overshoot_s: self.over_for.as_secs_f64(),
            unfairness: mean(self.sums.unfair),
            shifts,
            convergence_max_s: self.convergence.longest.0.as_secs_f64(),
            convergence_mean_s: self.convergence.total.as_secs_f64() / many,
            starvation_max_s: self.starved.0.as_secs_f64(),
            oscillation_per_minute: if quiet_minutes > 0.0 && clients > 0.0 {
                turns / clients / quiet_minutes
            } else {
                0.0
            },
        }
    }
}

/// What every checker says of a resource.
pub fn judge(watched: &Watched, limits: &Limits, end: Time) -> Vec<Verdict> {
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
    let overshoot = if figures.overshoot_s > 0.0
        || watched.promises && watched.worst.0 > 1.0 + super::ROUNDING
    {
        figures.peak_of_capacity - 1.0
    } else {
        0.0
    };
    let unfinished = watched
        .convergence
        .unfinished()
        .map(|since| end.since(since).as_secs_f64())
        .filter(|had| *had > 0.0);
    let (longest, began) = watched.convergence.longest;
    // One that has not come to an end counts with the time it has had.
    let convergence = longest.as_secs_f64().max(unfinished.unwrap_or(0.0));
    let percent = |part: f64| format!("{:.2} %", part * 100.0);
    let mut verdicts = vec![
        verdict(
            "overshoot",
            overshoot,
            limits.overshoot_max,
            Some(watched.worst.1),
            format!(
                "at most {} of what there was could be used, {:.1} s above it",
                percent(figures.peak_of_capacity),
                figures.overshoot_s
            ),
        ),
        verdict(
            "nesting",
            watched.nesting.0,
            limits.nesting_max,
            (watched.nesting.0 > 0.0).then_some(watched.nesting.1),
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
            convergence,
            limits.convergence_max.map(|limit| limit.as_secs_f64()),
            (figures.shifts > 0).then_some(began),
            format!(
                "{} shifts, {:.1} s on average{}",
                figures.shifts,
                figures.convergence_mean_s,
                unfinished.map_or(String::new(), |had| format!(
                    ", one not over after {had:.1} s"
                ))
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
    verdicts
}
