//! Events of clients: they leave, close resources, come back, crash, and change their demand.

use std::time::Duration;

use doorward_engine::id::ResourceId;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part};
use crate::scenario::fault::{ClientChoice, Event, Span};

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Departures);
    for _ in 0..draft.strength(Part::Departures).many(chance, 6, 20) {
        let at = draft.some_time(chance);
        draft.put(at, event(draft, chance));
    }
}

fn event(draft: &Draft, chance: &mut Chance) -> Event {
    let lease = draft.lease();
    let length: Span = match chance.below(3) {
        0 => (Duration::from_millis(10), Duration::from_secs(3)),
        1 => (Duration::from_secs(1), lease),
        _ => (lease / 2, lease * 3 / 2),
    };
    let some = ClientChoice::any(1 + chance.below(3));
    let client = chance.below(draft.scenario.clients.len());
    match chance.below(10) {
        0 | 1 => Event::Leave {
            clients: some,
            length: chance.happens(0.8).then_some(length),
        },
        2 | 3 => {
            let resource = one_of(draft, client, chance);
            Event::Close {
                clients: draft.one(client),
                resource,
                length: chance.happens(0.8).then_some(length),
            }
        }
        4 | 5 => Event::Crash {
            clients: some,
            length: chance.happens(0.8).then_some(length),
        },
        6 => Event::Surge {
            clients: some,
            by: amount(draft, chance) * chance.between(0.0, 1.0),
            resource: None,
        },
        _ => Event::Demand {
            clients: draft.one(client),
            wants: amount(draft, chance) * chance.pick([0.0, 0.0, 0.1, 1.0, 2.0]),
            resource: one_of(draft, client, chance),
        },
    }
}

/// Draws one of the resources that a client uses.
fn one_of(draft: &Draft, client: usize, chance: &mut Chance) -> Option<ResourceId> {
    let group = draft.scenario.clients.get(client)?;
    let which = chance.below(1 + group.also.len());
    let usage = group.usages().nth(which).filter(|_| which > 0)?;
    Some(usage.resource.clone())
}

/// Draws the capacity of a resource.
fn amount(draft: &Draft, chance: &mut Chance) -> f64 {
    let spec = draft.specs.get(chance.below(draft.specs.len()));
    spec.and_then(|spec| spec.capacity).unwrap_or(1.0)
}
