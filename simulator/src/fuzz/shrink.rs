//! Shrinks scenarios that fail, to fewer faults and fewer clients that still fail in the same way.

use crate::fuzz::{FoundFailure, play};
use crate::scenario::Scenario;
use crate::scenario::fault::Event;

/// Remainder of a shrunk scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallerScenario {
    /// Remaining faults, by their index.
    pub faults: Vec<usize>,
    /// Number of remaining clients.
    pub clients: usize,
}

/// Shrinks a scenario for as long as it breaks the same promise.
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
            .is_some_and(|found| found.checker == failure.checker)
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

/// Returns a scenario with only these faults and clients.
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

/// Returns whether an event affects only clients beyond the first `clients`.
fn is_of_others(event: &Event, clients: usize) -> bool {
    let groups = event.clients().and_then(|choice| choice.groups.as_ref());
    groups.is_some_and(|groups| groups.iter().all(|group| *group >= clients))
}
