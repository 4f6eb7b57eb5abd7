//! Changes of masters: a single one now and then, or several in a row. The master of a node
//! changes, and while the next one learns, masters of a child node change again and again within a
//! lease length. A child that learns something too early, or believes it for too long, then lets
//! others use the same capacity at once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Span, lasting, span};
use crate::fuzz::topology;

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
        let longest = draft.election.1;
        let take = span(Span(longest, longest * 2));
        let event = lasting("elections", take, Span(longest * 2, longest * 8));
        draft.put(at, event);
    }
}

/// Draws a change at any node, for any time.
fn alone(chance: &mut Chance, draft: &Draft) -> Value {
    let node = match chance.happens(0.3) {
        true => draft.node_at(0),
        false => draft.node(chance),
    };
    let most = Duration::from_secs(chance.pick([3, 15, 60]));
    let length = Span(Duration::from_millis(100), most);
    match chance.pick(["kill", "freeze", "stop", "restart", ""]) {
        "" => change(chance, node),
        kind => lasting(kind, node, length),
    }
}

/// Draws changes of a node and its parent.
fn chain(draft: &mut Draft, chance: &mut Chance) {
    let (lower, upper) = topology::pair(&draft.nodes, chance);
    let lease = draft.lease();
    let begins = draft.some_time(chance);
    let first = change(chance, draft.node_at(upper));
    draft.put(begins, first);
    for _ in 0..2 + chance.below(3) {
        let node = if chance.happens(0.8) { lower } else { upper };
        let at = draft.soon(chance, begins, lease);
        let next = change(chance, draft.node_at(node));
        draft.put(at, next);
    }
}

fn brief(chance: &mut Chance) -> Span {
    let most = chance.pick([1, 3, 9]);
    Span(Duration::from_millis(100), Duration::from_secs(most))
}

/// Draws a change of a node's master; the same process may become master again.
pub(super) fn change(chance: &mut Chance, node: &str) -> Value {
    match chance.below(12) {
        0..=2 => lasting("kill", node, chance.happens(0.7).then(|| brief(chance))),
        3 | 4 => lasting("restart", node, brief(chance)),
        5 | 6 => json!({"elect": node}),
        7..=9 => json!({"depose": node}),
        10 => lasting("freeze", node, brief(chance)),
        _ => {
            let servers = chance.pick(["master", "all"]);
            json!({"isolate": node, "servers": servers, "for": span(brief(chance))})
        }
    }
}
