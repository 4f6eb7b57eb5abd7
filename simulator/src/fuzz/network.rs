//! Network between clients, servers and their parents, its partitions, and the settings of servers.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part, Quality};
use crate::scenario::clients::Connection::{Poll, Stream};
use crate::scenario::fault::{Event, Side};
use crate::scenario::network::{LinkChange, SingleLinks};
use crate::scenario::{Latency, Network, Servers};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    let quality = draft.quality;
    let (clients, servers) = (link(quality, chance), link(quality, chance));
    let nodes = &draft.scenario.nodes;
    let mut links = Vec::new();
    for node in nodes.iter().filter(|_| quality == Quality::Bad) {
        if chance.happens(0.2) {
            links.push(SingleLinks {
                between: None,
                at: Some(node.name.as_str().into()),
                link: link(quality, chance),
            });
        }
        let parent = node.parent.and_then(|parent| nodes.get(parent));
        if let Some(parent) = parent.filter(|_| chance.happens(0.2)) {
            links.push(SingleLinks {
                between: Some((parent.name.clone(), node.name.clone())),
                at: None,
                link: link(quality, chance),
            });
        }
    }
    draft.scenario.network = Network {
        all: LinkChange::default(),
        clients,
        servers,
        links,
    };
    let shortest = millis(chance.pick([500, 1_000, 2_000, 2_000, 5_000]));
    draft.scenario.servers = Servers {
        refresh_floor: chance.pick([Duration::ZERO, Duration::from_secs(1)]),
        push_round: millis(50),
        parent_protocol: chance.pick([Stream, Stream, Poll]),
        election: (shortest, shortest * chance.pick([1, 1, 2, 3])),
        state_directory: chance.happens(0.5),
    };
}

fn link(quality: Quality, chance: &mut Chance) -> LinkChange {
    let (latency, loss, duplication) = match quality {
        Quality::Quick => (
            Latency::constant(millis(chance.pick([0, 0, 1, 5, 20]))),
            0.0,
            chance.pick([0.0, 0.1]),
        ),
        Quality::Usual => (
            match chance.below(3) {
                0 => Latency::constant(millis(20)),
                1 => Latency::Uniform((Duration::ZERO, millis(chance.pick([1, 20, 200])))),
                _ => Latency::Uniform((millis(1), millis(300))),
            },
            chance.pick([0.0, 0.02, 0.05]),
            chance.pick([0.0, 0.0, 0.1]),
        ),
        Quality::Bad => (
            match chance.below(4) {
                0 => Latency::constant(millis(300)),
                1 => Latency::Uniform((millis(1), millis(400))),
                2 => Latency::Uniform((Duration::ZERO, millis(900))),
                _ => Latency::Exponential {
                    least: Duration::ZERO,
                    mean: millis(chance.pick([100, 200])),
                },
            },
            chance.pick([0.0, 0.1, 0.2, 0.4]),
            chance.pick([0.0, 0.2, 0.6]),
        ),
    };
    LinkChange {
        latency: Some(latency),
        loss: Some(loss),
        duplication: Some(duplication),
    }
}

/// Cuts nodes off from their parents, from everything below, or from both; briefly, or until leases have expired.
pub(super) fn cut(draft: &mut Draft) {
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
            node: draft.node(chance),
            from: chance.pick([Side::Parent, Side::Below, Side::All]),
            length,
        };
        draft.put(at, event);
    }
}
