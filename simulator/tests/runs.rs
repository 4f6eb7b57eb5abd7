//! Whole runs: every scenario of the library, and scenarios by chance.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::time::Duration;

use doorward_simulator::fuzz;
use doorward_simulator::library::LIBRARY;
use doorward_simulator::recording::Recording;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;

/// Long ones are played for this long only.
const LONGEST: Duration = Duration::from_secs(300);

/// Large ones are played with this many clients of each kind only.
const CLIENTS_MAX: usize = 1_000;

fn played(scenario: &Scenario) -> Recording {
    World::new(scenario).run(|_| {})
}

#[test]
fn every_scenario_of_the_library_runs_without_overshoot_and_twice_alike() {
    for entry in LIBRARY {
        let mut scenario = entry.read().unwrap();
        scenario.duration = scenario.duration.min(LONGEST);
        scenario.settled_after = scenario.settled_after.min(scenario.duration / 2);
        for group in &mut scenario.clients {
            group.count = group.count.min(CLIENTS_MAX);
        }
        let recording = played(&scenario);
        assert!(recording.work.refreshes > 0, "{}", entry.name);
        for verdict in &recording.verdicts {
            let counts = verdict.checker == "overshoot";
            assert!(!counts || verdict.holds, "{}: {verdict:?}", entry.name);
        }
        assert!(recording == played(&scenario), "{}", entry.name);
    }
}

#[test]
fn another_seed_is_another_run() {
    let mut scenario = fuzz::scenario(1);
    let hash = played(&scenario).trace_hash;
    scenario.seed = 2;
    assert_ne!(played(&scenario).trace_hash, hash);
}

#[test]
fn fifty_scenarios_by_chance_hold() {
    for seed in 0..50 {
        let (_, failure) = fuzz::play(&fuzz::scenario(seed));
        assert_eq!(failure, None, "doorward-sim fuzz --seed {seed}");
    }
}
