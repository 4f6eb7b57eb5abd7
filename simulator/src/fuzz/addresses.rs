//! Wrong addresses: servers that are not master redirect to one another, or lists name servers that
//! are gone. In that time clients and child servers start to look for a master, or start again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Span, lasting};
use crate::fuzz::masters::change;

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Addresses);
    for _ in 0..draft.strength(Part::Addresses).many(chance, 3, 6) {
        let begins = draft.some_time(chance);
        let (node, lease) = (chance.below(draft.nodes.len()), draft.lease());
        let wrong = wrong_addresses(chance, draft.node_at(node), lease);
        draft.put(begins, wrong);
        for _ in 0..1 + chance.below(4) {
            let at = draft.soon(chance, begins, lease);
            draft.put(at, related_fault(draft, chance, node, lease));
        }
    }
}

/// Gives wrong addresses to clients and children of a node.
fn wrong_addresses(chance: &mut Chance, node: &str, lease: Duration) -> Value {
    let length = Span(Duration::from_secs(1), lease * chance.pick([1, 2, 4]) / 2);
    let kind = chance.pick(["redirect_loop", "stale_addresses"]);
    lasting(kind, node, length)
}

/// Draws a fault for the same time, at the node or at a child of it.
fn related_fault(draft: &Draft, chance: &mut Chance, node: usize, lease: Duration) -> Value {
    let nodes = draft.nodes.iter().enumerate();
    let below = nodes.filter(|(_, it)| it.parent == Some(node));
    let below: Vec<usize> = below.map(|(place, _)| place).collect();
    let looks = match below.get(chance.below(below.len().max(1))) {
        Some(child) if chance.happens(0.5) => *child,
        _ => node,
    };
    match chance.below(4) {
        0 => wrong_addresses(chance, draft.node_at(node), lease),
        1 => {
            let clients = json!({"clients": 1 + chance.below(3)});
            lasting("crash", clients, Span(Duration::from_secs(1), lease))
        }
        _ => change(chance, draft.node_at(looks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::scenario;
    use crate::scenario::fault::{Event, NodeChoice};

    #[test]
    fn redirect_loops_and_stale_addresses_are_drawn_for_nodes_with_several_candidates() {
        let (mut loops, mut stale) = (0, 0);
        for seed in 0..50 {
            let scenario = scenario(seed, Some(Part::Addresses));
            let has_others = |node: &NodeChoice| {
                let of = node.only(&scenario.nodes);
                let of = of.and_then(|node| scenario.nodes.get(node));
                usize::from(of.is_some_and(|node| node.candidates > 1))
            };
            for (_, event) in scenario.faults.iter().flat_map(|fault| &fault.choices) {
                match event {
                    Event::RedirectLoop { redirect_loop, .. } => loops += has_others(redirect_loop),
                    Event::StaleAddresses {
                        stale_addresses, ..
                    } => {
                        stale += has_others(stale_addresses);
                    }
                    _ => {}
                }
            }
        }
        assert!(loops > 50 && stale > 50, "{loops} and {stale}");
    }
}
