//! What the checkers found, in words: each verdict, and all of them in a sentence or two, which is
//! what an operator reads first.

use crate::recording::{Checker, Figures, LimitSide, Recording, Verdict};
use crate::report::figures::Unit;
use crate::report::text::printable;
use doorward_pages::numbers::{clock, percent, seconds, several};

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunOutcome {
    /// Every limit holds.
    Fine,
    /// At least one does not.
    Violated,
    /// There are no limits.
    NotJudged,
}

/// What stands first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    pub(super) outcome: RunOutcome,
    /// A sentence.
    pub(super) title: String,
    /// What else has to be known before deciding anything: a sentence each.
    pub(super) notes: Vec<String>,
}

impl Headline {
    pub(super) fn of(recording: &Recording) -> Self {
        let judged = recording.verdicts.iter().filter(|v| v.limit.is_some());
        let all = judged.clone().count();
        let violated = judged.filter(|verdict| verdict.is_broken()).count();
        let (outcome, title) = match (all, violated) {
            (0, _) => (
                RunOutcome::NotJudged,
                "Nothing was judged: the scenario sets no limits.".to_owned(),
            ),
            (1, 0) => (RunOutcome::Fine, "The one limit holds.".to_owned()),
            (2, 0) => (RunOutcome::Fine, "Both limits hold.".to_owned()),
            (all, 0) => (RunOutcome::Fine, format!("All {all} limits hold.")),
            (1, _) => (
                RunOutcome::Violated,
                "The one limit is violated.".to_owned(),
            ),
            (all, 1) => (
                RunOutcome::Violated,
                format!("1 of {all} limits is violated."),
            ),
            (all, violated) => (
                RunOutcome::Violated,
                format!("{violated} of {all} limits are violated."),
            ),
        };
        Self {
            outcome,
            title,
            notes: notes(recording),
        }
    }
}

fn notes(recording: &Recording) -> Vec<String> {
    if recording.resources.iter().all(|r| r.samples.is_empty()) {
        return vec!["Nothing was measured: there are no samples.".to_owned()];
    }
    let mut notes = Vec::new();
    let over =
        |figures: &Figures| figures.peak_of_capacity > 1.0 + 1e-9 || figures.overshoot_s > 0.0;
    let overs: Vec<_> = recording
        .resources
        .iter()
        .filter(|resource| over(&resource.figures))
        .collect();
    match overs.as_slice() {
        [] if recording.resources.iter().all(|r| r.figures.peak_of_capacity <= 0.0) => {}
        [] => notes.push("At no instant was more granted than there is.".to_owned()),
        [one] => notes.push(format!(
            "More of {} was granted than there is: up to {} of the capacity, above it for {} in all.",
            printable(&one.resource),
            percent(one.figures.peak_of_capacity),
            seconds(one.figures.overshoot_s),
        )),
        many => notes.push(format!(
            "More was granted than there is, of {}.",
            several(many.len(), "resource", "resources"),
        )),
    }
    // Any change that comes shortly before the end is not over by then: it is mentioned only if it is the
    // longest of all.
    let restless = recording.resources.iter().filter(|resource| {
        let figures = &resource.figures;
        figures.unfinished_s > 0.0 && figures.unfinished_s >= figures.convergence_max_s
    });
    notes.extend(restless.map(|resource| {
        format!(
            "{} was not at rest at the end, and had not been for {}.",
            printable(&resource.resource),
            seconds(resource.figures.unfinished_s)
        )
    }));
    if let [one] = recording.resources.as_slice() {
        notes.extend(demand(&one.figures));
    }
    if recording.settled_after_s > 0.0 && recording.settled_after_s < recording.duration_s {
        notes.push(format!(
            "Averages are taken from {} on.",
            clock(recording.settled_after_s)
        ));
    }
    notes
}

/// How far there was enough; None if that was not measured.
fn demand(figures: &Figures) -> Option<String> {
    if !figures.demand_met.is_finite() {
        return None;
    }
    let met = format!(
        "Clients got {} of what they wanted",
        percent(figures.demand_met)
    );
    Some(match figures.scarce {
        scarce if scarce > 0.0 => format!(
            "{met}; together they wanted more than there is for {} of the time.",
            percent(scarce)
        ),
        _ => format!("{met}, and together never wanted more than there is."),
    })
}

/// What the checker measures in.
pub(super) fn unit_of(checker: Checker) -> Unit {
    match checker {
        Checker::Convergence | Checker::Starvation | Checker::Comeback => Unit::Seconds,
        Checker::Oscillation => Unit::PerMinute,
        Checker::Mastership | Checker::NotBack | Checker::Requests => Unit::Count,
        Checker::Overshoot
        | Checker::Nesting
        | Checker::Fairness
        | Checker::Utilisation
        | Checker::SettledFairness
        | Checker::SafeUse => Unit::Part,
    }
}

/// What the checker looks at.
pub(super) fn about(checker: Checker) -> &'static str {
    match checker {
        Checker::Overshoot => "The most that was granted beyond the capacity, as a part of it.",
        Checker::Nesting => {
            "The most that could be used below a node beyond what its parent had reserved for it."
        }
        Checker::Mastership => "How often a server granted something that was not the master.",
        Checker::SettledFairness => "How far clients were from the ideal when all had to be right.",
        Checker::Fairness => {
            "How far clients were from the ideal on average, of what could be used."
        }
        Checker::Utilisation => "How much of what could be used was used, on average.",
        Checker::Convergence => {
            "The longest time from a change of demand or capacity to the ideal."
        }
        Checker::Starvation => {
            "The longest time that a client had nothing though there was something."
        }
        Checker::Oscillation => "How often a client's grant turned while nobody's demand changed.",
        Checker::Comeback => {
            "The longest time from when a client without a lease could reach its server again to its \
             next lease."
        }
        Checker::NotBack => "How many clients that had lost their server had no lease at the end.",
        Checker::Requests => "The most requests that one client sent within a second.",
        Checker::SafeUse => {
            "The most that all clients could use in safe mode at once, as a part of the capacity, when \
             each had heard its safe capacity since the last one joined."
        }
    }
}

/// What was found.
pub(super) fn found(verdict: &Verdict) -> String {
    unit_of(verdict.checker).show(verdict.value)
}

/// What was set: `at most 5 %`.
pub(super) fn limit(verdict: &Verdict) -> String {
    let Some(limit) = verdict.limit else {
        return "none".to_owned();
    };
    let least_or_most = match verdict.checker.bound() {
        LimitSide::AtLeast => "at least",
        LimitSide::AtMost => "at most",
    };
    let limit = unit_of(verdict.checker).show(limit);
    format!("{least_or_most} {limit}")
}

/// How it was judged.
pub(super) fn judgement(verdict: &Verdict) -> &'static str {
    match verdict.limit {
        None => "not judged",
        Some(_) if verdict.holds => "holds",
        Some(_) => "VIOLATED",
    }
}

/// When it was worst, in seconds. None if that is no one time: where nothing was found, no time is
/// worse than another.
pub(super) fn worst_at(verdict: &Verdict) -> Option<f64> {
    verdict.at_s.filter(|_| verdict.value != 0.0)
}

/// When it was worst; empty if that is no one time.
pub(super) fn when(verdict: &Verdict) -> String {
    worst_at(verdict).map(clock).unwrap_or_default()
}

#[cfg(test)]
mod tests;
