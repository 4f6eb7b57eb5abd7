//! Clocks that differ by as much as they may, and nothing that hides it: each is up to half a
//! thousandth fast or slow, often all of it; messages take no time, or little; leases are short, and
//! refreshed rarely. Holders vanish or are cut off, so that their leases run to the last moment, while
//! others wait for what they have.

use std::time::Duration;

use doorward_engine::template::AlgorithmKind;

use crate::chance::Chance;
use crate::fuzz::drawn::{Spec, templates};
use crate::fuzz::small::{Parts, all_links, hungry, nodes, once, rest_of, servers, spec};
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, Fault, NodeChoice, Side};
use crate::scenario::{Latency, Link, Scenario};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0006;

/// How far each clock may be off, as a part: half of what leases allow for.
const DRIFT: f64 = 0.0005;

/// What a seed of this family draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ STREAM);
    let lease = Duration::from_secs(chance.pick([10, 20, 60]));
    let kind = chance.pick([
        AlgorithmKind::FairShare,
        AlgorithmKind::FairShare,
        AlgorithmKind::PriorityBands,
    ]);
    let refresh = lease / chance.pick([3, 4]);
    let spec = spec(kind, lease, refresh);
    let nodes = nodes(&mut chance, 2);
    let templates_now = templates(&[spec]);
    let clients = hungry(&mut chance, &nodes, &templates_now, 4);
    let latency = chance.pick([0, 0, 1, 5]);
    let way = Link {
        latency: Latency::Constant(Duration::from_millis(latency)),
        loss: chance.pick([0.0, 0.0, 0.1]),
        duplication: 0.0,
    };
    let servers = servers(
        &mut chance,
        (Duration::from_secs(2), Duration::from_secs(2)),
    );
    let mut faults = Vec::new();
    for node in 0..nodes.len() {
        let clock = ClockChoice::Node(NodeChoice::Node(node));
        let speed = speed(&mut chance);
        faults.push(once(Duration::ZERO, Event::Drift { clock, speed }));
    }
    for client in 0..clients.len() {
        let clock = ClockChoice::Clients(ClientChoice {
            count: 1,
            groups: Some(vec![client]),
            nodes: None,
        });
        let speed = speed(&mut chance);
        faults.push(once(Duration::ZERO, Event::Drift { clock, speed }));
    }
    for _ in 0..2 + chance.below(10) {
        faults.push(fault(&mut chance, nodes.len(), spec));
    }
    rest_of(
        seed,
        "Clocks that differ by as much as they may, and leases that run to the last moment.",
        templates_now,
        Parts {
            nodes,
            clients,
            network: all_links(way),
            servers,
            faults,
        },
    )
}

/// As far off as it may be, in half of all cases.
fn speed(chance: &mut Chance) -> f64 {
    let off = match chance.below(4) {
        0 => -1.0,
        1 => 1.0,
        _ => chance.between(-1.0, 1.0),
    };
    1.0 + DRIFT * off
}

fn fault(chance: &mut Chance, nodes: usize, spec: Spec) -> Fault {
    let at = chance.duration(spec.lease, Duration::from_secs(190));
    let length = (spec.lease / 2, spec.lease * 3 / 2);
    let node = NodeChoice::Any;
    let event = match chance.below(10) {
        0 | 1 => Event::Crash {
            clients: ClientChoice::any(1 + chance.below(2)),
            length: Some(length),
        },
        2..=4 => Event::Partition {
            node,
            from: chance.pick([Side::Parent, Side::Below, Side::All]),
            length,
        },
        5 => Event::Kill {
            node,
            length: chance.happens(0.5).then_some(length),
        },
        6 => Event::Elect { node },
        7 => Event::Freeze { node, length },
        8 => {
            let capacity = spec.capacity * chance.pick([0.3, 0.6, 1.0, 1.5]);
            let edited = Spec { capacity, ..spec };
            Event::Edit {
                templates: templates(&[edited]),
            }
        }
        _ => Event::Partition {
            node: NodeChoice::Node(chance.below(nodes)),
            from: Side::All,
            length,
        },
    };
    once(at, event)
}
