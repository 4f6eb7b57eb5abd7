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
pub use crate::fuzz::shrink::{SmallerScenario, shrink, smaller};

/// Failure of a random scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFailure {
    /// Broken promise.
    pub promise: Promise,
    /// Text for readers.
    pub detail: String,
}

impl fmt::Display for FoundFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.as_str(), self.detail)
    }
}

/// Promise that must hold in every random scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The books of every node add up after every event, no limiter admits too much, and nothing
    /// panics.
    Consistency,
    /// Clients never exceed the capacity.
    Overshoot,
    /// The use below a node stays within what its parent has reserved for it.
    Nesting,
    /// Only masters decide.
    Mastership,
    /// Soon after the last fault, and soon after a change of demand, all clients have their ideal
    /// share.
    SettledFairness,
    /// At rest everything that can be used is granted.
    Utilisation,
    /// At rest all clients have their ideal share.
    Fairness,
    /// No client sends requests without end, whatever goes wrong.
    Requests,
}

impl Promise {
    /// Returns the promise that a checker watches; `None` if random worlds are not judged by it.
    const fn watched_by(checker: Checker) -> Option<Self> {
        match checker {
            Checker::Overshoot => Some(Self::Overshoot),
            Checker::Nesting => Some(Self::Nesting),
            Checker::Mastership => Some(Self::Mastership),
            Checker::SettledFairness => Some(Self::SettledFairness),
            Checker::Utilisation => Some(Self::Utilisation),
            Checker::Fairness => Some(Self::Fairness),
            Checker::Requests => Some(Self::Requests),
            Checker::Convergence
            | Checker::Starvation
            | Checker::Oscillation
            | Checker::Comeback
            | Checker::NotBack
            | Checker::SafeUse => None,
        }
    }

    /// Returns the name, as verdicts use it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consistency => "consistency",
            Self::Overshoot => "overshoot",
            Self::Nesting => "nesting",
            Self::Mastership => "mastership",
            Self::SettledFairness => "settled fairness",
            Self::Utilisation => "utilisation",
            Self::Fairness => "fairness",
            Self::Requests => "requests",
        }
    }
}

/// Returns the scenario of a seed. It contains the part `focus` for certain, and strongly.
pub fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let mut scenario = draft::scenario(seed, focus);
    healed::demand_what_is_right(&mut scenario);
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
                promise: Promise::Consistency,
                detail: text.unwrap_or("it panics").to_owned(),
            };
            return (Recording::default(), Some(failure));
        }
    };
    let mut broken = recording.verdicts.iter().filter(|it| it.is_broken());
    let failure = broken.find_map(|verdict| {
        let promise = Promise::watched_by(verdict.checker)?;
        let at = verdict
            .at_s
            .map_or(String::new(), |at| format!(", worst at {at:.3} s"));
        Some(FoundFailure {
            promise,
            detail: format!(
                "{} of {} is {:.6}, beyond the limit of {:.6}{at} ({})",
                verdict.checker.as_str(),
                verdict.resource,
                verdict.value,
                verdict.limit.unwrap_or_default(),
                verdict.detail
            ),
        })
    });
    (recording, failure)
}

#[cfg(test)]
mod tests;
