//! A world, made of its parts.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::network::Quality;
use crate::fuzz::part::{Part, Strength};
use crate::fuzz::templates::{Spec, written};
use crate::fuzz::{
    addresses, clients, clocks, cuts, departures, edits, etcd, masters, network, templates,
    topology, twins,
};
use crate::scenario::fault::{Event, Fault, Span, When};
use crate::scenario::{ClientGaps, ClientGroup, Limits, Network, Node, Scenario, Servers};

/// How long anything goes wrong.
const FAULTY_FOR: Duration = Duration::from_secs(200);

/// What may be missing at rest, as a part of what could be used: what curves lose in compression.
const AT_REST: f64 = 0.005;

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0010;

/// From here on streams are of parts.
const PARTS: u64 = 100;

/// What is drawn so far.
pub(super) struct Draft {
    strengths: [Strength; Part::ALL.len()],
    chance: Chance,
    pub(super) quality: Quality,
    pub(super) nodes: Vec<Node>,
    pub(super) specs: Vec<Spec>,
    pub(super) clients: Vec<ClientGroup>,
    pub(super) network: Network,
    pub(super) servers: Servers,
    pub(super) faults: Vec<Fault>,
}

impl Draft {
    /// How strongly a part is drawn.
    pub(super) fn strength(&self, part: Part) -> Strength {
        let strength = self.strengths.get(part as usize);
        strength.copied().unwrap_or(Strength::None)
    }

    /// A part's own chance.
    pub(super) fn chance_of(&self, part: Part) -> Chance {
        self.chance.fork(PARTS + part as u64)
    }

    /// The longest lease of the templates at the start.
    pub(super) fn lease(&self) -> Duration {
        let leases = self.specs.iter().map(|spec| spec.lease);
        leases.max().unwrap_or_default()
    }

    /// When something may go wrong: not before all have been served, nor right before it is over.
    pub(super) fn faulty(&self) -> Span {
        (
            Duration::from_secs(20),
            FAULTY_FOR - Duration::from_secs(10),
        )
    }

    /// A time at which something may go wrong.
    pub(super) fn some_time(&self, chance: &mut Chance) -> Duration {
        let (least, most) = self.faulty();
        chance.duration(least, most)
    }

    /// A time within that long of another one at which something may go wrong.
    pub(super) fn soon(&self, chance: &mut Chance, after: Duration, within: Duration) -> Duration {
        let at = after + chance.duration(Duration::ZERO, within);
        at.min(self.faulty().1)
    }

    /// Something goes wrong once.
    pub(super) fn put(&mut self, at: Duration, event: Event) {
        self.faults.push(Fault {
            when: When::At(at),
            choices: vec![(1.0, event)],
        });
    }
}

/// A world of a seed, without what is demanded of it when nothing goes wrong any more.
pub(super) fn scenario(seed: u64, focus: Option<Part>) -> Scenario {
    let chance = Chance::new(seed ^ STREAM);
    let strengths = strengths(&mut chance.fork(0), focus);
    let mut draft = Draft {
        strengths,
        quality: Quality::draw(&mut chance.fork(1)),
        chance: chance.clone(),
        nodes: Vec::new(),
        specs: Vec::new(),
        clients: Vec::new(),
        network: Network::default(),
        servers: Servers::default(),
        faults: Vec::new(),
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
    /// A part is not drawn in this world.
    pub(super) fn leave_out(&mut self, part: Part) {
        if let Some(strength) = self.strengths.get_mut(part as usize) {
            *strength = Strength::None;
        }
    }
}

/// What is the same for all: things go wrong for a while, and then they do not.
fn finished(seed: u64, draft: Draft) -> Scenario {
    let drawn = Part::ALL
        .into_iter()
        .filter(|part| draft.strength(*part).is_some());
    let drawn: Vec<&str> = drawn.map(Part::as_str).collect();
    let mut scenario = Scenario {
        name: format!("fuzz-{seed}"),
        description: match drawn.is_empty() {
            true => "A world by chance.".to_owned(),
            false => format!("A world by chance: {}.", drawn.join(", ")),
        },
        seed,
        duration: FAULTY_FOR,
        sample_every: Duration::from_secs(5),
        settled_after: Duration::ZERO,
        templates: written(&draft.specs),
        nodes: draft.nodes,
        clients: draft.clients,
        network: draft.network,
        servers: draft.servers,
        client_gaps: ClientGaps::default(),
        faults: draft.faults,
        heal_at: Some(FAULTY_FOR),
        idle_faults: true,
        right_at: Vec::new(),
        limits: Limits {
            overshoot_max: Some(0.0),
            nesting_max: Some(0.0),
            mastership_max: Some(0.0),
            utilisation_min: Some(1.0 - AT_REST),
            unfairness_max: Some(AT_REST),
            ..Limits::default()
        },
    };
    let (mut lease, mut refresh) = (Duration::ZERO, Duration::ZERO);
    for template in scenario.templates_ever() {
        lease = lease.max(template.algorithm.lease_length);
        refresh = refresh.max(template.algorithm.refresh_interval);
    }
    // What was out runs down, and learning may follow learning, level by level; by slow clocks, too.
    let levels = 1 + topology::depth(&scenario.nodes);
    let rest = (lease * 4 + refresh * 4 * levels).mul_f64(1.2) + Duration::from_secs(30);
    scenario.duration = FAULTY_FOR + rest;
    scenario.settled_after = scenario.duration - refresh * 2;
    scenario
}
