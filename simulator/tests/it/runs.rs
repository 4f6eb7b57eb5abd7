//! Whole runs: every scenario of the library, and random scenarios.

mod addresses;
mod comeback;
mod faults;
mod kept;
mod promises;
mod regressions;
mod streams;
mod usage;
mod waits;

use std::path::Path;
use std::time::Duration;

use doorward_simulator::fuzz::{self, Part};
use doorward_simulator::library::{LIBRARY, LibraryEntry};
use doorward_simulator::recording::{Checker, Recording};
use doorward_simulator::scenario::{ClientGaps, Scenario};
use doorward_simulator::world::World;

/// Longest run that is played twice.
const LONGEST: Duration = Duration::from_secs(300);

/// Most clients of a group in a run that is played twice.
const CLIENTS_MAX: usize = 1_000;

/// Scenarios too large for a full run in a test.
const LARGE: [&str; 4] = ["comeback", "hour", "million", "step"];

fn played(scenario: &Scenario) -> Recording {
    World::new(scenario).run(|_| {})
}

/// Checks that a scenario has limits and that all hold.
#[track_caller]
fn check_limits(scenario: &Scenario) {
    let recording = played(scenario);
    let again = format!(
        "doorward-sim run {} --seed {}",
        scenario.name, scenario.seed
    );
    let verdicts = &recording.verdicts;
    assert!(verdicts.iter().any(|it| it.limit.is_some()), "{again}");
    for verdict in verdicts {
        assert!(verdict.holds, "{again}: {verdict:?}");
    }
}

#[test]
fn every_scenario_of_the_library_keeps_its_limits() {
    for entry in LIBRARY.iter().filter(|it| !LARGE.contains(&it.name)) {
        let scenario = entry.read().unwrap();
        let limits = scenario.limits;
        assert_eq!(limits.of(Checker::Overshoot), Some(0.0), "{}", entry.name);
        check_limits(&scenario);
    }
}

#[test]
fn doormans_longest_scenarios_keep_their_limits_whatever_the_seed() {
    for (name, utilisation) in [("doorman-5", 0.99), ("doorman-7", 0.98)] {
        let mut scenario = LibraryEntry::find(name).unwrap().read().unwrap();
        assert_eq!(scenario.limits.of(Checker::Utilisation), Some(utilisation));
        assert_eq!(scenario.duration.0, Duration::from_secs(3600));
        for seed in 2..=3 {
            scenario.seed = seed;
            check_limits(&scenario);
        }
    }
}

#[test]
fn every_scenario_of_the_library_is_the_same_when_it_is_played_again() {
    for entry in LIBRARY {
        let mut scenario = entry.read().unwrap();
        scenario.duration.0 = scenario.duration.0.min(LONGEST);
        scenario.settled_after.0 = scenario.settled_after.0.min(scenario.duration.0 / 2);
        for group in &mut scenario.clients {
            group.count.0 = group.count.0.min(CLIENTS_MAX);
        }
        let recording = played(&scenario);
        assert!(recording.work.refreshes > 0, "{}", entry.name);
        assert!(recording == played(&scenario), "{}", entry.name);
    }
}

#[test]
fn another_seed_is_another_run() {
    let mut scenario = fuzz::scenario(1, None);
    let hash = played(&scenario).trace_hash;
    scenario.seed = 2;
    assert_ne!(played(&scenario).trace_hash, hash);
}

/// Returns the draw without a focus, and then each part as the focus.
fn focuses() -> impl Iterator<Item = Option<Part>> {
    std::iter::once(None).chain(Part::ALL.map(Some))
}

fn again(seed: u64, focus: Option<Part>) -> String {
    let focus = focus.map_or(String::new(), |part| format!(" --focus {}", part.as_str()));
    format!("doorward-sim fuzz --seed {seed}{focus}")
}

/// The test is split in two for two cores, because it takes longer than most others. `tests/release` plays more seeds.
#[test]
fn random_scenarios_hold_with_even_seeds() {
    check_by_chance(0);
}

#[test]
fn random_scenarios_hold_with_odd_seeds() {
    check_by_chance(1);
}

fn check_by_chance(first: u64) {
    for focus in focuses() {
        let seeds = if focus.is_none() { 20 } else { 6 };
        for seed in (first..seeds).step_by(2) {
            let (_, failure) = fuzz::play(&fuzz::scenario(seed, focus));
            assert_eq!(failure, None, "{}", again(seed, focus));
        }
    }
}

#[test]
fn a_push_may_overtake_an_answer_that_is_lost() {
    let (_, failure) = fuzz::play(&fuzz::scenario(3_000_250, None));
    assert_eq!(failure, None, "{}", again(3_000_250, None));
}

#[test]
fn a_random_scenario_is_the_same_when_it_is_played_again() {
    for focus in focuses() {
        for seed in 100..102 {
            let (first, _) = fuzz::play(&fuzz::scenario(seed, focus));
            let (second, _) = fuzz::play(&fuzz::scenario(seed, focus));
            assert_eq!(
                first.trace_hash,
                second.trace_hash,
                "{}",
                again(seed, focus)
            );
        }
    }
}

/// The library decides how long clients wait.
#[test]
fn nothing_is_drawn_of_how_long_clients_wait_before_they_send_news() {
    for focus in focuses() {
        let scenario = fuzz::scenario(1, focus);
        assert_eq!(scenario.client_gaps, ClientGaps::default());
    }
}

/// The root's clock runs at twice the speed, so the leaf's lease ends for the root long before it
/// ends for the leaf. The checker finds this although no sample is taken then and the root knows
/// nothing of the resource.
#[test]
fn leases_that_a_root_forgot_and_a_leaf_still_uses_are_found() {
    let text = "
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}
duration: 10m
sample_every: 10m
tree: {root: {children: [leaf]}}
clients: [{count: 10, wants: 20}]
faults: [{at: 200s, drift: root, speed: 2}, {at: 200s, partition: leaf, for: 100s}]
limits: {nesting: 0}
";
    let scenario = Scenario::parse(text, "s.yaml", Path::new("")).unwrap();
    let recording = played(&scenario);
    let nesting = recording
        .verdicts
        .iter()
        .find(|it| it.checker == Checker::Nesting);
    let nesting = nesting.unwrap();
    assert!(!nesting.holds);
    assert_eq!(nesting.value, 1.0, "all that there is");
    let at = nesting.at_s.unwrap();
    assert!(200.0 < at && at < 270.0, "{at}");
}
