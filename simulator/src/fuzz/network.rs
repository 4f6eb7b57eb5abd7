//! Network between clients, servers and their parents, its partitions, and the settings of servers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Quality, Span, said, span};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let quality = draft.quality;
    let (clients, servers) = (link(quality, chance), link(quality, chance));
    let mut links = Vec::new();
    for node in draft.nodes.iter().filter(|_| quality == Quality::Bad) {
        if chance.happens(0.2) {
            let mut single = link(quality, chance);
            single["at"] = node.name.as_str().into();
            links.push(single);
        }
        if let Some(parent) = node.parent.filter(|_| chance.happens(0.2)) {
            let mut single = link(quality, chance);
            single["between"] = json!([draft.node_at(parent), node.name]);
            links.push(single);
        }
    }
    let settings = &mut draft.file.settings;
    settings["network"] = json!({"clients": clients, "servers": servers, "links": links});
    let shortest = millis(chance.pick([500, 1_000, 2_000, 2_000, 5_000]));
    let refresh_floor = chance.pick(["0s", "1s"]);
    let parent_protocol = chance.pick(["stream", "stream", "poll"]);
    draft.election = Span(shortest, shortest * chance.pick([1, 1, 2, 3]));
    settings["servers"] = json!({
        "refresh_floor": refresh_floor,
        "parent_protocol": parent_protocol,
        "election": span(draft.election),
        "state_directory": chance.happens(0.5),
    });
}

fn link(quality: Quality, chance: &mut Chance) -> Value {
    let between = |least, most| json!(span(Span(millis(least), millis(most))));
    let (latency, loss, duplication) = match quality {
        Quality::Quick => (
            json!(said(millis(chance.pick([0, 0, 1, 5, 20])))),
            0.0,
            chance.pick([0.0, 0.1]),
        ),
        Quality::Usual => (
            match chance.below(3) {
                0 => json!("20ms"),
                1 => between(0, chance.pick([1, 20, 200])),
                _ => between(1, 300),
            },
            chance.pick([0.0, 0.02, 0.05]),
            chance.pick([0.0, 0.0, 0.1]),
        ),
        Quality::Bad => (
            match chance.below(4) {
                0 => json!("300ms"),
                1 => between(1, 400),
                2 => between(0, 900),
                _ => json!({"mean": said(millis(chance.pick([100, 200])))}),
            },
            chance.pick([0.0, 0.1, 0.2, 0.4]),
            chance.pick([0.0, 0.2, 0.6]),
        ),
    };
    json!({"latency": latency, "loss": loss, "duplication": duplication})
}

/// Cuts nodes off from their parents, from everything below, or from both; briefly, or until leases have expired.
pub(super) fn cut(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Cuts);
    for _ in 0..draft.strength(Part::Cuts).many(chance, 3, 8) {
        let at = draft.some_time(chance);
        let lease = draft.lease();
        let length = span(match chance.below(3) {
            0 => Span(Duration::from_millis(100), Duration::from_secs(3)),
            1 => Span(Duration::from_secs(1), lease),
            _ => Span(lease / 2, lease * 3 / 2),
        });
        let node = draft.node(chance);
        let side = chance.pick(["parent", "below", "all"]);
        let event = json!({"partition": node, "side": side, "for": length});
        draft.put(at, event);
    }
}
