//! Random trees after random faults: how soon demand settles, and that a restart at any level takes no lease.
//!
//! The simulator's random worlds check the other invariants of whole trees. A failure prints the seed of its run.
//! `DOORWARD_CASES=10000 cargo test --release -p doorward-engine --test it tree_invariants` runs more, and
//! `DOORWARD_SEED=7` runs one.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::template::AlgorithmKind;

use crate::story::by_chance::{ByChance, Links};
use crate::story::client::Client;
use crate::story::setup::Faults;

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

fn random_world(seed: u64) -> ByChance {
    let kind = SHARING[usize::try_from(seed % 3).unwrap()];
    let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
    let links =
        [Links::Streams, Links::Calls, Links::Mixed][usize::try_from(seed / 12 % 3).unwrap()];
    ByChance::tree(seed, kind, depth, links)
}

/// No more faults, everyone is there, and every lease and learning mode from before is over.
fn heal(play: &mut ByChance) {
    play.faults = Faults::NONE;
    for number in 0..play.world.servers.len() {
        if !play.world.servers[number].up {
            play.start(number);
        }
        play.disconnect(number, Duration::ZERO);
    }
    for client in &mut play.world.clients {
        if client.crashed {
            client.restart(play.world.now);
        }
    }
    play.run_until(play.world.now + 4 * play.setup.lease);
    play.world.clients.iter_mut().for_each(Client::finish);
}

/// Everyone has what it should have, to 1e-9.
fn check_settled(play: &ByChance, when: &str) {
    let seed = play.seed;
    let wants: f64 = play.world.clients.iter().map(|client| client.wants).sum();
    let has: f64 = play
        .world
        .clients
        .iter()
        .map(|c| c.uses(play.world.now).get())
        .sum();
    let expected = wants.min(play.setup.capacity);
    assert!(
        (has - expected).abs() <= 1e-9 * expected.max(1e-9),
        "seed {seed}, {when}, {}: {has} of {expected}, {}\n{:#?}",
        play.setup.kind,
        describe(play),
        play.world.clients
    );
    if play.setup.kind == AlgorithmKind::FairShare {
        let most = play
            .world
            .clients
            .iter()
            .map(|c| c.uses(play.world.now).get())
            .fold(0.0, f64::max);
        for client in &play.world.clients {
            let has = client.uses(play.world.now).get();
            let satisfied = has >= client.wants * (1.0 - 1e-9);
            assert!(
                satisfied || has >= most * (1.0 - 1e-9),
                "seed {seed}, {when}: {has} of {most}: {client:?}"
            );
        }
    }
}

fn describe(play: &ByChance) -> String {
    let line = |number: usize| {
        let server = &play.world.servers[number];
        let Some(s) = play.snapshot(number) else {
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
    (0..play.world.servers.len()).map(line).collect()
}

#[test]
fn a_step_of_demand_settles_within_two_refresh_intervals_of_the_clients_when_servers_push() {
    for seed in seeds(120) {
        let mut play = random_world(seed);
        let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
        play = ByChance::tree(seed, play.setup.kind, depth, Links::Streams);
        heal(&mut play);
        for number in 0..play.world.clients.len() {
            play.world.clients[number].gauge = false;
            let wants = play.chance.wants();
            play.set_wants(number, wants);
        }
        play.run_until(play.world.now + 2 * play.setup.refresh);
        check_settled(&play, "two refresh intervals after a step of demand");
    }
}

#[test]
fn and_within_two_refresh_intervals_per_level_when_every_level_polls() {
    for seed in seeds(120) {
        let depth = 1 + usize::try_from(seed / 3 % 4).unwrap();
        let kind = SHARING[usize::try_from(seed % 3).unwrap()];
        let mut play = ByChance::tree(seed, kind, depth, Links::Calls);
        heal(&mut play);
        for number in 0..play.world.clients.len() {
            play.world.clients[number].gauge = false;
            let wants = play.chance.wants();
            play.set_wants(number, wants);
        }
        let levels = u32::try_from(depth).unwrap();
        play.run_until(play.world.now + 2 * levels * play.setup.refresh);
        check_settled(
            &play,
            "two refresh intervals per level after a step of demand",
        );
    }
}

#[test]
fn learning_is_safe_at_every_level() {
    for seed in seeds(120) {
        let mut play = random_world(seed);
        heal(&mut play);
        let before: Vec<Amount> = play
            .world
            .clients
            .iter()
            .map(|c| c.uses(play.world.now))
            .collect();
        // One server, or all of a level, or everyone.
        let number = play.chance.below(play.world.servers.len());
        let depth = play.world.depth(number);
        let crashed: Vec<usize> = match play.chance.below(3) {
            0 => vec![number],
            1 => (0..play.world.servers.len())
                .filter(|n| play.world.depth(*n) == depth)
                .collect(),
            _ => (0..play.world.servers.len()).collect(),
        };
        crashed.iter().for_each(|number| play.crash(*number));
        let gone = play.chance.clone().span(Duration::from_secs(3));
        play.run_until(play.world.now + gone);
        crashed.iter().for_each(|number| play.start(*number));
        let end = play.world.now + play.setup.lease * 2;
        while play.world.now < end {
            play.step();
            for (client, before) in play.world.clients.iter().zip(&before) {
                let has = client.uses(play.world.now).get();
                assert!(
                    has >= before.get() * (1.0 - 1e-9),
                    "seed {seed}, at {}: {crashed:?} crashed, had {before}, has {has}: {client:?}{}",
                    play.world.now,
                    describe(&play)
                );
            }
        }
        check_settled(&play, "after learning mode");
    }
}
