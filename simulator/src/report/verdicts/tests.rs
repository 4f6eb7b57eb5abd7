//! Headlines, and what each verdict says.

use super::*;
use crate::report::plausible;

#[test]
fn the_headline_counts_what_is_judged() {
    let mut recording = plausible::small();
    let headline = Headline::of(&recording);
    assert_eq!(headline.outcome, RunOutcome::Violated);
    assert_eq!(headline.title, "1 of 3 limits is violated.");

    for verdict in &mut recording.verdicts {
        verdict.holds = true;
    }
    assert_eq!(Headline::of(&recording).title, "All 3 limits hold.");
    recording.verdicts.clear();
    assert_eq!(Headline::of(&recording).outcome, RunOutcome::NotJudged);
}

#[test]
fn what_never_came_to_rest_is_mentioned() {
    let mut recording = plausible::small();
    let figures = &mut recording.resources[0].figures;
    (figures.convergence_max_s, figures.unfinished_s) = (30.0, 29.0);
    let shown = |recording: &Recording| {
        let notes = Headline::of(recording).notes;
        notes.into_iter().find(|note| note.contains("at rest"))
    };
    assert_eq!(shown(&recording), None);
    recording.resources[0].figures.unfinished_s = 30.0;
    let note = "requests was not at rest at the end, and had not been for 30 s.";
    assert_eq!(shown(&recording).as_deref(), Some(note));
}

#[test]
fn nothing_is_said_of_a_total_that_is_not_promised() {
    let mut recording = plausible::small();
    recording.resources[0].figures.peak_of_capacity = 0.0;
    let notes = Headline::of(&recording).notes;
    assert!(
        notes
            .iter()
            .all(|note| !note.contains("granted than there is")),
        "{notes:?}"
    );
}

#[test]
fn an_overshoot_is_shown_even_if_nothing_limits_it() {
    let mut recording = plausible::small();
    recording.resources[0].figures.peak_of_capacity = 1.25;
    recording.resources[0].figures.overshoot_s = 12.0;
    assert_eq!(
        Headline::of(&recording).notes[0],
        "More of requests was granted than there is: up to 125 % of the capacity, above it for \
             12 s in all."
    );
    recording.resources.clear();
    assert_eq!(
        Headline::of(&recording).notes,
        ["Nothing was measured: there are no samples."]
    );
}
