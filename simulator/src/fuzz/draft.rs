//! Random world, composed of its parts.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::network::Quality;
use crate::fuzz::part::{Part, Strength};
use crate::fuzz::templates::{Spec, written};
use crate::fuzz::{
    addresses, clients, clocks, cuts, departures, edits, etcd, masters, network, templates,
    topology, twins,
};
use crate::scenario::fault::{Event, Fault, Span};
use crate::scenario::{Limits, Scenario};

/// Time in which faults happen.
const FAULTY_FOR: Duration = Duration::from_secs(200);

/// Largest deviation at rest, as a part of what can be used: the error of compressed curves.
const AT_REST: f64 = 0.005;

/// Value that separates the stream of random worlds from others.
const STREAM: u64 = 0x5eed_0000_0000_0010;

/// First fork of the parts' streams.
const PARTS: u64 = 100;

/// World drawn so far.
pub(super) struct Draft {
    strengths: [Strength; Part::ALL.len()],
    chance: Chance,
    pub(super) quality: Quality,
    pub(super) specs: Vec<Spec>,
    pub(super) scenario: Scenario,
}

impl Draft {
    /// Returns the strength of a part.
    pub(super) fn strength(&self, part: Part) -> Strength {
        let strength = self.strengths.get(part as usize);
        strength.copied().unwrap_or(Strength::None)
    }

    /// Returns the random stream of a part.
    pub(super) fn chance_of(&self, part: Part) -> Chance {
        self.chance.fork(PARTS + part as u64)
    }

    /// Returns the longest lease length of the templates at the start.
    pub(super) fn lease(&self) -> Duration {
        let leases = self.specs.iter().map(|spec| spec.lease);
        leases.max().unwrap_or_default()
    }

    /// Returns the time for faults: after all clients had an answer, and not right before the end
    /// of the faults.
    pub(super) fn faulty(&self) -> Span {
        (
            Duration::from_secs(20),
            FAULTY_FOR - Duration::from_secs(10),
        )
    }

    /// Draws a time for a fault.
    pub(super) fn some_time(&self, chance: &mut Chance) -> Duration {
        let (least, most) = self.faulty();
        chance.duration(least, most)
    }

    /// Draws a time for a fault, at most `within` after another time.
    pub(super) fn soon(&self, chance: &mut Chance, after: Duration, within: Duration) -> Duration {
        let at = after + chance.duration(Duration::ZERO, within);
        at.min(self.faulty().1)
    }

    /// Adds an event that happens once.
    pub(super) fn put(&mut self, at: Duration, event: Event) {
        self.scenario.faults.push(Fault::once(at, event));
    }
}

/// Returns the world of a seed, without the demands on it after the heal.
pub(super) fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let chance = Chance::new(seed ^ STREAM);
    let strengths = strengths(&mut chance.fork(0), focus);
    let mut draft = Draft {
        strengths,
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
    cuts::draw(&mut draft);
    etcd::draw(&mut draft);
    clocks::draw(&mut draft);
    edits::draw(&mut draft);
    departures::draw(&mut draft);
    addresses::draw(&mut draft);
    twins::draw(&mut draft);
    finished(seed, draft)
}

fn strengths(chance: &mut Chance, focus: Option<Part>) -> [Strength; Part::ALL.len()] {
    Part::ALL.map(|part| {
        let drawn = Strength::draw(chance);
        match focus == Some(part) {
            true => Strength::Much,
            false => drawn,
        }
    })
}

impl Draft {
    /// Leaves a part out of this world.
    pub(super) fn leave_out(&mut self, part: Part) {
        if let Some(strength) = self.strengths.get_mut(part as usize) {
            *strength = Strength::None;
        }
    }
}

/// Completes a world: faults happen for a while and then stop.
fn finished(seed: u64, draft: Draft) -> Scenario {
    let drawn = Part::ALL
        .into_iter()
        .filter(|part| draft.strength(*part).is_some());
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
        templates: written(&draft.specs),
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
    let (mut lease, mut refresh) = (Duration::ZERO, Duration::ZERO);
    for template in scenario.templates_ever() {
        lease = lease.max(template.algorithm.lease_length);
        refresh = refresh.max(template.algorithm.refresh_interval);
    }
    // Old leases expire, and one level may learn after the other, on slow clocks too.
    let levels = 1 + topology::depth(&scenario.nodes);
    let rest = (lease * 4 + refresh * 4 * levels).mul_f64(1.2) + Duration::from_secs(30);
    scenario.duration = FAULTY_FOR + rest;
    scenario.settled_after = scenario.duration - refresh * 2;
    scenario
}
