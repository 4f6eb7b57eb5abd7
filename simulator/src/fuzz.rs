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
mod tree;
mod twins;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::world::World;

pub use crate::fuzz::part::Part;
pub use crate::fuzz::shrink::{Kept, shrink, smaller};

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Which promise was broken.
    pub promise: Promise,
    /// How, for people.
    pub detail: String,
}

impl fmt::Display for Failure {
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
    Rest,
    /// At rest all that can be used is granted.
    Utilisation,
    /// At rest everybody has what is right.
    Fairness,
}

impl Promise {
    /// All that checkers judge.
    const JUDGED: [Self; 6] = [
        Self::Overshoot,
        Self::Nesting,
        Self::Mastership,
        Self::Rest,
        Self::Utilisation,
        Self::Fairness,
    ];

    /// As verdicts name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consistency => "consistency",
            Self::Overshoot => "overshoot",
            Self::Nesting => "nesting",
            Self::Mastership => "mastership",
            Self::Rest => "rest",
            Self::Utilisation => "utilisation",
            Self::Fairness => "fairness",
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
/// add up; if they do not, or something else panics, there is nothing to tell of the rest.
pub fn play(scenario: &Scenario) -> (Recording, Option<Failure>) {
    let played = catch_unwind(AssertUnwindSafe(|| {
        World::new(scenario).asserting().run(|_| {})
    }));
    let recording = match played {
        Ok(recording) => recording,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let failure = Failure {
                promise: Promise::Consistency,
                detail: text.unwrap_or("it panics").to_owned(),
            };
            return (Recording::default(), Some(failure));
        }
    };
    let broken = recording.verdicts.iter().find(|verdict| !verdict.holds);
    let failure = broken.and_then(|verdict| {
        let mut judged = Promise::JUDGED.into_iter();
        let promise = judged.find(|promise| promise.as_str() == verdict.checker.as_str())?;
        let at = verdict
            .at_s
            .map_or(String::new(), |at| format!(", worst at {at:.3} s"));
        Some(Failure {
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
