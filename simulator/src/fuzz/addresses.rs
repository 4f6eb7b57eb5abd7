//! Servers that are looked for where they are not: those that are not the master send whoever asks to one another,
//! or lists name addresses at which nobody is any more. Meanwhile masters die, processes start anew, nodes are cut
//! off, and others want something else. Of some nodes two processes run, and some parents know no streams.

use std::time::Duration;

use doorward_engine::template::AlgorithmKind;

use crate::chance::Chance;
use crate::fuzz::drawn::{Spec, templates};
use crate::fuzz::small::{Parts, all_links, change, hungry, nodes, once, rest_of, servers, spec};
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice, Side, Span};
use crate::scenario::{Latency, Link, Node, Scenario};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_000a;

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
        node.candidates = chance.pick([1, 2, 3, 3]);
    }
    let templates = templates(&[spec]);
    let clients = hungry(&mut chance, &nodes, &templates, 4);
    let latency = chance.pick([1, 20, 200]);
    let way = Link {
        latency: Latency::Uniform(Duration::ZERO, Duration::from_millis(latency)),
        loss: chance.pick([0.0, 0.05]),
        duplication: chance.pick([0.0, 0.1]),
    };
    let shortest = Duration::from_secs(chance.pick([1, 2, 5]));
    let longest = shortest * chance.pick([1, 2]);
    let servers = servers(&mut chance, (shortest, longest));
    let mut faults = Vec::new();
    for _ in 0..2 + chance.below(5) {
        let begins = chance.duration(FAULTY.0, FAULTY.1);
        let node = chance.below(nodes.len());
        faults.push(once(begins, astray(&mut chance, node, spec)));
        for _ in 0..1 + chance.below(5) {
            let at = begins + chance.duration(Duration::ZERO, spec.lease);
            let event = beside(&mut chance, node, &nodes, spec);
            faults.push(once(at.min(FAULTY.1), event));
        }
    }
    rest_of(
        seed,
        "Servers are looked for where they are not.",
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

/// Whoever looks for the servers of a node is led astray.
fn astray(chance: &mut Chance, node: usize, spec: Spec) -> Event {
    let node = NodeChoice::Node(node);
    let length = (
        Duration::from_secs(1),
        spec.lease * chance.pick([1, 2, 4]) / 2,
    );
    if chance.happens(0.5) {
        Event::RedirectLoop { node, length }
    } else {
        Event::StaleAddresses { node, length }
    }
}

/// What goes wrong meanwhile, at a node or at one below it.
fn beside(chance: &mut Chance, node: usize, nodes: &[Node], spec: Spec) -> Event {
    let brief = (
        Duration::from_millis(100),
        Duration::from_secs(chance.pick([1, 3, 9])),
    );
    let clients = ClientChoice::any(1 + chance.below(3));
    let below: Vec<usize> = (0..nodes.len())
        .filter(|it| nodes.get(*it).is_some_and(|it| it.parent == Some(node)))
        .collect();
    // Whoever looks for its servers, starts to, or starts again.
    let looks = match below.get(chance.below(below.len().max(1))) {
        Some(child) if chance.happens(0.5) => *child,
        _ => node,
    };
    match chance.below(10) {
        0 => astray(chance, node, spec),
        1..=3 => change(chance, looks),
        4 => Event::Restart {
            node: NodeChoice::Node(looks),
            length: brief,
        },
        5 => Event::Partition {
            node: NodeChoice::Node(looks),
            from: chance.pick([Side::Parent, Side::Below, Side::All]),
            length: brief,
        },
        6 => Event::Stop {
            node: NodeChoice::Node(node),
            length: brief,
        },
        7 => Event::Crash {
            clients,
            length: Some((Duration::from_secs(1), spec.lease)),
        },
        // Not of a node and of clients at once: see `twins`.
        8 => Event::Twin {
            of: ClockChoice::Node(NodeChoice::Node(1 + chance.below(nodes.len() - 1))),
            length: (Duration::from_secs(1), spec.lease),
        },
        _ => Event::Demand {
            clients,
            wants: spec.capacity * chance.pick([0.0, 0.1, 1.0, 2.0]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_leading_astray_are_drawn_of_nodes_that_have_other_candidates() {
        let (mut loops, mut stale) = (0, 0);
        for seed in 0..50 {
            let scenario = scenario(seed);
            let has_others = |node: &NodeChoice| {
                let of = node.only().and_then(|node| scenario.nodes.get(node));
                usize::from(of.is_some_and(|node| node.candidates > 1))
            };
            for (_, event) in scenario.faults.iter().flat_map(|fault| &fault.choices) {
                match event {
                    Event::RedirectLoop { node, .. } => loops += has_others(node),
                    Event::StaleAddresses { node, .. } => stale += has_others(node),
                    _ => {}
                }
            }
        }
        assert!(loops > 50 && stale > 50, "{loops} and {stale}");
    }
}
