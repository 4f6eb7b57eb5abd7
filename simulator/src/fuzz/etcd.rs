//! Faults of etcd. It is wiped or restored from a backup: epochs go back, and servers that saw a
//! later one keep to it until their last lease has ended. Or servers reach it badly: requests are
//! lost, answers are lost, or both are late; for one server, for some, or for all of a node.
//! Related faults follow soon after.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Span, lasting, span};
use crate::fuzz::masters::change;

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Etcd);
    let strength = draft.strength(Part::Etcd);
    // Usual length of leases in etcd.
    let ttl = draft.election.0.max(Duration::from_secs(2));
    for _ in 0..strength.many(chance, 3, 8) {
        let begins = draft.some_time(chance);
        let node = draft.node(chance).to_owned();
        draft.put(begins, unreachable(chance, &node, ttl));
        for _ in 0..chance.below(4) {
            let at = draft.soon(chance, begins, ttl * 6);
            let event = match chance.happens(0.4) {
                true => unreachable(chance, &node, ttl),
                false => change(chance, &node),
            };
            draft.put(at, event);
        }
    }
    if !strength.is_some() {
        return;
    }
    for _ in 0..chance.below(3) {
        let at = draft.some_time(chance);
        draft.put(at, lost(chance, at, ttl));
        for _ in 0..chance.below(4) {
            let lease = draft.lease();
            let soon = draft.soon(chance, at.saturating_sub(lease / 2), lease * 3 / 2);
            let node = draft.node(chance);
            let event = match chance.happens(0.3) {
                true => lasting("stop", node, Span(Duration::from_secs(1), lease * 3 / 2)),
                false => change(chance, node),
            };
            draft.put(soon, event);
        }
    }
    let faults = &mut draft.file.faults;
    if faults.iter().any(|fault| fault["etcd"] == "restored") {
        // A node's master changes in place of each stop of all its servers, of any part. A candidate of each node runs
        // while etcd is restored (docs/failures.md): without one, marks are too low.
        for fault in faults {
            if let Some(node) = fault["stop"].as_str() {
                let mut event = change(chance, node);
                event["at"] = fault["at"].take();
                *fault = event;
            }
        }
    }
}

/// Draws a loss of written keys. Etcd is out of reach long enough before that no server still
/// relies on what etcd forgets; see `restored-at-once.yaml` among the kept worlds.
fn lost(chance: &mut Chance, at: Duration, ttl: Duration) -> Value {
    let recent = Span(Duration::ZERO, ttl * 4);
    let back = chance.pick([recent, Span(Duration::from_secs(1), at)]);
    let length = span(Span(ttl, ttl * 2));
    match chance.happens(0.7) {
        true => json!({"etcd": "restored", "back": span(back), "for": length}),
        false => json!({"etcd": "wiped", "for": length}),
    }
}

/// Draws a bad connection to etcd, or none, for servers of a node.
fn unreachable(chance: &mut Chance, node: &str, ttl: Duration) -> Value {
    let length = span(Span(ttl / 10, ttl * chance.pick([1, 3, 8])));
    if chance.happens(0.3) {
        let loss = chance.pick([0.0, 0.1, 0.5]);
        let late = span(Span(Duration::ZERO, ttl / chance.pick([20, 6, 2])));
        return json!({"etcd_link": node, "loss": loss, "late": late, "for": length});
    }
    let servers = chance.pick(["master", "master", "others", "some", "all"]);
    let way = chance.pick(["both", "there", "back"]);
    json!({"isolate": node, "servers": servers, "way": way, "for": length})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_etcd_is_drawn() {
        let mut chance = Chance::new(1);
        let ttl = Duration::from_secs(2);
        let drawn: Vec<Value> = (0..200)
            .map(|_| unreachable(&mut chance, "root", ttl))
            .collect();
        assert!(drawn.iter().any(|event| event["etcd_link"] == "root"));
        for way in ["both", "there", "back"] {
            assert!(drawn.iter().any(|event| event["way"] == way), "{way}");
        }
    }
}
