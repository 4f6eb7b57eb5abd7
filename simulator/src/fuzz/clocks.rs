//! Clocks that differ as much as the protocol allows: each is up to 0.05 % fast or slow, often by
//! all of it. Now and then servers' clocks are slow, more so near the root; and clients' clocks are
//! fast or jump ahead, which harms no other client.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Strength, said};

/// Largest error of a clock: half of what leases allow for.
const DRIFT: f64 = 0.0005;

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Clocks);
    let strength = draft.strength(Part::Clocks);
    if !strength.is_some() {
        return;
    }
    let nodes = draft.nodes.iter().map(|node| json!(node.name));
    let clients = (0..draft.file.clients.len()).map(|client| draft.one(client));
    let clocks: Vec<Value> = nodes.chain(clients).collect();
    for clock in clocks {
        let speed = speed(chance);
        draft.put(Duration::ZERO, json!({"drift": clock, "speed": speed}));
    }
    if strength != Strength::Much {
        return;
    }
    for _ in 0..1 + chance.below(5) {
        let at = draft.some_time(chance);
        let clock = draft.one(chance.below(draft.file.clients.len()));
        let event = match chance.happens(0.5) {
            true => {
                let by = chance.duration(Duration::from_millis(10), Duration::from_secs(60));
                json!({"jump": clock, "by": said(by)})
            }
            false => json!({"drift": clock, "speed": chance.between(1.0, 1.05)}),
        };
        draft.put(at, event);
    }
    if chance.happens(0.3) {
        // The servers' clocks are slow, more so near the root.
        let at = draft.some_time(chance);
        let mut speeds: Vec<f64> = Vec::new();
        for node in draft.nodes.clone() {
            let above = node.parent.and_then(|parent| speeds.get(parent));
            let speed = chance.between(above.copied().unwrap_or(0.9), 1.0);
            speeds.push(speed);
            draft.put(at, json!({"drift": node.name, "speed": speed}));
        }
    }
}

/// Draws a speed; in half of all cases the error is the largest.
fn speed(chance: &mut Chance) -> f64 {
    let off = match chance.below(4) {
        0 => -1.0,
        1 => 1.0,
        _ => chance.between(-1.0, 1.0),
    };
    1.0 + DRIFT * off
}
