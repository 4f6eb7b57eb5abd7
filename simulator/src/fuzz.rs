//! Random scenarios. The seed decides everything. Faults happen for a while and then stop. During
//! the faults clients must never exceed the capacity; at the end each must have its ideal share.
//!
//! A world consists of [parts](Part). Each has its own random stream and its own strength, so that
//! all combinations occur. Any release may change the meaning of a seed; a scenario file keeps a
//! world for good (`simulator/tests/kept`).
//!
//! The program shrinks a seed that fails to fewer faults and fewer clients that still fail in the
//! same way.

#![expect(clippy::indexing_slicing, reason = "an absent key is null, or added")]

mod addresses;
mod clients;
mod clocks;
mod departures;
mod draft;
mod etcd;
mod masters;
mod network;
mod shrink;
mod templates;
mod topology;
mod twins;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::json;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, FAULTY_FOR, Quality, Strength, said};
use crate::fuzz::topology::depth;
use crate::recording::{Checker, Recording};
use crate::scenario::{ClientGroup, Latency, Network, Scenario, Span};
use crate::world::World;

pub use crate::fuzz::draft::{Part, WorldFile};
pub use crate::fuzz::shrink::shrink;

/// Largest deviation at rest, as a part of what can be used: the error of compressed curves.
const AT_REST: f64 = 0.005;

/// Value that separates the stream of random worlds from others.
const STREAM: u64 = 0x5eed_0000_0000_0010;

/// Largest distance from the ideal when clients must have their share, as a part of what all should have.
const RIGHT: f64 = 0.01;

/// Most requests of a client within a second. The largest count in some hundred worlds was 12; a
/// client that follows redirects without end sends hundreds.
const REQUESTS_MAX: f64 = 60.0;

/// Factor for the slowest clocks.
const SLOW: f64 = 1.12;

/// Time that each level of the tree adds after a change of demand. A lost message is missed after 2
/// s, and so may be its replacement. Where servers poll, a slow network adds to that: a request for
/// more waits for a level to learn of it, which then asks others for less.
const ROUND: Duration = Duration::from_secs(4);

/// Longest wait of a client between two attempts when no server answers.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Value that separates the stream of demands after the heal from others.
const HEALED_STREAM: u64 = 0x5eed_0000_0000_0003;

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
    world(seed, focus).read()
}

/// Returns the scenario of a seed as a file, which plays the same in later releases.
pub fn world(seed: u64, focus: Option<Part>) -> WorldFile {
    let chance = Chance::new(seed ^ STREAM);
    let mut of_strengths = chance.fork(0);
    let strengths = Part::ALL.map(|part| (part, Strength::draw(&mut of_strengths)));
    let mut strengths = BTreeMap::from(strengths);
    strengths.extend(focus.map(|part| (part, Strength::Much)));
    let mut draft = Draft {
        strengths,
        quality: Quality::draw(&mut chance.fork(1)),
        chance: chance.clone(),
        nodes: Vec::new(),
        specs: Vec::new(),
        election: Span::default(),
        file: WorldFile::default(),
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
    templates::edit(&mut draft);
    departures::draw(&mut draft);
    addresses::draw(&mut draft);
    twins::draw(&mut draft);
    finished(seed, draft)
}

/// Completes a world: faults happen for a while and then stop.
fn finished(seed: u64, draft: Draft) -> WorldFile {
    let drawn = Part::ALL.into_iter();
    let drawn = drawn.filter(|part| draft.strength(*part).is_some());
    let drawn: Vec<&str> = drawn.map(Part::as_str).collect();
    let description = match drawn.is_empty() {
        true => "A random world.".to_owned(),
        false => format!("A random world: {}.", drawn.join(", ")),
    };
    let mut file = draft.file;
    let settings = &mut file.settings;
    settings["name"] = format!("fuzz-{seed}").into();
    settings["description"] = description.into();
    settings["seed"] = seed.into();
    settings["sample_every"] = "5s".into();
    settings["templates"] = templates::written(&draft.specs);
    settings["idle_faults"] = true.into();
    settings["limits"] = json!({
        "overshoot": 0,
        "nesting": 0,
        "mastership": 0,
        "utilisation": 1.0 - AT_REST,
        "unfairness": AT_REST,
    });
    demand_ideal_shares(&mut file);
    file
}

/// Returns the longest delay of a message.
fn slowest(network: &Network) -> Duration {
    let links = [&network.clients, &network.servers].into_iter();
    let links = links.chain(network.links.iter().map(|it| &it.link));
    let longest = links.filter_map(|link| match link.latency? {
        Latency::Uniform(Span(_, latency)) => Some(latency),
        // One in a thousand takes longer.
        Latency::Exponential { least, mean } => Some(least.0 + mean.0 * 7),
    });
    longest.max().unwrap_or_default()
}

/// Demands that some time after the heal all clients have their ideal share. Then a client changes its demand, and soon
/// after all must have their ideal share again.
fn demand_ideal_shares(file: &mut WorldFile) {
    let scenario = file.read();
    let mut chance = Chance::new(scenario.seed ^ HEALED_STREAM);
    let (mut lease, mut learns, mut refresh) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for template in scenario.templates_ever() {
        let algorithm = &template.algorithm;
        lease = lease.max(algorithm.lease_length);
        learns = learns.max(algorithm.lease_length.max(algorithm.learning_mode_duration));
        refresh = refresh.max(algorithm.refresh_interval);
    }
    let levels = 1 + depth(&scenario.nodes);
    // Old leases expire, and one level may learn after the other, on slow clocks too.
    let rest = (lease * 4 + refresh * 4 * levels).mul_f64(1.2) + Duration::from_secs(30);
    let duration = FAULTY_FOR + rest;
    // Levels may learn one after the other. A client that was cut off for long tries again late.
    // Slow clocks add to that.
    let first = (learns * 2).max(BACKOFF_MAX) + (refresh * 3 * levels) + Duration::from_secs(10);
    let first = FAULTY_FOR + first.mul_f64(SLOW);
    let usages = scenario.clients.iter().flat_map(ClientGroup::usages);
    let works = usages.filter_map(|usage| Some(usage.limiter?.takes?.1));
    // Work under way finishes before its permits are free.
    let work = works.max().unwrap_or_default();
    // A client that holds too much refreshes once, and waiting clients are asked to come soon.
    let refreshed = refresh.mul_f64(1.1) + Duration::from_secs(3);
    let again = refreshed + work + (ROUND + slowest(&scenario.network)) * levels;
    let again = first + again.mul_f64(SLOW);
    let client = chance.below(scenario.clients.len());
    let Some(client) = scenario.clients.get(client) else {
        return;
    };
    let template = scenario.templates.find(&client.first.resource);
    let capacity = template.map_or(0.0, |it| it.capacity.get());
    file.faults.push(json!({
        "at": said(first + Duration::from_secs(1)),
        "demand": {"clients": 1, "of": client.name},
        "wants": capacity * chance.between(0.0, 1.0),
    }));
    let settled_after = again.max(duration - refresh * 2);
    let settings = &mut file.settings;
    settings["right_at"] = json!([said(first), said(again)]);
    settings["settled_after"] = said(settled_after).into();
    settings["duration"] = said(duration.max(settled_after + refresh * 2)).into();
    settings["heal_at"] = said(FAULTY_FOR).into();
    settings["limits"]["settled_unfairness"] = RIGHT.into();
    settings["limits"]["requests"] = REQUESTS_MAX.into();
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
