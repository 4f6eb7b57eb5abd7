//! Makes scenarios that fail smaller, as far as they still fail in the same way: fewer faults, fewer
//! clients.

use crate::fuzz::{FoundFailure, play};
use crate::scenario::Scenario;
use crate::scenario::fault::Event;

/// What is left of a scenario that was made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallerScenario {
    /// Which of its faults, by their place.
    pub faults: Vec<usize>,
    /// How many of its clients.
    pub clients: usize,
}

/// Makes a scenario that fails smaller, as far as it breaks the same promise.
pub fn shrink(
    whole: &Scenario,
    failure: &FoundFailure,
    mut tried: impl FnMut(&SmallerScenario),
) -> SmallerScenario {
    let mut kept = SmallerScenario {
        faults: (0..whole.faults.len()).collect(),
        clients: whole.clients.len(),
    };
    let mut fails = |kept: &SmallerScenario| {
        tried(kept);
        play(&smaller(whole, kept))
            .1
            .is_some_and(|found| found.promise == failure.promise)
    };
    let mut step = kept.faults.len().div_ceil(2);
    while step > 0 {
        let mut from = 0;
        while from < kept.faults.len() {
            let mut fewer = kept.clone();
            fewer
                .faults
                .drain(from..(from + step).min(kept.faults.len()));
            if fails(&fewer) {
                kept = fewer;
            } else {
                from += step;
            }
        }
        step /= 2;
    }
    let mut step = kept.clients / 2;
    while step > 0 {
        let fewer = SmallerScenario {
            clients: kept.clients - step,
            ..kept.clone()
        };
        if fewer.clients > 0 && fails(&fewer) {
            kept = fewer;
            step = step.min(kept.clients / 2);
        } else {
            step /= 2;
        }
    }
    kept
}

/// A scenario with only some of its faults and clients.
pub fn smaller(whole: &Scenario, kept: &SmallerScenario) -> Scenario {
    let mut scenario = whole.clone();
    let faults = kept
        .faults
        .iter()
        .filter_map(|place| whole.faults.get(*place));
    scenario.faults = faults.cloned().collect();
    scenario.clients.truncate(kept.clients);
    scenario.faults.retain(|fault| {
        let mut events = fault.choices.iter();
        events.any(|(_, event)| !is_of_others(event, kept.clients))
    });
    scenario
}

/// Whether it happens only to clients that are not among the first so many.
fn is_of_others(event: &Event, clients: usize) -> bool {
    let groups = event.clients().and_then(|choice| choice.groups.as_ref());
    groups.is_some_and(|groups| groups.iter().all(|group| *group >= clients))
}
