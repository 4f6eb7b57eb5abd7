//! Two running processes under one name: of nodes without another candidate, or of clients. A
//! release or a new request of one of them concerns capacity that the other still uses.
//!
//! A world never has both kinds: a client might ask one process of a node and its second process
//! the other, and no server would see both. Second processes of clients occur only where no message
//! is lost and masters stay, so that both are heard in time.

use std::time::Duration;

use serde_json::json;

use crate::fuzz::draft::Part::{Addresses, Clocks, Cuts, Etcd, Masters, Twins};
use crate::fuzz::draft::{Draft, Quality, Span, lasting};

/// Leaves out the parts that do not go together with second processes.
pub(super) fn exclude(draft: &mut Draft) {
    if !draft.strength(Twins).is_some() {
        return;
    }
    if draft.quality == Quality::Bad {
        draft.quality = Quality::Usual;
    }
    if are_of_clients(draft) {
        draft.quality = Quality::Quick;
        for part in [Masters, Cuts, Etcd, Addresses, Clocks] {
            draft.strengths.remove(&part);
        }
    }
}

fn are_of_clients(draft: &Draft) -> bool {
    draft.chance_of(Twins).happens(0.4)
}

pub(super) fn draw(draft: &mut Draft) {
    let of_clients = are_of_clients(draft);
    let chance = &mut draft.chance_of(Twins).fork(1);
    for _ in 0..draft.strength(Twins).many(chance, 2, 5) {
        let at = draft.some_time(chance);
        let length = Span(Duration::from_secs(1), draft.lease() * 2);
        let some = json!({"clients": 1 + chance.below(2)});
        let of = match of_clients {
            true => some,
            false => json!(draft.node(chance)),
        };
        draft.put(at, lasting("twin", of, length));
    }
}
