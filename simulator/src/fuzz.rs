//! Random scenarios. The seed decides everything. Faults happen for a while and then stop. During
//! the faults clients must never exceed the capacity; at the end each must have its ideal share.
//!
//! A world consists of [parts](Part). Each has its own random stream and its own strength, so that
//! all combinations occur. Any release may change the meaning of a seed; a scenario file keeps a
//! world for good (`simulator/tests/kept`).
//!
//! The program shrinks a seed that fails to fewer faults and fewer clients that still fail in the
//! same way.

mod addresses;
mod clients;
mod clocks;
mod cuts;
mod demand;
mod departures;
mod draft;
mod edits;
mod etcd;
mod healed;
mod limiters;
mod masters;
mod network;
mod part;
mod shrink;
mod templates;
mod topology;
mod twins;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::recording::{Checker, Recording};
use crate::scenario::Scenario;
use crate::world::World;

pub use crate::fuzz::part::Part;
pub use crate::fuzz::shrink::shrink;

/// Failure of a random scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFailure {
    /// Checker of the broken promise; `None` for a failed assertion or another panic.
    pub checker: Option<Checker>,
    /// Text for readers.
    pub detail: String,
}

impl fmt::Display for FoundFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checker = self.checker.map_or("consistency", Checker::as_str);
        write!(f, "{checker}: {}", self.detail)
    }
}

/// Returns the scenario of a seed. It contains the part `focus` for certain, and strongly.
pub fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let mut scenario = draft::scenario(seed, focus);
    healed::demand_ideal_shares(&mut scenario);
    scenario
}

/// Plays a scenario, and returns the promise it broke. After every event of a node it asserts that
/// the node's books add up. A failed assertion or another panic ends the run without a recording.
pub fn play(scenario: &Scenario) -> (Recording, Option<FoundFailure>) {
    let played = catch_unwind(AssertUnwindSafe(|| {
        World::new(scenario).asserting().run(|_| {})
    }));
    let recording = match played {
        Ok(recording) => recording,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let failure = FoundFailure {
                checker: None,
                detail: text.unwrap_or("it panics").to_owned(),
            };
            return (Recording::default(), Some(failure));
        }
    };
    let broken = recording.verdicts.iter().find(|it| it.is_broken());
    let failure = broken.map(|verdict| {
        let at = verdict
            .at_s
            .map_or(String::new(), |at| format!(", worst at {at:.3} s"));
        FoundFailure {
            checker: Some(verdict.checker),
            detail: format!(
                "{} of {} is {:.6}, beyond the limit of {:.6}{at} {}",
                verdict.checker.as_str(),
                verdict.resource,
                verdict.value,
                verdict.limit.unwrap_or_default(),
                verdict.detail
            ),
        }
    });
    (recording, failure)
}

#[cfg(test)]
mod tests;
