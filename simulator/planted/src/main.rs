//! Looks for worlds by chance that find planted bugs: `cargo run --release -p doorward-planted -- SEEDS [BUG…]`
//! plays so many worlds of each family for each bug (by default 100, for all) and prints the first that breaks a
//! promise.

#![expect(clippy::print_stdout, reason = "it prints what it finds")]

use std::env;

use doorward_planted::{Bug, Planted, find};
use doorward_simulator::fuzz::Family;

fn main() {
    let mut arguments = env::args().skip(1);
    let seeds = arguments.next().and_then(|text| text.parse().ok());
    let seeds: u64 = seeds.unwrap_or(100);
    let chosen: Vec<String> = arguments.collect();
    for bug in Bug::all() {
        let name = format!("{bug:?}");
        if !chosen.is_empty() && !chosen.contains(&name) {
            continue;
        }
        for family in Family::ALL {
            let from = family.first_seed();
            match find(Planted { bug, from }, seeds) {
                Some((seed, how)) => println!("{name} {family:?} {seed}: {how}"),
                None => println!("{name} {family:?}: none of {seeds}"),
            }
        }
    }
}
