//! What seeds of this family draw besides what all do: a second resource, more
//! kinds of demand, links of their own, clocks that drift or are slow, more faults, and templates in
//! which anything changes.
//!
//! It comes from a stream of its own, so that what other seeds draw stays as it is. Clocks differ only
//! as they may: a little either way, or so that who grants is slower than who holds.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::template::{AlgorithmKind, Template, Templates};

use crate::chance::Chance;
use crate::fuzz::drawn::{RESOURCE, Spec, depth, templates};
use crate::scenario::demand::{Demand, Diurnal};
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, Fault, NodeChoice, Span, When};
use crate::scenario::{Latency, Link, Scenario};

/// How far each clock may be off, as a part: what leases allow for.
const DRIFT: f64 = 0.0005;

/// What else is asked for.
const OTHER: &str = "other";

/// The longest lease of any template here. A lone root learns that long: when it is started again soon
/// after leases were made shorter it knows only the new length, and the old leases are still out. With
/// an election the length stands beside the term.
const LEARNING: Duration = seconds(90);

/// Makes the second stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0002;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Draws more for a scenario that was drawn.
pub(super) fn widen(scenario: &mut Scenario) {
    let mut chance = Chance::new(scenario.seed ^ STREAM);
    let Some(faulty_for) = scenario.heal_at else {
        return;
    };
    let is_alone = scenario
        .nodes
        .first()
        .is_some_and(|root| root.candidates == 1);
    let learning = is_alone.then_some(LEARNING);
    let of = |template| spec(template, learning);
    let mut specs: Vec<Spec> = scenario.templates.iter().map(|it| of(it)).collect();
    if chance.happens(0.4) {
        specs.push(another(&mut chance, learning));
        move_some(scenario, &mut chance, &specs);
    }
    scenario.templates = templates(&specs);
    for client in &mut scenario.clients {
        if chance.happens(0.5) {
            let of = specs
                .iter()
                .find(|spec| spec.resource == client.resource.as_str());
            let capacity = of.map_or(1.0, |spec| spec.capacity);
            client.demand = demand(&mut chance, capacity);
        }
    }
    links(scenario, &mut chance);
    for fault in &mut scenario.faults {
        for (_, event) in &mut fault.choices {
            if let Event::Edit { templates } = event {
                *templates = edited(&mut chance, &specs);
            }
        }
    }
    let more = faults(&mut chance, scenario, &specs, faulty_for);
    scenario.faults.extend(more);
    scenario
        .faults
        .extend(clocks(&mut chance, scenario, faulty_for));
    rest(scenario, faulty_for);
}

/// As it was drawn.
fn spec(template: &Template, learning: Option<Duration>) -> Spec {
    Spec {
        resource: RESOURCE,
        kind: template.algorithm.kind,
        capacity: template.capacity.get(),
        lease: template.algorithm.lease_length,
        refresh: template.algorithm.refresh_interval,
        learning,
    }
}

fn another(chance: &mut Chance, learning: Option<Duration>) -> Spec {
    let lease = seconds(chance.pick([20, 30, 60]));
    Spec {
        resource: OTHER,
        kind: chance.pick([
            AlgorithmKind::FairShare,
            AlgorithmKind::ProportionalShare,
            AlgorithmKind::PriorityBands,
        ]),
        capacity: chance.pick([3.0, 100.0, 1e9]),
        lease,
        refresh: lease / chance.pick([30, 10, 3]),
        learning,
    }
}

/// Some ask for the other resource.
fn move_some(scenario: &mut Scenario, chance: &mut Chance, specs: &[Spec]) {
    let other = specs.iter().find(|spec| spec.resource == OTHER);
    let (Some(other), Ok(resource)) = (other, ResourceId::new(OTHER)) else {
        return;
    };
    let many = scenario.clients.len() as f64;
    for client in &mut scenario.clients {
        if chance.happens(0.5) {
            client.resource = resource.clone();
            client.priority = if other.kind.has_bands() {
                chance.below(3) as i64
            } else {
                0
            };
            client.demand = Demand::Constant(other.capacity / many * chance.between(0.0, 5.0));
        }
    }
}

/// A kind that is not among those every seed draws.
fn demand(chance: &mut Chance, capacity: f64) -> Demand {
    let (low, high) = (chance.between(0.0, 0.1), chance.between(0.0, 0.6));
    let (least, most) = (capacity * low, capacity * (low + high));
    let at = chance.duration(seconds(10), seconds(200));
    let long = chance.duration(seconds(5), seconds(100));
    match chance.below(5) {
        0 => Demand::Ramp {
            from: least,
            to: most,
            at,
            length: long,
            every: long / 20,
        },
        1 => Demand::Diurnal(Diurnal {
            least,
            most,
            peak: long / 2,
            period: long,
            shift: chance.uniform(),
            every: long / 50,
        }),
        2 => Demand::FlashCrowd {
            base: least,
            peak: most * 3.0,
            at,
            rise: long / 5,
            half_life: long / 3,
            every: long / 50,
        },
        3 => Demand::Step {
            from: most,
            to: if chance.happens(0.5) { least } else { 0.0 },
            at,
        },
        _ => Demand::Sine {
            mean: most,
            amplitude: most - least,
            period: long,
            shift: chance.uniform(),
            every: long / 30,
        },
    }
}

