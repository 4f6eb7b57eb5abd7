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
mod departures;
mod draft;
mod edits;
mod etcd;
mod healed;
mod masters;
mod network;
mod shrink;
mod templates;
mod topology;
mod twins;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, FAULTY_FOR, Quality, Strength};
use crate::recording::{Checker, Recording};
use crate::scenario::{Limits, Scenario};
use crate::world::World;

pub use crate::fuzz::draft::Part;
pub use crate::fuzz::shrink::shrink;

/// Largest deviation at rest, as a part of what can be used: the error of compressed curves.
const AT_REST: f64 = 0.005;

/// Value that separates the stream of random worlds from others.
const STREAM: u64 = 0x5eed_0000_0000_0010;

/// Failure of a random scenario.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}: {detail}", checker.map_or("consistency", Checker::as_str))]
pub struct FoundFailure {
    /// Checker of the broken promise; `None` for a failed assertion or another panic.
    pub checker: Option<Checker>,
    /// Text for readers.
    pub detail: String,
}

/// Returns the scenario of a seed. It contains the part `focus` for certain, and strongly.
pub fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let chance = Chance::new(seed ^ STREAM);
    let mut of_strengths = chance.fork(0);
    let strengths = Part::ALL.map(|part| {
        let drawn = Strength::draw(&mut of_strengths);
        let strength = match focus == Some(part) {
            true => Strength::Much,
            false => drawn,
        };
        (part, strength)
    });
    let mut draft = Draft {
        strengths: strengths.into(),
        quality: Quality::draw(&mut chance.fork(1)),
        chance: chance.clone(),
        specs: Vec::new(),
        scenario: Scenario::default(),
    };
    twins::exclude(&mut draft);
    topology::draw(&mut draft, &mut chance.fork(2));
    templates::draw(&mut draft, &mut chance.fork(3));
    clients::draw(&mut draft, &mut chance.fork(4));
    network::draw(&mut draft, &mut chance.fork(5));
    masters::draw(&mut draft);
    network::cut(&mut draft);
    etcd::draw(&mut draft);
    clocks::draw(&mut draft);
    edits::draw(&mut draft);
    departures::draw(&mut draft);
    addresses::draw(&mut draft);
    twins::draw(&mut draft);
    finished(seed, draft)
}

/// Completes a world: faults happen for a while and then stop.
fn finished(seed: u64, draft: Draft) -> Scenario {
    let drawn = Part::ALL.into_iter();
    let drawn = drawn.filter(|part| draft.strength(*part).is_some());
    let drawn: Vec<&str> = drawn.map(Part::as_str).collect();
    let mut scenario = Scenario {
        name: format!("fuzz-{seed}"),
        description: match drawn.is_empty() {
            true => "A random world.".to_owned(),
            false => format!("A random world: {}.", drawn.join(", ")),
        },
        seed,
        duration: FAULTY_FOR,
        sample_every: Duration::from_secs(5),
        templates: templates::written(&draft.specs),
        heal_at: Some(FAULTY_FOR),
        idle_faults: true,
        limits: Limits {
            overshoot_max: Some(0.0),
            nesting_max: Some(0.0),
            mastership_max: Some(0.0),
            utilisation_min: Some(1.0 - AT_REST),
            unfairness_max: Some(AT_REST),
            ..Limits::default()
        },
        ..draft.scenario
    };
    healed::demand_ideal_shares(&mut scenario);
    scenario
}

/// Plays a scenario, and returns the promise it broke. After every event of a node it asserts that
/// the node's books add up. A failed assertion or another panic ends the run without a recording.
pub fn play(scenario: &Scenario) -> (Recording, Option<FoundFailure>) {
    let run = || World::new(scenario).asserting().run(|_| {});
    let recording = match catch_unwind(AssertUnwindSafe(run)) {
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
    let broken = recording.verdicts.iter().find(|it| !it.holds);
    let failure = broken.map(|verdict| {
        let at = verdict.at_s.map(|at| format!(", worst at {at:.3} s"));
        let at = at.unwrap_or_default();
        FoundFailure {
            checker: Some(verdict.checker),
            detail: format!(
                "{} of {} is {:.6}, beyond the limit of {:.6}{at}",
                verdict.checker.as_str(),
                verdict.resource,
                verdict.value,
                verdict.limit.unwrap_or_default()
            ),
        }
    });
    (recording, failure)
}

#[cfg(test)]
mod tests;
