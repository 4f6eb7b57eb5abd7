//! Two processes under one name, both alive: of nodes without another candidate, and of clients. What one
//! of them lets go, or asks anew, is still in use by the other one. Links are quick and lose nothing,
//! so that both are heard when they are to be heard.

use std::time::Duration;

use doorward_engine::template::AlgorithmKind;

use crate::chance::Chance;
use crate::fuzz::drawn::templates;
use crate::fuzz::small::{Parts, all_links, hungry, nodes, once, rest_of, servers, spec};
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice};
use crate::scenario::{Latency, Link, Scenario};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0008;

/// What a seed of this family draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ STREAM);
    let lease = Duration::from_secs(chance.pick([20, 40]));
    let kind = chance.pick([AlgorithmKind::FairShare, AlgorithmKind::PriorityBands]);
    let refresh = lease / chance.pick([4, 8]);
    let spec = spec(kind, lease, refresh);
    let mut nodes = nodes(&mut chance, 1);
    for node in &mut nodes {
        node.candidates = chance.pick([1, 1, 3]);
    }
    let templates = templates(&[spec]);
    let clients = hungry(&mut chance, &nodes, &templates, 4);
    let latency = chance.pick([0, 5, 20]);
    let way = Link {
        latency: Latency::Constant(Duration::from_millis(latency)),
        loss: 0.0,
        duplication: chance.pick([0.0, 0.1]),
    };
    let servers = servers(
        &mut chance,
        (Duration::from_secs(2), Duration::from_secs(2)),
    );
    // Not of both at once: where a client asks one process of a node, and its second process the other
    // one, nobody sees both.
    let of_clients = chance.happens(0.3);
    let mut faults = Vec::new();
    for _ in 0..1 + chance.below(4) {
        let at = chance.duration(lease, Duration::from_secs(180));
        let length = (Duration::from_secs(1), lease * 2);
        let some = ClientChoice::any(1 + chance.below(2));
        let of = match of_clients {
            true => ClockChoice::Clients(some),
            false => ClockChoice::Node(NodeChoice::Node(1 + chance.below(nodes.len() - 1))),
        };
        faults.push(once(at, Event::Twin { of, length }));
        for _ in 0..chance.below(3) {
            let at = at + chance.duration(Duration::ZERO, lease);
            let clients = ClientChoice::any(1 + chance.below(2));
            let event = match chance.below(3) {
                0 => Event::Crash {
                    clients,
                    length: Some((Duration::from_secs(1), lease)),
                },
                _ => Event::Demand {
                    clients,
                    wants: spec.capacity * chance.pick([0.0, 0.1, 1.0, 2.0]),
                },
            };
            faults.push(once(at, event));
        }
    }
    rest_of(
        seed,
        "Two processes under one name, of nodes and of clients.",
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
