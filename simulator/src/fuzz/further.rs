//! What seeds of this family draw besides what wider ones do: masters that are cut off from their election. From a stream of its own again.

use std::time::Duration;

use crate::chance::Chance;
use crate::scenario::Scenario;
use crate::scenario::fault::{Event, Fault, NodeChoice, Servers, ToEtcd, When};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0004;

/// Draws more for a scenario that was drawn.
pub(super) fn draw_more(scenario: &mut Scenario) {
    let mut chance = Chance::new(scenario.seed ^ STREAM);
    let Some(faulty_for) = scenario.heal_at else {
        return;
    };
    for _ in 0..chance.below(8) {
        let at = chance.duration(Duration::from_secs(5), faulty_for);
        let most = Duration::from_secs(chance.pick([3, 15, 60]));
        let node = if chance.happens(0.3) {
            NodeChoice::Node(0)
        } else {
            NodeChoice::Any
        };
        scenario.faults.push(Fault {
            when: When::At(at),
            choices: vec![(
                1.0,
                Event::Isolate {
                    node,
                    servers: Servers::Master,
                    way: ToEtcd::Both,
                    length: (Duration::from_millis(100), most),
                },
            )],
        });
    }
}
