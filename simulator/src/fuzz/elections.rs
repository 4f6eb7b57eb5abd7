//! Elections whose servers reach etcd badly: questions are lost on the way there, answers on the way back, or
//! both come late; of one server, of some, or of all of a node. Leases end as early as they may, so that a master
//! that believes in its term for a moment too long is found; in between etcd goes back, servers freeze, and
//! clocks differ by as much as they may.

use std::time::Duration;

use doorward_engine::template::{AlgorithmKind, Templates};

use crate::chance::Chance;
use crate::fuzz::drawn::{Spec, templates};
use crate::fuzz::small::{Parts, all_links, change, hungry, nodes, once, rest_of, servers, spec};
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice, Servers, Span, ToEtcd};
use crate::scenario::{Latency, Link, Scenario};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0009;

/// When anything goes wrong.
const FAULTY: Span = (Duration::from_secs(20), Duration::from_secs(190));

/// How far each clock may be off, as a part: half of what leases allow for.
const DRIFT: f64 = 0.0005;

/// What a seed of this family draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ STREAM);
    let lease = Duration::from_secs(chance.pick([20, 20, 40]));
    let kind = chance.pick([AlgorithmKind::FairShare, AlgorithmKind::PriorityBands]);
    let refresh = lease / chance.pick([4, 8]);
    let spec = spec(kind, lease, refresh);
    let mut nodes = nodes(&mut chance, 3);
    for node in &mut nodes {
        node.candidates = chance.pick([1, 2, 3, 3]);
    }
    let templates_now = templates(&[spec]);
    let clients = hungry(&mut chance, &nodes, &templates_now, 4);
    let latency = chance.pick([1, 20, 200]);
    let way = Link {
        latency: Latency::Uniform(Duration::ZERO, Duration::from_millis(latency)),
        loss: chance.pick([0.0, 0.05]),
        duplication: chance.pick([0.0, 0.1]),
    };
    let ttl = Duration::from_secs(chance.pick([2, 2, 5]));
    let longest = ttl * chance.pick([1, 1, 2]);
    let servers = servers(&mut chance, (ttl, longest));
    let mut faults = Vec::new();
    for node in 0..nodes.len() {
        let clock = ClockChoice::Node(NodeChoice::Node(node));
        let speed = 1.0 + DRIFT * chance.between(-1.0, 1.0);
        faults.push(once(Duration::ZERO, Event::Drift { clock, speed }));
    }
    for _ in 0..3 + chance.below(6) {
        let begins = chance.duration(FAULTY.0, FAULTY.1);
        let node = chance.below(nodes.len());
        faults.push(once(begins, unreachable(&mut chance, node, ttl)));
        for _ in 0..chance.below(5) {
            let at = begins + chance.duration(Duration::ZERO, ttl * 6);
            let event = beside(&mut chance, node, nodes.len(), spec, ttl);
            faults.push(once(at.min(FAULTY.1), event));
        }
    }
    rest_of(
        seed,
        "Elections whose servers reach etcd badly.",
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

/// Servers of a node reach etcd badly, or not.
fn unreachable(chance: &mut Chance, node: usize, ttl: Duration) -> Event {
    let node = NodeChoice::Node(node);
    let length = (ttl / 10, ttl * chance.pick([1, 3, 8]));
    if chance.happens(0.3) {
        return Event::EtcdLink {
            node,
            loss: chance.pick([0.0, 0.1, 0.5]),
            late: (Duration::ZERO, ttl / chance.pick([20, 6, 2])),
            length,
        };
    }
    Event::Isolate {
        node,
        servers: chance.pick([
            Servers::Master,
            Servers::Master,
            Servers::Others,
            Servers::Some,
            Servers::All,
        ]),
        way: chance.pick([ToEtcd::Both, ToEtcd::There, ToEtcd::Back]),
        length,
    }
}

/// What goes wrong meanwhile.
fn beside(chance: &mut Chance, node: usize, nodes: usize, spec: Spec, ttl: Duration) -> Event {
    let brief = (Duration::from_millis(100), ttl * 2);
    let clients = ClientChoice::any(1 + chance.below(3));
    match chance.below(10) {
        0 | 1 => unreachable(chance, node, ttl),
        2 | 3 => change(chance, node),
        4 => Event::Freeze {
            node: NodeChoice::Node(node),
            length: brief,
        },
        // For so long it is away that nobody believes any more in what it has forgotten: see
        // `restored-at-once.yaml` among the kept worlds.
        5 => Event::Etcd {
            back: chance.happens(0.7).then_some((Duration::ZERO, ttl * 4)),
            length: Some((ttl, ttl * 2)),
        },
        6 => Event::Stop {
            node: NodeChoice::Node(chance.below(nodes)),
            length: brief,
        },
        7 => Event::Edit {
            templates: edited(chance, spec),
        },
        8 => Event::Crash {
            clients,
            length: Some((Duration::from_secs(1), spec.lease)),
        },
        _ => Event::Demand {
            clients,
            wants: spec.capacity * chance.pick([0.0, 0.1, 1.0, 2.0]),
        },
    }
}

/// More or less of it, for longer leases or shorter ones.
fn edited(chance: &mut Chance, spec: Spec) -> Templates {
    let lease = spec.lease * chance.pick([1, 1, 2]) / chance.pick([1, 2]);
    templates(&[Spec {
        capacity: spec.capacity * chance.pick([0.5, 1.0, 1.5]),
        lease,
        refresh: lease / 4,
        // A lone root knows nothing of those before: it learns for as long as any may last.
        learning: Some(spec.lease * 2),
        ..spec
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::fault::Fault;

    #[test]
    fn every_way_to_etcd_is_drawn() {
        let mut chance = Chance::new(1);
        let drawn: Vec<Fault> = (0..200)
            .map(|_| once(FAULTY.0, unreachable(&mut chance, 0, FAULTY.0)))
            .collect();
        let is = |of: &dyn Fn(&Event) -> bool| drawn.iter().any(|it| of(&it.choices[0].1));
        assert!(is(&|event| matches!(event, Event::EtcdLink { .. })));
        for way in [ToEtcd::Both, ToEtcd::There, ToEtcd::Back] {
            assert!(is(
                &|event| matches!(event, Event::Isolate { way: drawn, .. } if *drawn == way)
            ));
        }
    }
}
