//! Faults of etcd. It is wiped or restored from a backup: epochs go back, and servers that saw a
//! later one keep to it until their last lease has ended. Or servers reach it badly: requests are
//! lost, answers are lost, or both are late; for one server, for some, or for all of a node.
//! Related faults follow soon after.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::draft::{Draft, Part};
use crate::fuzz::masters::change;
use crate::scenario::fault::{EtcdLoss, Event, NodeChoice, NodeServers as Of, Span, ToEtcd};

pub(super) fn draw(draft: &mut Draft) {
    let chance = &mut draft.chance_of(Part::Etcd);
    let strength = draft.strength(Part::Etcd);
    // Usual length of leases in etcd.
    let (election, _) = draft.scenario.servers.election;
    let ttl = election.max(Duration::from_secs(2));
    for _ in 0..strength.many(chance, 3, 8) {
        let begins = draft.some_time(chance);
        let node = draft.node(chance);
        draft.put(begins, unreachable(chance, node.clone(), ttl));
        for _ in 0..chance.below(4) {
            let at = draft.soon(chance, begins, ttl * 6);
            let event = match chance.happens(0.4) {
                true => unreachable(chance, node.clone(), ttl),
                false => change(chance, node.clone()),
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
                true => Event::Stop {
                    node,
                    length: (Duration::from_secs(1), lease * 3 / 2),
                },
                false => change(chance, node),
            };
            draft.put(soon, event);
        }
    }
    if draft.scenario.restores_etcd() {
        keep_running(draft, chance);
    }
}

/// Changes a node's master in place of each stop of all its servers, of any part. A candidate of each node runs
/// while etcd is restored (docs/failures.md): without one, marks are too low.
fn keep_running(draft: &mut Draft, chance: &mut Chance) {
    let faults = draft.scenario.faults.iter_mut();
    for (_, event) in faults.flat_map(|fault| &mut fault.choices) {
        if let Event::Stop { node, .. } = event {
            *event = change(chance, node.clone());
        }
    }
}

/// Draws a loss of written keys. Etcd is out of reach long enough before that no server still
/// relies on what etcd forgets; see `restored-at-once.yaml` among the kept worlds.
fn lost(chance: &mut Chance, at: Duration, ttl: Duration) -> Event {
    let back: Span = match chance.happens(0.5) {
        true => (Duration::ZERO, ttl * 4),
        false => (Duration::from_secs(1), at),
    };
    let back = chance.happens(0.7).then_some(back);
    Event::Etcd {
        loss: back.map_or(EtcdLoss::Wiped, |_| EtcdLoss::Restored),
        back,
        length: Some((ttl, ttl * 2)),
    }
}

/// Draws a bad connection to etcd, or none, for servers of a node.
fn unreachable(chance: &mut Chance, node: NodeChoice, ttl: Duration) -> Event {
    let length = (ttl / 10, ttl * chance.pick([1, 3, 8]));
    if chance.happens(0.3) {
        return Event::EtcdLink {
            node,
            loss: chance.pick([0.0, 0.1, 0.5]),
            late: (Duration::ZERO, ttl / chance.pick([20, 6, 2])),
            length,
        };
    }
    Event::Isolate {
        node,
        servers: chance.pick([Of::Master, Of::Master, Of::Others, Of::Some, Of::All]),
        way: chance.pick([ToEtcd::Both, ToEtcd::There, ToEtcd::Back]),
        length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_etcd_is_drawn() {
        let mut chance = Chance::new(1);
        let ttl = Duration::from_secs(2);
        let drawn: Vec<Event> = (0..200)
            .map(|_| unreachable(&mut chance, NodeChoice::of("root"), ttl))
            .collect();
        let is = |of: &dyn Fn(&Event) -> bool| drawn.iter().any(of);
        assert!(is(&|event| matches!(event, Event::EtcdLink { .. })));
        for way in [ToEtcd::Both, ToEtcd::There, ToEtcd::Back] {
            assert!(is(
                &|event| matches!(event, Event::Isolate { way: drawn, .. } if *drawn == way)
            ));
        }
    }
}
