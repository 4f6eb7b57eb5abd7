//! How fast simulated clients refresh: 10,000 of them in a tree of three levels, every 8 s, for
//! three simulated minutes. Throughput is refreshes that are answered, by second of real time.

#![allow(clippy::unwrap_used, reason = "a bench may panic")]

use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::read::Files;
use doorward_simulator::world::World;

const SCENARIO: &str = "\
duration: 3m
templates:
  resources:
  - identifier_glob: shared
    capacity: 100000
    algorithm:
      kind: FAIR_SHARE
      lease_length: 60s
      refresh_interval: 8s
tree:
  root:
    children:
      region: {count: 3, children: {leaf: {count: 3}}}
clients:
- {count: 10000, wants: {walk: {start: 12}}}
";

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn refreshes(bencher: Bencher<'_, '_>) {
    let files = Files::BuiltIn(&[]);
    let mut scenario = Scenario::parse(SCENARIO, "refreshes.yaml", &files).unwrap();
    scenario.sample_every = Duration::from_secs(60);
    let refreshes = World::new(&scenario).run(|_| {}).work.refreshes;
    bencher
        .counter(ItemsCount::new(refreshes))
        .bench(|| World::new(&scenario).run(|_| {}));
}
