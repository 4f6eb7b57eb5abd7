//! Two processes under one name, both alive: of nodes without another candidate, or of clients. What one of
//! them lets go, or asks anew, is still in use by the other one.
//!
//! Not of both at once: where a client asks one process of a node, and its second process the other one,
//! nobody sees both. Of clients only where nothing is lost and masters stay, so that both are heard when
//! they are to be heard.

use std::time::Duration;

use crate::fuzz::draft::Draft;
use crate::fuzz::network::Quality;
use crate::fuzz::part::Part;
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice};

/// What does not go together with second processes is not drawn.
pub(super) fn exclude(draft: &mut Draft) {
    if !draft.strength(Part::Twins).is_some() {
        return;
    }
    if draft.quality == Quality::Bad {
        draft.quality = Quality::Usual;
    }
    if are_of_clients(draft) {
        draft.quality = Quality::Quick;
        for part in [
            Part::Masters,
            Part::Cuts,
            Part::Etcd,
            Part::Addresses,
            Part::Clocks,
        ] {
            draft.leave_out(part);
        }
    }
}

fn are_of_clients(draft: &Draft) -> bool {
    draft.chance_of(Part::Twins).happens(0.4)
}

pub(super) fn draw(draft: &mut Draft) {
    let of_clients = are_of_clients(draft);
    let mut chance = draft.chance_of(Part::Twins).fork(1);
    let chance = &mut chance;
    for _ in 0..draft.strength(Part::Twins).many(chance, 2, 5) {
        let at = draft.some_time(chance);
        let length = (Duration::from_secs(1), draft.lease() * 2);
        let some = ClientChoice::any(1 + chance.below(2));
        let of = match of_clients {
            true => ClockChoice::Clients(some),
            false => ClockChoice::Node(NodeChoice::Node(chance.below(draft.nodes.len()))),
        };
        draft.put(at, Event::Twin { of, length });
    }
}
