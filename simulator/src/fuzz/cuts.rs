//! Partitions: nodes are cut off from their parents, from everything below, or from both; briefly,
//! or until leases have expired.

use std::time::Duration;

use crate::fuzz::draft::Draft;
use crate::fuzz::part::Part;
use crate::scenario::fault::{Event, NodeChoice, Side};

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Cuts);
    for _ in 0..draft.strength(Part::Cuts).many(chance, 3, 8) {
        let at = draft.some_time(chance);
        let lease = draft.lease();
        let length = match chance.below(3) {
            0 => (Duration::from_millis(100), Duration::from_secs(3)),
            1 => (Duration::from_secs(1), lease),
            _ => (lease / 2, lease * 3 / 2),
        };
        let event = Event::Partition {
            node: NodeChoice::Node(chance.below(draft.scenario.nodes.len())),
            from: chance.pick([Side::Parent, Side::Below, Side::All]),
            length,
        };
        draft.put(at, event);
    }
}
