//! The words about a recording that terminal and page share: the verdict in a sentence, notes, and the conditions
//! under which it was played.

use serde::Serialize;

use crate::recording::{Figures, Recording, ResourceRecording, Verdict};
use crate::report::terminal::printable;
use doorward_pages::numbers::{clock, count, measured, percent, seconds, several};

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunOutcome {
    /// All limits hold.
    Fine,
    /// At least one limit is violated.
    Violated,
    /// The scenario sets no limits.
    NotJudged,
}

/// Words about a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Words {
    pub(super) outcome: RunOutcome,
    /// The verdict, a sentence.
    pub(super) headline: String,
    /// Further facts that matter for a decision, a sentence each.
    pub(super) notes: Vec<String>,
    /// Tree, clients and time.
    pub(super) facts: Vec<String>,
    /// Amount of work.
    pub(super) done: Vec<String>,
    /// Names and values of all conditions of the run: if they differ, two runs are hard to compare.
    pub(super) conditions: Vec<(String, String)>,
}

impl Words {
    pub(super) fn of(recording: &Recording) -> Self {
        let (outcome, headline) = headline(&recording.verdicts);
        Self {
            outcome,
            headline,
            notes: notes(recording),
            facts: facts(recording),
            done: done(recording),
            conditions: conditions(recording),
        }
    }
}

/// A recording with its words. Readers ignore the words.
#[derive(Serialize)]
pub(super) struct WithWords<'a> {
    #[serde(flatten)]
    recording: &'a Recording,
    words: Words,
}

impl<'a> WithWords<'a> {
    pub(super) fn of(recording: &'a Recording) -> Self {
        let words = Words::of(recording);
        Self { recording, words }
    }
}

fn headline(verdicts: &[Verdict]) -> (RunOutcome, String) {
    let judged = verdicts.iter().filter(|v| v.limit.is_some());
    let all = judged.clone().count();
    let violated = judged.filter(|verdict| !verdict.holds).count();
    use RunOutcome::{Fine, NotJudged, Violated};
    match (all, violated) {
        (0, _) => (NotJudged, "The scenario sets no limits.".to_owned()),
        (1, 0) => (Fine, "The only limit holds.".to_owned()),
        (all, 0) => (Fine, format!("All {all} limits hold.")),
        (1, _) => (Violated, "The only limit is violated.".to_owned()),
        (all, 1) => (Violated, format!("1 of {all} limits is violated.")),
        (all, some) => (Violated, format!("{some} of {all} limits are violated.")),
    }
}

fn notes(recording: &Recording) -> Vec<String> {
    if recording.resources.iter().all(|r| r.samples.is_empty()) {
        return vec!["The recording has no samples.".to_owned()];
    }
    let mut notes = overshoot(&recording.resources);
    // A change shortly before the end is mentioned only if its time is the longest.
    let restless = recording.resources.iter().filter(|resource| {
        let figures = &resource.figures;
        figures.unfinished_s > 0.0 && figures.unfinished_s >= figures.convergence_max_s
    });
    notes.extend(restless.map(|resource| {
        let id = printable(&resource.resource);
        let time = seconds(resource.figures.unfinished_s);
        format!("{id} was not at rest at the end, and had not been for {time}.")
    }));
    if let [one] = recording.resources.as_slice() {
        notes.push(demand(&one.figures));
    }
    if recording.settled_after_s > 0.0 && recording.settled_after_s < recording.duration_s {
        let begin = clock(recording.settled_after_s);
        notes.push(format!("Averages begin at {begin}."));
    }
    notes
}

fn overshoot(resources: &[ResourceRecording]) -> Vec<String> {
    let is_over = |it: &Figures| it.peak_of_capacity > 1.0 + 1e-9 || it.overshoot_s > 0.0;
    let over = resources.iter().filter(|it| is_over(&it.figures));
    let over: Vec<_> = over.collect();
    match over.as_slice() {
        [] if resources.iter().all(|r| r.figures.peak_of_capacity <= 0.0) => Vec::new(),
        [] => vec!["Leases never exceeded the capacity.".to_owned()],
        [one] => vec![format!(
            "Leases of {} exceeded the capacity: they reached {} of it, and were above it for {} in all.",
            printable(&one.resource),
            percent(one.figures.peak_of_capacity),
            seconds(one.figures.overshoot_s),
        )],
        many => vec![format!(
            "Leases of {} exceeded the capacity.",
            several(many.len(), "resource", "resources"),
        )],
    }
}

/// Says whether there was enough.
fn demand(figures: &Figures) -> String {
    let (met, scarce) = (percent(figures.demand_met), percent(figures.scarce));
    let demand = match figures.scarce > 0.0 {
        true => format!("exceeded the capacity for {scarce} of the time"),
        false => "never exceeded the capacity".to_owned(),
    };
    format!("Clients got {met} of what they wanted; demand {demand}.")
}

