//! Shrinks scenarios that fail, to fewer faults and fewer clients that still fail in the same way.

use crate::fuzz::{FoundFailure, play};
use crate::scenario::Scenario;
use crate::scenario::fault::ClientChoice;

/// Shrinks a scenario for as long as it breaks the same promise.
pub fn shrink(whole: &Scenario, failure: &FoundFailure) -> Scenario {
    let fails = |smaller: &Scenario| {
        let (_, found) = play(smaller);
        found.is_some_and(|found| found.checker == failure.checker)
    };
    let mut kept = whole.clone();
    let mut step = kept.faults.len().div_ceil(2);
    while step > 0 {
        let mut from = 0;
        while from < kept.faults.len() {
            let mut fewer = kept.clone();
            let to = kept.faults.len().min(from + step);
            fewer.faults.drain(from..to);
            if fails(&fewer) {
                kept = fewer;
            } else {
                from += step;
            }
        }
        step /= 2;
    }
    let mut step = kept.clients.len() / 2;
    while step > 0 {
        let fewer = first_clients(&kept, kept.clients.len() - step);
        if !fewer.clients.is_empty() && fails(&fewer) {
            kept = fewer;
            step = step.min(kept.clients.len() / 2);
        } else {
            step /= 2;
        }
    }
    kept
}

/// Returns a scenario with only the first `clients`, and the faults that affect them.
fn first_clients(whole: &Scenario, clients: usize) -> Scenario {
    let mut scenario = whole.clone();
    scenario.clients.truncate(clients);
    let kept = &scenario.clients;
    scenario.faults.retain(|fault| {
        let has_clients = |choice: &ClientChoice| kept.iter().any(|it| choice.is_of(it));
        let mut events = fault.choices.iter();
        events.any(|(_, event)| event.clients().is_none_or(has_clients))
    });
    scenario
}
