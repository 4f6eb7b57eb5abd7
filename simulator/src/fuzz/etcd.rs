//! etcd is wiped and restored from backups, while small trees lose their masters: epochs go back, and
//! whoever has seen a later one keeps to that until the last lease is over. In some nodes all servers
//! stop, and nobody remembers.

use std::time::Duration;

use doorward_engine::template::AlgorithmKind;

use crate::chance::Chance;
use crate::fuzz::drawn::templates;
use crate::fuzz::small::{Parts, all_links, change, hungry, nodes, once, rest_of, servers, spec};
use crate::scenario::fault::{ClientChoice, Event, NodeChoice, Side, Span};
use crate::scenario::{Latency, Link, Scenario};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0007;

/// When anything goes wrong.
const FAULTY: Span = (Duration::from_secs(20), Duration::from_secs(190));

/// What a seed of this family draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ STREAM);
    let lease = Duration::from_secs(chance.pick([20, 20, 40]));
    let kind = chance.pick([AlgorithmKind::FairShare, AlgorithmKind::PriorityBands]);
    let refresh = lease / chance.pick([4, 8]);
    let spec = spec(kind, lease, refresh);
    let mut nodes = nodes(&mut chance, 3);
    for node in &mut nodes {
        node.candidates = chance.pick([1, 2, 3]);
    }
    let templates = templates(&[spec]);
    let clients = hungry(&mut chance, &nodes, &templates, 4);
    let way = Link {
        latency: Latency::Uniform(Duration::from_millis(1), Duration::from_millis(300)),
        loss: chance.pick([0.0, 0.05]),
        duplication: chance.pick([0.0, 0.1]),
    };
    let servers = servers(
        &mut chance,
        (Duration::from_secs(1), Duration::from_secs(3)),
    );
    let mut faults = Vec::new();
    for _ in 0..1 + chance.below(3) {
        let lost = chance.duration(FAULTY.0, FAULTY.1);
        let back = (Duration::from_secs(1), lost);
        let back = chance.happens(0.6).then_some(back);
        faults.push(once(lost, Event::Etcd { back, length: None }));
        // Before and after it, servers come and go.
        for _ in 0..chance.below(6) {
            let at = lost.saturating_sub(spec.lease / 2);
            let at = at + chance.duration(Duration::ZERO, spec.lease * 3 / 2);
            let node = chance.below(nodes.len());
            let event = match chance.below(4) {
                0 => Event::Stop {
                    node: NodeChoice::Node(node),
                    length: (Duration::from_secs(1), spec.lease * 3 / 2),
                },
                1 => Event::Partition {
                    node: NodeChoice::Node(node),
                    from: chance.pick([Side::Parent, Side::Below, Side::All]),
                    length: (Duration::from_millis(100), spec.lease),
                },
                2 => Event::Demand {
                    clients: ClientChoice::any(1 + chance.below(3)),
                    wants: spec.capacity * chance.pick([0.0, 0.1, 1.0]),
                },
                _ => change(&mut chance, node),
            };
            faults.push(once(at, event));
        }
    }
    rest_of(
        seed,
        "etcd is wiped and restored while masters change.",
        templates,
        Parts {
            nodes,
            clients,
            network: all_links(way),
            servers,
            faults,
        },
    )
}
