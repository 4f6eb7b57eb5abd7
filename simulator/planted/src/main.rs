//! Looks for worlds by chance that find planted bugs: `cargo run --release -p doorward-planted -- SEEDS [BUG…]`
//! plays so many worlds of each focus for each bug (by default 100, for all) and prints the first that breaks a
//! promise.

#![expect(clippy::print_stdout, reason = "it prints what it finds")]

use std::env;

use doorward_planted::{AnyBug, Planted, find};
use doorward_simulator::fuzz::Part;

fn main() {
    let mut arguments = env::args().skip(1);
    let seeds = arguments.next().and_then(|text| text.parse().ok());
    let seeds: u64 = seeds.unwrap_or(100);
    let chosen: Vec<String> = arguments.collect();
    for bug in AnyBug::all() {
        let name = format!("{bug:?}");
        if !chosen.is_empty() && !chosen.contains(&name) {
            continue;
        }
        for focus in std::iter::once(None).chain(Part::ALL.map(Some)) {
            let planted = Planted {
                bug,
                focus,
                from: 0,
            };
            let focus = focus.map_or("whatever is drawn", Part::as_str);
            match find(planted, seeds) {
                Some((seed, how)) => println!("{name} {focus} {seed}: {how}"),
                None => println!("{name} {focus}: none of {seeds}"),
            }
        }
    }
}
