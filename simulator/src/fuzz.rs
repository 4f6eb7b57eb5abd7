//! Scenarios by chance: everything is drawn from the seed, then everything goes wrong for a while,
//! and then nothing does any more. In the first part nobody may ever have too much; at the end of
//! the second everybody must have what is right.
//!
//! A world is made of [parts](Part), each drawn from a stream of its own and as strongly as chance decides, so
//! that all combinations come. What a seed means may change with any release: what is to stay is kept as a
//! scenario file (`simulator/tests/kept`).
//!
//! A seed that fails is made smaller, as far as it still fails in the same way: fewer faults, fewer
//! clients.

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

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFailure {
    /// Which promise was broken.
    pub promise: Promise,
    /// How, for people.
    pub detail: String,
}

impl fmt::Display for FoundFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.as_str(), self.detail)
    }
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The books of every node add up after everything that comes to it, no limiter admits more than it may, and
    /// nothing panics.
    Consistency,
    /// Nobody ever has too much.
    Overshoot,
    /// What is used below a node is what its parent has reserved for it.
    Nesting,
    /// Nobody decides but the master.
    Mastership,
    /// Soon after nothing goes wrong any more everybody has what is right, and soon after somebody
    /// wants something else.
    SettledFairness,
    /// At rest all that can be used is granted.
    Utilisation,
    /// At rest everybody has what is right.
    Fairness,
    /// Nobody asks without end, whatever goes wrong.
    Requests,
}

impl Promise {
    /// That which a checker watches. None: worlds by chance are not judged by it.
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

    /// As verdicts name it.
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

/// The scenario of a seed. What is `focus` is drawn for sure, and strongly.
pub fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let mut scenario = draft::scenario(seed, focus);
    healed::demand_what_is_right(&mut scenario);
    scenario
}

/// Plays a scenario, and says what it broke. After everything that comes to a node it is asserted that its books
/// add up; if they do not, or something else panics, there is nothing to say of the rest.
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
                "{} of {} is {:.6}, and must not be beyond {:.6}{at} ({})",
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
