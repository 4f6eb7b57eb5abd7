//! The invariants of `docs/algorithms.md` for whole trees: random trees under random demand, with
//! messages lost, late, repeated and out of order, streams that break, servers that crash at any
//! level and come back, and clients that do the same.
//!
//! Every run is drawn from a seed, which a failure prints. `DOORWARD_CASES=10000 cargo test
//! --release -p doorward-engine --test tree_invariants` runs more of them, and `DOORWARD_SEED=7` just
//! that one.

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
#[path = "world/tree_world.rs"]
mod tree_world;
#[path = "world/world.rs"]
mod world;

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::template::AlgorithmKind;

use crate::client::Client;
use crate::tree_world::{Links, TreeWorld};
use crate::world::Faults;

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
    let only = std::env::var("DOORWARD_SEED")
        .ok()
        .and_then(|n| n.parse().ok());
    only.map_or(1..=cases, |seed| seed..=seed)
}

fn random_world(seed: u64) -> TreeWorld {
    let kind = SHARING[usize::try_from(seed % 3).unwrap()];
    let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
    let links =
        [Links::Streams, Links::Calls, Links::Mixed][usize::try_from(seed / 12 % 3).unwrap()];
    TreeWorld::new(seed, kind, depth, links)
}

/// No more faults, everyone is there, and every lease and learning mode from before is over.
fn heal(world: &mut TreeWorld) {
    world.faults = Faults::NONE;
    for number in 0..world.servers.len() {
        if !world.servers[number].up {
            world.start(number);
        }
        world.disconnect(number, Duration::ZERO);
    }
    for client in &mut world.clients {
        if client.crashed {
            client.restart(world.now);
        }
    }
    world.run_until(world.now + 4 * world.setup.lease);
    world.clients.iter_mut().for_each(Client::finish);
}

/// Everyone has what it should have, to 1e-9.
fn check_settled(world: &TreeWorld, when: &str) {
    let seed = world.seed;
    let wants: f64 = world.clients.iter().map(|client| client.wants).sum();
    let has: f64 = world.clients.iter().map(|c| c.uses(world.now).get()).sum();
    let expected = wants.min(world.setup.capacity);
    assert!(
        (has - expected).abs() <= 1e-9 * expected.max(1e-9),
        "seed {seed}, {when}, {}: {has} of {expected}, {}\n{:#?}",
        world.setup.kind,
        describe(world),
        world.clients
    );
    if world.setup.kind == AlgorithmKind::FairShare {
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
                "seed {seed}, {when}: {has} of {most}: {client:?}"
            );
        }
    }
}

fn describe(world: &TreeWorld) -> String {
    let line = |number: usize| {
        let server = &world.servers[number];
        let Some(s) = world.snapshot(number) else {
            return format!("\n  node-{number} (parent {:?}): nothing", server.parent);
        };
        format!(
            "\n  node-{number} (parent {:?}, {:?}): capacity {} wants {} granted {} reserved {} \
             waiting {} upstream {:?}",
            server.parent,
            server.via,
            s.capacity,
            s.wants,
            s.granted,
            s.reserved,
            s.waiting,
            s.upstream
        )
    };
    (0..world.servers.len()).map(line).collect()
}

#[test]
fn no_overshoot_and_nested_leases_in_the_whole_tree() {
    let mut answered = 0;
    for seed in seeds(240) {
        let mut world = random_world(seed);
        for _ in 0..2000 {
            world.step();
        }
        answered += world
            .clients
            .iter()
            .map(|client| client.answers)
            .sum::<u64>();
    }
    let alone = std::env::var("DOORWARD_SEED").is_ok();
    assert!(
        alone || answered > 10_000,
        "only {answered} requests were answered"
    );
}

#[test]
fn work_conserving_and_max_min_at_every_quiet_point() {
    for seed in seeds(120) {
        let mut world = random_world(seed);
        let rough = world.faults;
        for quiet in 1..=3 {
            world.faults = rough;
            for _ in 0..500 {
                world.step();
            }
            heal(&mut world);
            check_settled(&world, &format!("quiet point {quiet}"));
        }
    }
}

#[test]
fn a_step_of_demand_settles_within_two_refresh_intervals_of_the_clients_when_servers_push() {
    for seed in seeds(120) {
        let mut world = random_world(seed);
        let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
        world = TreeWorld::new(seed, world.setup.kind, depth, Links::Streams);
        heal(&mut world);
        for number in 0..world.clients.len() {
            world.clients[number].gauge = false;
            let wants = world.chance.wants();
            world.set_wants(number, wants);
        }
        world.run_until(world.now + 2 * world.setup.refresh);
        check_settled(&world, "two refresh intervals after a step of demand");
    }
}

#[test]
fn and_within_two_refresh_intervals_per_level_when_every_level_polls() {
    for seed in seeds(120) {
        let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
        let kind = SHARING[usize::try_from(seed % 3).unwrap()];
        let mut world = TreeWorld::new(seed, kind, depth, Links::Calls);
        heal(&mut world);
        for number in 0..world.clients.len() {
            world.clients[number].gauge = false;
            let wants = world.chance.wants();
            world.set_wants(number, wants);
        }
        let levels = u32::try_from(depth).unwrap();
        world.run_until(world.now + 2 * levels * world.setup.refresh);
        check_settled(
            &world,
            "two refresh intervals per level after a step of demand",
        );
    }
}

#[test]
fn learning_is_safe_at_every_level() {
    for seed in seeds(120) {
        let mut world = random_world(seed);
        heal(&mut world);
        let before: Vec<Amount> = world.clients.iter().map(|c| c.uses(world.now)).collect();
        // One server, or all of a level, or everyone.
        let number = world.chance.below(world.servers.len());
        let depth = world.servers[number].depth;
        let crashed: Vec<usize> = match world.chance.below(3) {
            0 => vec![number],
            1 => (0..world.servers.len())
                .filter(|n| world.servers[*n].depth == depth)
                .collect(),
            _ => (0..world.servers.len()).collect(),
        };
        crashed.iter().for_each(|number| world.crash(*number));
        let gone = world.chance.clone().span(Duration::from_secs(3));
        world.run_until(world.now + gone);
        crashed.iter().for_each(|number| world.start(*number));
        let end = world.now + world.setup.lease * 2;
        while world.now < end {
            world.step();
            for (client, before) in world.clients.iter().zip(&before) {
                let has = client.uses(world.now).get();
                assert!(
                    has >= before.get() * (1.0 - 1e-9),
                    "seed {seed}, at {}: {crashed:?} crashed, had {before}, has {has}: {client:?}{}",
                    world.now,
                    describe(&world)
                );
            }
        }
        check_settled(&world, "after learning mode");
    }
}

#[test]
fn the_same_seed_runs_the_same_way() {
    for seed in seeds(10) {
        let run = || {
            let mut world = random_world(seed);
            for _ in 0..1000 {
                world.step();
            }
            (world.now, describe(&world), format!("{:?}", world.clients))
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}
