//! Changes of masters: a single one now and then, or several in a row. The master of a node
//! changes, and while the next one learns, masters of a child node change again and again within a
//! lease length. A child that learns something too early, or believes it for too long, then lets
//! others use the same capacity at once.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part};
use crate::fuzz::topology;
use crate::scenario::fault::{Event, NodeChoice, NodeServers, Span, ToEtcd};

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Masters);
    let strength = draft.strength(Part::Masters);
    for _ in 0..strength.many(chance, 3, 10) {
        let at = draft.some_time(chance);
        let event = alone(chance, draft);
        draft.put(at, event);
    }
    if !strength.is_some() {
        return;
    }
    for _ in 0..chance.below(5) {
        chain(draft, chance);
    }
    if chance.happens(0.2) {
        let at = draft.some_time(chance);
        let longest = draft.scenario.servers.election.1;
        let event = Event::Elections {
            take: (longest, longest * 2),
            length: Some((longest * 2, longest * 8)),
        };
        draft.put(at, event);
    }
}

/// Draws a change at any node, for any time.
fn alone(chance: &mut Chance, draft: &Draft) -> Event {
    let node = match chance.happens(0.3) {
        true => draft.node_at(0),
        false => draft.node(chance),
    };
    let most = Duration::from_secs(chance.pick([3, 15, 60]));
    let length = (Duration::from_millis(100), most);
    match chance.below(5) {
        0 => Event::Kill {
            node,
            length: Some(length),
        },
        1 => Event::Freeze { node, length },
        2 => Event::Stop { node, length },
        3 => Event::Restart { node, length },
        _ => change(chance, node),
    }
}

/// Draws changes of a node and its parent.
fn chain(draft: &mut Draft, chance: &mut Chance) {
    let pair = topology::pair(&draft.scenario.nodes, chance);
    let (lower, upper) = (draft.node_at(pair.0), draft.node_at(pair.1));
    let lease = draft.lease();
    let begins = draft.some_time(chance);
    let first = change(chance, upper.clone());
    draft.put(begins, first);
    for _ in 0..2 + chance.below(3) {
        let node = if chance.happens(0.8) { &lower } else { &upper };
        let at = draft.soon(chance, begins, lease);
        draft.put(at, change(chance, node.clone()));
    }
}

fn brief(chance: &mut Chance) -> Span {
    let most = chance.pick([1, 3, 9]);
    (Duration::from_millis(100), Duration::from_secs(most))
}

/// Draws a change of a node's master; the same process may become master again.
pub(super) fn change(chance: &mut Chance, node: NodeChoice) -> Event {
    match chance.below(12) {
        0..=2 => Event::Kill {
            node,
            length: chance.happens(0.7).then(|| brief(chance)),
        },
        3 | 4 => Event::Restart {
            node,
            length: brief(chance),
        },
        5 | 6 => Event::Elect { node },
        7..=9 => Event::Depose { node },
        10 => Event::Freeze {
            node,
            length: brief(chance),
        },
        _ => Event::Isolate {
            node,
            servers: chance.pick([NodeServers::Master, NodeServers::All]),
            way: ToEtcd::Both,
            length: brief(chance),
        },
    }
}
