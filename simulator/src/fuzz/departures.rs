//! Events of clients: they leave, close resources, come back, crash, and change their demand.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Span, lasting};

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Departures);
    for _ in 0..draft.strength(Part::Departures).many(chance, 6, 20) {
        let at = draft.some_time(chance);
        draft.put(at, event(draft, chance));
    }
}

fn event(draft: &Draft, chance: &mut Chance) -> Value {
    let lease = draft.lease();
    let length = match chance.below(3) {
        0 => Span(Duration::from_millis(10), Duration::from_secs(3)),
        1 => Span(Duration::from_secs(1), lease),
        _ => Span(lease / 2, lease * 3 / 2),
    };
    let some = json!({"clients": 1 + chance.below(3)});
    let client = chance.below(draft.file.clients.len());
    let one = draft.one(client);
    match chance.below(10) {
        0 | 1 => lasting("leave", some, chance.happens(0.8).then_some(length)),
        2 | 3 => {
            let resource = one_of(draft, client, chance);
            let mut close = lasting("close", one, chance.happens(0.8).then_some(length));
            close["resource"] = resource;
            close
        }
        4 | 5 => lasting("crash", some, chance.happens(0.8).then_some(length)),
        6 => {
            let by = amount(draft, chance) * chance.between(0.0, 1.0);
            json!({"surge": some, "by": by})
        }
        _ => {
            let wants = amount(draft, chance) * chance.pick([0.0, 0.0, 0.1, 1.0, 2.0]);
            json!({"demand": one, "wants": wants, "resource": one_of(draft, client, chance)})
        }
    }
}

/// Draws one of the resources that a client uses; nothing for the first.
fn one_of(draft: &Draft, client: usize, chance: &mut Chance) -> Value {
    let group = draft.file.clients.get(client);
    let also = group.and_then(|group| group["also"].as_array());
    let also = also.map_or(&[][..], Vec::as_slice);
    let which = chance.below(1 + also.len());
    let usage = which.checked_sub(1).and_then(|which| also.get(which));
    usage.map_or(Value::Null, |usage| usage["resource"].clone())
}

/// Draws the capacity of a resource.
fn amount(draft: &Draft, chance: &mut Chance) -> f64 {
    let spec = draft.specs.get(chance.below(draft.specs.len()));
    spec.and_then(|spec| spec.capacity).unwrap_or(1.0)
}
