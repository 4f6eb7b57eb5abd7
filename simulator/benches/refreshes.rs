//! Bench of simulated refreshes: three simulated minutes of the library's scenario `hour`, with all
//! checkers. Throughput is answered refreshes per second of real time.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use doorward_simulator::library::LibraryEntry;
use doorward_simulator::world::World;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn refreshes(bencher: Bencher<'_, '_>) {
    let mut scenario = LibraryEntry::find("hour").unwrap().read().unwrap();
    scenario.duration.0 = Duration::from_secs(180);
    let refreshes = World::new(&scenario).run(|_| {}).work.refreshes;
    bencher
        .counter(ItemsCount::new(refreshes))
        .bench(|| World::new(&scenario).run(|_| {}));
}