/// Any link may be a bad one: slow, so that what was sent later comes earlier; lossy; doubling. Not so
/// slow that answers come after servers have given up: it stays as slow when nothing goes wrong any
/// more.
fn links(scenario: &mut Scenario, chance: &mut Chance) {
    let bad = |chance: &mut Chance| Link {
        latency: match chance.below(3) {
            0 => Latency::Constant(Duration::from_millis(300)),
            1 => Latency::Uniform(Duration::ZERO, Duration::from_millis(900)),
            _ => Latency::Exponential {
                least: Duration::ZERO,
                mean: Duration::from_millis(200),
            },
        },
        loss: chance.pick([0.0, 0.1, 0.4]),
        duplication: chance.pick([0.0, 0.2, 0.6]),
    };
    for node in 0..scenario.nodes.len() {
        if chance.happens(0.15) {
            scenario.network.at.insert(node, bad(chance));
        }
        if node > 0 && chance.happens(0.15) {
            scenario.network.above.insert(node, bad(chance));
        }
    }
}

/// Any of it may change: capacity, how long leases last, how often they are refreshed.
fn edited(chance: &mut Chance, specs: &[Spec]) -> Templates {
    let mut edited = specs.to_vec();
    for spec in &mut edited {
        spec.capacity *= chance.pick([0.3, 0.8, 1.0, 1.2, 2.0]);
        if chance.happens(0.5) {
            spec.lease = seconds(chance.pick([20, 30, 45, 90]));
            spec.refresh = spec.lease / chance.pick([20, 8, 3]);
        }
    }
    templates(&edited)
}

fn faults(
    chance: &mut Chance,
    scenario: &Scenario,
    specs: &[Spec],
    length: Duration,
) -> Vec<Fault> {
    let parents = scenario.nodes.iter().filter_map(|node| node.parent);
    let mut inner: Vec<usize> = parents.collect();
    inner.dedup();
    let mut faults = Vec::new();
    for _ in 0..chance.below(15) {
        let at = chance.duration(seconds(5), length);
        let node = match chance.below(3) {
            0 => NodeChoice::Node(0),
            1 if !inner.is_empty() => NodeChoice::AnyOf(inner.clone()),
            _ => NodeChoice::Any,
        };
        let most = seconds(chance.pick([2, 15, 60]));
        let span: Span = (Duration::from_millis(100), most);
        let some = ClientChoice::any(1 + chance.below(5));
        let event = match chance.below(10) {
            0..=2 => Event::Restart { node, length: span },
            3 => Event::Elections {
                take: (most / 2, most),
                length: chance.happens(0.7).then_some((most, most * 4)),
            },
            4 | 5 => Event::Jump {
                clock: ClockChoice::Clients(some),
                by: chance.duration(Duration::from_millis(10), most * 2),
            },
            6 | 7 => Event::Edit {
                templates: edited(chance, specs),
            },
            8 => Event::Crash {
                clients: ClientChoice {
                    nodes: Some(vec![chance.below(scenario.nodes.len())]),
                    ..some
                },
                length: Some(span),
            },
            _ => Event::Demand {
                clients: some,
                wants: chance.pick([0.0, 1.0, 1e3]),
            },
        };
        faults.push(once(at, event));
    }
    faults
}

/// Every clock is a little off; or those of servers are slow, all the more the further up.
fn clocks(chance: &mut Chance, scenario: &Scenario, length: Duration) -> Vec<Fault> {
    let mut faults = Vec::new();
    for node in 0..scenario.nodes.len() {
        let clock = ClockChoice::Node(NodeChoice::Node(node));
        let speed = 1.0 + DRIFT * chance.between(-1.0, 1.0);
        faults.push(once(Duration::ZERO, Event::Drift { clock, speed }));
    }
    let many = scenario.clients.len();
    for _ in 0..4 {
        let clock = ClockChoice::Clients(ClientChoice::any(1 + chance.below(many)));
        let speed = 1.0 + DRIFT * chance.between(-1.0, 1.0);
        faults.push(once(Duration::ZERO, Event::Drift { clock, speed }));
    }
    if chance.happens(0.2) {
        let at = chance.duration(seconds(1), length);
        let mut speeds: Vec<f64> = Vec::new();
        for (number, node) in scenario.nodes.iter().enumerate() {
            let above = node.parent.and_then(|parent| speeds.get(parent));
            let speed = chance.between(above.copied().unwrap_or(0.9), 1.0);
            speeds.push(speed);
            let clock = ClockChoice::Node(NodeChoice::Node(number));
            faults.push(once(at, Event::Drift { clock, speed }));
        }
    }
    faults
}

fn once(at: Duration, event: Event) -> Fault {
    Fault {
        when: When::At(at),
        choices: vec![(1.0, event)],
    }
}

/// How long nothing goes wrong in the end: what was out runs down, and learning may follow learning,
/// level by level; by slow clocks, too.
fn rest(scenario: &mut Scenario, faulty_for: Duration) {
    let edits = scenario.faults.iter().flat_map(|fault| &fault.choices);
    let edits = edits.filter_map(|(_, event)| match event {
        Event::Edit { templates } => Some(templates),
        _ => None,
    });
    let all = edits.chain([&scenario.templates]).flat_map(Templates::iter);
    let (mut lease, mut refresh) = (Duration::ZERO, Duration::ZERO);
    for template in all {
        lease = lease.max(template.algorithm.lease_length);
        refresh = refresh.max(template.algorithm.refresh_interval);
    }
    let levels = 1 + depth(&scenario.nodes);
    let rest = (lease * 4 + refresh * 4 * levels + seconds(30)).mul_f64(1.2);
    scenario.duration = faulty_for + rest;
    scenario.settled_after = scenario.duration - refresh * 2;
}
