//! The invariants of `docs/algorithms.md`, each under random interleavings of requests, losses,
//! delays, duplicates, releases, expiries, crashes, template changes and mastership changes.
//!
//! Every run is drawn from a seed, which a failure prints. `DOORWARD_CASES=10000 cargo test
//! --release -p doorward-engine --test invariants` runs more of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "a test")]

#[path = "world/chance.rs"]
mod chance;
#[path = "world/client.rs"]
mod client;
#[path = "world/world.rs"]
mod world;

use std::time::Duration;

use doorward_engine::algorithm::{Bound, Reason};
use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::HolderName;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::request::{Ask, GetCapacity, Has, ReleaseCapacity};
use doorward_engine::snapshot::LeaseSnapshot;
use doorward_engine::template::{AlgorithmKind, Shrink};

use crate::chance::Chance;
use crate::client::{Client, EARLY_GAP, resource};
use crate::world::{Faults, World};

const SHARING: [AlgorithmKind; 3] = [
    AlgorithmKind::FairShare,
    AlgorithmKind::ProportionalShare,
    AlgorithmKind::PriorityBands,
];

fn seeds(cases: u64) -> impl Iterator<Item = u64> {
    let cases = std::env::var("DOORWARD_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    1..=cases
}

fn kind_of(seed: u64) -> AlgorithmKind {
    SHARING[usize::try_from(seed % 3).unwrap()]
}

/// A world that had a rough time, and then some quiet.
fn healed(seed: u64, kind: AlgorithmKind) -> World {
    let mut world = World::new(seed, kind, Shrink::Acknowledged);
    for _ in 0..200 {
        world.step();
    }
    heal(&mut world);
    world
}

fn heal(world: &mut World) {
    world.faults = Faults::NONE;
    if !world.setup.exists {
        world.setup.exists = true;
        world
            .node
            .handle_templates(world.setup.templates(), world.now);
    }
    if world.node.mastership(world.now) == &Mastership::Unknown {
        world.win();
    }
    for client in &mut world.clients {
        if client.crashed {
            client.restart(world.now);
        }
    }
    // Every lease from before has ended, and every learning mode.
    world.run_until(world.now + Duration::from_secs(200));
}

/// Σ of what clients have, and Σ of what they want.
fn totals(world: &World) -> (f64, f64) {
    let has = world
        .clients
        .iter()
        .map(|client| client.uses(world.now).get())
        .sum();
    (has, world.clients.iter().map(|client| client.wants).sum())
}

#[test]
fn no_overshoot_and_bounded_gets_and_nested_leases() {
    // The world checks all three at every step.
    let mut answered = 0;
    for seed in seeds(300) {
        let mut world = World::new(seed, kind_of(seed), Shrink::Acknowledged);
        for _ in 0..1000 {
            world.step();
        }
        answered += world
            .clients
            .iter()
            .map(|client| client.answers)
            .sum::<u64>();
    }
    assert!(answered > 10_000, "only {answered} requests were answered");
}

#[test]
fn no_overshoot_holds_for_what_is_reserved_also_with_immediate_shrink() {
    for seed in seeds(50) {
        let mut world = World::new(seed, kind_of(seed), Shrink::Immediate);
        for _ in 0..500 {
            world.step();
            if let Some(snapshot) = world.snapshot() {
                let fits = snapshot.reserved <= world.capacity();
                assert!(
                    fits || world.now < world.excused_until,
                    "seed {seed}: {snapshot:?}"
                );
            }
        }
    }
}

#[test]
fn what_promises_no_total_gives_everyone_its_own() {
    for seed in seeds(40) {
        for kind in [AlgorithmKind::NoAlgorithm, AlgorithmKind::Static] {
            let world = healed(seed, kind);
            for client in &world.clients {
                let expected = match kind {
                    AlgorithmKind::Static => client.wants.min(world.setup.capacity),
                    _ => client.wants,
                };
                let has = client.lease.unwrap().0.get();
                assert_eq!(
                    has,
                    Amount::new(expected).unwrap().get(),
                    "seed {seed}: {client:?}"
                );
            }
        }
    }
}

#[test]
fn bounded_gets() {
    for seed in seeds(100) {
        let mut world = World::new(seed, kind_of(seed), Shrink::Acknowledged);
        for _ in 0..300 {
            world.step();
            for lease in world.node.lease_snapshots(&resource(), 100, world.now) {
                let bounded = (0.0..=lease.wants).contains(&lease.granted);
                assert!(
                    bounded && lease.granted <= lease.reserved,
                    "seed {seed}: {lease:?}"
                );
                assert!(
                    (0.0..=lease.wants).contains(&lease.share),
                    "seed {seed}: {lease:?}"
                );
            }
        }
    }
}

#[test]
fn what_is_shown_at_one_moment_agrees_with_itself() {
    let mut seen = 0;
    for seed in seeds(100) {
        let kind = kind_of(seed);
        let mut world = World::new(seed, kind, Shrink::Acknowledged);
        for _ in 0..300 {
            world.step();
            let Some(all) = world.snapshot() else {
                continue;
            };
            let rows = world.node.lease_snapshots(&resource(), 100, world.now);
            if !all.algorithm.kind.promises_total() || all.learning_remaining.is_some() {
                continue;
            }
            let decided = |row: &&LeaseSnapshot| {
                let reason = row.why.reason;
                !matches!(reason, Reason::Learning | Reason::TemplateGone)
            };
            if rows.is_empty() || rows.iter().filter(decided).count() < rows.len() {
                continue;
            }
            seen += 1;
            let shares: f64 = rows.iter().map(|row| row.share).sum();
            let expected = all.capacity.min(all.wants);
            assert!(
                (shares - expected).abs() <= 1e-9 * expected.max(1.0),
                "seed {seed}: shares add up to {shares}, not {expected}: {rows:#?}"
            );
            for row in &rows {
                let is_share = row.granted - row.share;
                let says = row.why.bound;
                let agrees = match says {
                    Bound::Share => is_share.abs() <= 1e-9 * all.capacity.max(row.share),
                    Bound::ShrinksNext => is_share > 0.0,
                    _ => is_share < 0.0,
                };
                assert!(agrees, "seed {seed}: {row:?}");
                let enough = row.why.reason == Reason::EnoughForAll;
                assert!(
                    !enough || all.wants <= all.capacity * (1.0 + 1e-9),
                    "seed {seed}: {row:?}"
                );
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}

#[test]
fn work_conserving_and_max_min() {
    for seed in seeds(150) {
        let kind = kind_of(seed);
        let mut world = healed(seed, kind);
        world.clients.iter_mut().for_each(Client::finish);
        // A step of demand, which clients tell as soon as the floor lets them.
        for number in 0..world.clients.len() {
            world.clients[number].wants = world.chance.wants();
            let now = world.now;
            let client = &mut world.clients[number];
            client.next_send = client.next_send.min(now + EARLY_GAP);
            // Work that goes on is capacity that cannot move.
            client.gauge = false;
        }
        let shifted = world.now;
        world.run_until(shifted + 2 * world.setup.refresh);
        let (has, wants) = totals(&world);
        let expected = wants.min(world.capacity());
        let close = (has - expected).abs() <= 1e-9 * expected.max(1e-9);
        assert!(
            close,
            "seed {seed}, {kind}: {has} of {expected}\n{:#?}",
            world.clients
        );
        if kind == AlgorithmKind::FairShare {
            check_max_min(&world);
        }
    }
}

/// Nobody is below what another has who could give: all who do not have what they want have the
/// same, and nobody has more.
fn check_max_min(world: &World) {
    let seed = world.seed;
    let most = world
        .clients
        .iter()
        .map(|c| c.uses(world.now).get())
        .fold(0.0, f64::max);
    for client in &world.clients {
        let has = client.uses(world.now).get();
        let satisfied = has >= client.wants * (1.0 - 1e-9);
        assert!(
            satisfied || has >= most * (1.0 - 1e-9),
            "seed {seed}: {has} of {most}: {client:?}"
        );
    }
}

#[test]
fn learning_is_safe() {
    for seed in seeds(150) {
        let mut world = healed(seed, kind_of(seed));
        let before: Vec<Amount> = world.clients.iter().map(|c| c.uses(world.now)).collect();
        world.lose();
        world.run_until(world.now + world.chance.clone().span(Duration::from_secs(3)));
        world.win();
        // A liar comes first, and claims everything.
        let liar = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new("liar").unwrap(),
            sequence: None,
            asks: vec![Ask {
                resource: resource(),
                priority: 0,
                wants: Amount::MAX,
                has: Some(Has {
                    granted_by: None,
                    capacity: Amount::MAX,
                    expires_in: None,
                }),
            }],
        };
        let lies = world.chance.happens(0.5);
        if lies {
            let answer = world.node.handle_get_capacity(&liar, world.now);
            let Outcome::Served(reply) = answer else {
                panic!("it is the master")
            };
            assert!(reply.leases[0].capacity.get() <= world.capacity());
            // What it got of it, honest holders may lose: there is no more than there is.
            world.excuse();
        }
        let end = world.now + world.setup.lease;
        while world.now < end {
            world.step();
            if lies && world.chance.happens(0.1) {
                let again = world.node.handle_get_capacity(&liar, world.now);
                assert!(matches!(again, Outcome::Served(_)), "it is the master");
            }
            let Some(snapshot) = world.snapshot() else {
                continue;
            };
            assert!(
                snapshot.granted <= world.capacity(),
                "seed {seed}: {snapshot:?}"
            );
            assert!(
                snapshot.reserved <= world.capacity(),
                "seed {seed}: {snapshot:?}"
            );
            if snapshot.learning_remaining.is_some() && !lies {
                for (client, before) in world.clients.iter().zip(&before) {
                    let has = client.uses(world.now);
                    assert!(has >= *before, "seed {seed}: had {before}: {client:?}");
                }
            }
        }
    }
}

#[test]
fn release_frees() {
    for seed in seeds(150) {
        let mut world = healed(seed, AlgorithmKind::FairShare);
        let capacity = world.capacity();
        for number in 0..world.clients.len() {
            let client = &mut world.clients[number];
            let release = ReleaseCapacity {
                caller: None,
                incarnation: client.incarnation,
                client: client.name.clone(),
                sequence: Some(client.release()),
                resources: vec![resource()],
            };
            world.node.handle_release_capacity(&release, world.now);
            world.node.assert_consistent();
        }
        assert_eq!(world.snapshot(), None, "seed {seed}: nobody holds anything");
        // The very next request may have everything.
        let mut all = world.clients[0].request(Duration::from_secs(2), world.now);
        all.asks[0].wants = Amount::new(capacity).unwrap();
        let Outcome::Served(reply) = world.node.handle_get_capacity(&all, world.now) else {
            panic!("it is the master");
        };
        assert_eq!(reply.leases[0].capacity.get(), capacity, "seed {seed}");
        // And again once that has ended by itself.
        let later = world.now + world.setup.lease;
        while world
            .node
            .poll_timeout()
            .is_some_and(|timeout| timeout.at <= later)
        {
            world.node.handle_timeout(later);
        }
        assert_eq!(
            world.node.resource_snapshot(&resource(), later),
            None,
            "seed {seed}"
        );
    }
}

#[test]
fn a_late_duplicate_acknowledges_and_releases_nothing() {
    for seed in seeds(60) {
        let mut world = healed(seed, kind_of(seed));
        let before = world.node.snapshot(world.now).resources;
        for number in 0..world.clients.len() {
            let client = &world.clients[number];
            let sequence = Some(1 + Chance(seed).bits() % (client.sequence() - 1));
            let old = GetCapacity {
                caller: None,
                incarnation: client.incarnation,
                client: client.name.clone(),
                sequence,
                asks: vec![Ask {
                    resource: resource(),
                    priority: 3,
                    wants: Amount::ZERO,
                    has: None,
                }],
            };
            world.node.handle_get_capacity(&old, world.now);
            let old = ReleaseCapacity {
                caller: None,
                incarnation: old.incarnation,
                client: old.client,
                sequence,
                resources: vec![resource()],
            };
            world.node.handle_release_capacity(&old, world.now);
        }
        assert_eq!(
            world.node.snapshot(world.now).resources,
            before,
            "seed {seed}"
        );
    }
}

#[test]
fn deterministic() {
    for seed in seeds(20) {
        let run = || {
            let mut world = World::new(seed, kind_of(seed), Shrink::Acknowledged);
            for _ in 0..800 {
                world.step();
            }
            world.history
        };
        let history = run();
        assert!(!history.is_empty());
        assert_eq!(history, run(), "seed {seed}");
    }
}

#[test]
fn the_sums_of_many_amounts_are_exact() {
    let mut chance = Chance(7);
    let amounts: Vec<Amount> = (0..10_000)
        .map(|_| Amount::new(chance.wants()).unwrap())
        .collect();
    let mut sum = ExactSum::ZERO;
    amounts.iter().for_each(|amount| sum.add(*amount));
    amounts
        .iter()
        .rev()
        .for_each(|amount| sum.subtract(*amount));
    assert_eq!(sum, ExactSum::ZERO);
}
