//! Random trees: demand settles soon, and a restart at any level takes no lease.
//!
//! The simulator's random worlds check the other invariants of whole trees. A failure prints the seed of its run.
//! `DOORWARD_CASES=10000 cargo test --release -p doorward-engine --test it tree_invariants` runs more, and
//! `DOORWARD_SEED=7` runs one.

use std::time::Duration;

use crate::story::by_chance::{ByChance, Links, sharing};
use crate::story::chance::seeds;
use crate::story::client::Client;

/// Number of runs: one for each depth, algorithm and kind of link.
const SEEDS: u64 = 36;

fn depth(seed: u64) -> u8 {
    1 + (seed / 3 % 4) as u8
}

/// Returns a tree after the end of all leases and learning modes from its start.
fn settled(seed: u64, links: Links) -> ByChance {
    let mut play = ByChance::tree(seed, sharing(seed), depth(seed).into(), links);
    play.heal();
    play
}

fn check_step_of_demand(links: Links, intervals: impl Fn(u8) -> u8) {
    for seed in seeds(SEEDS) {
        let mut play = settled(seed, links);
        play.step_demand();
        let intervals = intervals(depth(seed));
        play.run_until(play.world.now + u32::from(intervals) * play.setup.refresh);
        play.check_settled(&format!("{intervals} intervals after a step of demand"));
    }
}

#[test]
fn a_step_of_demand_settles_within_two_refresh_intervals_of_the_clients_when_servers_push() {
    check_step_of_demand(Links::Streams, |_| 2);
}

#[test]
fn a_step_of_demand_settles_within_two_refresh_intervals_per_level_when_every_level_polls() {
    check_step_of_demand(Links::Calls, |depth| 2 * depth);
}

#[test]
fn learning_is_safe_at_every_level() {
    for seed in seeds(SEEDS) {
        let links = [Links::Streams, Links::Calls, Links::Mixed][(seed / 12 % 3) as usize];
        let mut play = settled(seed, links);
        play.world.clients.iter_mut().for_each(Client::finish);
        let before = play.uses();
        // A single server crashes, or all of a level, or all servers.
        let number = play.chance.below(play.world.servers.len());
        let level = play.world.depth(number);
        let which = play.chance.below(3);
        let crashed: Vec<usize> = (0..play.world.servers.len())
            .filter(|it| match which {
                0 => *it == number,
                1 => play.world.depth(*it) == level,
                _ => true,
            })
            .collect();
        crashed.iter().for_each(|number| play.crash(*number));
        let gone = play.chance.clone().span(Duration::from_secs(3));
        play.run_until(play.world.now + gone);
        crashed.iter().for_each(|number| play.start(*number));
        let end = play.world.now + play.setup.lease * 2;
        while play.world.now < end {
            play.step();
            let now = play.world.now;
            for (number, (has, before)) in play.uses().iter().zip(&before).enumerate() {
                assert!(
                    has.get() >= before.get() * (1.0 - 1e-9),
                    "seed {seed}, at {now}: {crashed:?} crashed; client {number} had {before}, has {has}"
                );
            }
        }
        play.check_settled("after learning mode");
    }
}