fn facts(recording: &Recording) -> Vec<String> {
    let mut nodes = several(recording.nodes.len(), "node", "nodes");
    if let Some(levels) = Some(levels(recording)).filter(|levels| *levels > 1) {
        nodes += &format!(" in {levels} levels");
    }
    vec![
        nodes,
        several(recording.clients, "client", "clients"),
        several(recording.resources.len(), "resource", "resources"),
        seconds(recording.duration_s),
        format!("seed {}", recording.seed),
    ]
}

fn levels(recording: &Recording) -> usize {
    let levels = recording.nodes.iter().map(|node| node.level + 1);
    levels.max().unwrap_or(0)
}

fn done(recording: &Recording) -> Vec<String> {
    let work = &recording.work;
    let mut messages = format!("{} messages", count(work.messages));
    if work.lost > 0 && work.messages > 0 {
        let part = percent(work.lost as f64 / work.messages as f64);
        messages += &format!(" ({} lost, {part})", count(work.lost));
    }
    let mut done = vec![
        format!("{} refreshes answered", count(work.refreshes)),
        messages,
        format!("{} events", count(work.events)),
    ];
    // The first of the busiest nodes.
    let nodes = recording.nodes.iter().rev();
    let busiest = nodes.max_by_key(|it| it.requests_most);
    done.extend(busiest.filter(|node| node.requests_most > 0).map(|node| {
        let (most, name) = (count(node.requests_most), printable(&node.name));
        let at = clock(node.requests_most_at_s);
        format!("at most {most} requests in a second, at {name} at {at}")
    }));
    done
}

fn conditions(recording: &Recording) -> Vec<(String, String)> {
    let of_the_run = [
        ("scenario", printable(&recording.scenario)),
        ("seed", recording.seed.to_string()),
        ("duration", seconds(recording.duration_s)),
        ("time between samples", seconds(recording.sample_every_s)),
        ("start of averages", clock(recording.settled_after_s)),
        ("nodes", count(recording.nodes.len())),
        ("levels", count(levels(recording))),
        ("clients", count(recording.clients)),
        ("events from outside", count(recording.marks.len())),
    ];
    let of_the_run = of_the_run.map(|(name, value)| (name.to_owned(), value));
    let mut conditions = of_the_run.to_vec();
    for resource in &recording.resources {
        let id = printable(&resource.resource);
        let capacities = resource.samples.iter().map(|sample| sample.capacity);
        let capacity = measured(capacities.fold(0.0, f64::max));
        conditions.push((format!("algorithm of {id}"), resource.algorithm.clone()));
        conditions.push((format!("largest capacity of {id}"), capacity));
        let length = resource.lease_length_s.map(seconds);
        conditions.extend(length.map(|length| (format!("lease length of {id}"), length)));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{played, violated};

    #[test]
    fn the_headline_counts_the_limits() {
        assert_eq!(Words::of(&played()).headline, "All 2 limits hold.");
        let words = Words::of(&violated());
        assert_eq!(words.outcome, RunOutcome::Violated);
        assert_eq!(words.headline, "1 of 2 limits is violated.");
        assert_eq!(headline(&[]).0, RunOutcome::NotJudged);
    }

    #[test]
    fn notes_tell_of_an_overshoot_even_without_a_limit() {
        let mut recording = (*played()).clone();
        assert_eq!(
            Words::of(&recording).notes[0],
            "Leases never exceeded the capacity."
        );
        let figures = &mut recording.resources[0].figures;
        (figures.peak_of_capacity, figures.overshoot_s) = (1.25, 12.0);
        assert_eq!(
            Words::of(&recording).notes[0],
            "Leases of shared exceeded the capacity: they reached 125 % of it, and were above it for 12 s in all."
        );
        recording.resources[0].figures.peak_of_capacity = 0.0;
        recording.resources[0].figures.overshoot_s = 0.0;
        let notes = Words::of(&recording).notes;
        assert!(
            notes
                .iter()
                .all(|note| !note.contains("exceeded the capacity:")),
            "{notes:?}"
        );
    }

    #[test]
    fn notes_tell_of_a_change_that_never_converged_if_it_is_the_longest() {
        let mut recording = (*played()).clone();
        let is_told = |recording: &Recording| {
            Words::of(recording)
                .notes
                .iter()
                .any(|note| note.contains("not at rest"))
        };
        let figures = &mut recording.resources[0].figures;
        (figures.convergence_max_s, figures.unfinished_s) = (30.0, 29.0);
        assert!(!is_told(&recording));
        recording.resources[0].figures.unfinished_s = 30.0;
        assert!(is_told(&recording));
    }
}
