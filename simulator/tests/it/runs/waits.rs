//! Attribution of unused capacity to waits: worlds in which clients wait for one thing, and demand
//! that is faster than refreshes.

use std::path::Path;
use std::time::Duration;

use doorward_simulator::fuzz;
use doorward_simulator::library::LibraryEntry;
use doorward_simulator::recording::{Figures, Recording};
use doorward_simulator::scenario::{Node, Scenario};

use super::played;

/// Returns the figures of the only resource.
fn figures(recording: &Recording) -> Figures {
    recording.resources.first().unwrap().figures.clone()
}

/// Checks that the parts of all waits add up to the unused part.
#[track_caller]
fn check_sum(figures: &Figures, what: &str) {
    let waits = &figures.waits;
    let lost: f64 = waits.values().sum();
    let missing = 1.0 - figures.utilisation;
    assert!(
        (lost - missing).abs() < 1e-9,
        "{what}: {lost}, not {missing}"
    );
    assert!(waits.values().all(|lost| *lost >= 0.0), "{what}: {waits:?}");
}

fn with(rest: &str) -> Recording {
    let text = format!(
        "duration: 5m
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {{kind: FAIR_SHARE, lease_length: 30s, refresh_interval: 10s}}
{rest}"
    );
    let scenario = Scenario::parse(&text, "s.yaml", Path::new(""));
    played(&scenario.unwrap())
}

/// Checks that the unused part is not tiny, and that nine tenths of it belong to this wait.
#[track_caller]
fn check(wait: &str, rest: &str) {
    let figures = figures(&with(rest));
    check_sum(&figures, wait);
    let missing = 1.0 - figures.utilisation;
    assert!(missing > 1e-3, "{wait}: {missing} is missing");
    let waits = &figures.waits;
    let (_, lost) = waits.iter().find(|(it, _)| it.as_str() == wait).unwrap();
    assert!(*lost > 0.9 * missing, "{wait}: {waits:?}");
}

const BURSTS: &str = "{on_off: {peak: 20, base: 1, on_for: 8s, off_for: 8s}}";

#[test]
fn unused_capacity_is_attributed_to_the_waits_of_clients() {
    check(
        "gap",
        &format!("client_gaps: {{early: 5s, news: 5s}}\nclients: [{{count: 4, wants: {BURSTS}}}]"),
    );
    check(
        "answer",
        &format!("network: {{latency: 400ms}}\nclients: [{{count: 4, wants: {BURSTS}}}]"),
    );
    // Changes come faster than the floor lets clients report them.
    check(
        "floor",
        "servers: {refresh_floor: 20s}
network: {latency: 0s}
client_gaps: {news: 10ms}
clients: [{count: 4, wants: {on_off: {peak: 20, base: 1, on_for: 2s, off_for: 2s}}}]",
    );
    // One client's surplus becomes the other's once the first has acknowledged its smaller lease.
    check(
        "others",
        "network: {latency: 0s}
clients:
- {name: less, wants: {step: {from: 100, to: 10, at: 100s}}}
- {name: more, wants: {step: {from: 0, to: 90, at: 100s}}}",
    );
    check(
        "learning",
        "settled_after: 0s\nclients: [{count: 2, wants: 40, start_within: 0s}]",
    );
    check(
        "refused",
        "tree: {root: {children: [leaf]}}\nclients: [{count: 2, wants: 40}]
faults: [{at: 0s, kill: root, for: 6m}]",
    );
    // The first client wants nothing more and reports it at once; the other learns of the free
    // capacity at its refresh.
    check(
        "share",
        "clients: [{name: done, wants: {step: {from: 100, to: 0, at: 103s}}}, {name: other, wants: 100}]",
    );
    check(
        "no_server",
        "clients: [{count: 2, wants: 40}]\nfaults: [{at: 100s, kill: root, for: 4m}]",
    );
}

#[test]
fn the_parts_of_all_waits_add_up_to_the_unused_capacity_in_every_world() {
    let worlds = super::focuses().flat_map(|focus| (0..3).map(move |seed| (seed, focus)));
    for (seed, focus) in worlds {
        let mut scenario = fuzz::scenario(seed, focus);
        // During the faults there is much to attribute.
        scenario.settled_after.0 = Duration::ZERO;
        let recording = played(&scenario);
        for resource in &recording.resources {
            check_sum(&resource.figures, &super::again(seed, focus));
        }
    }
}

/// Without a floor, and at one server instead of seven.
#[test]
fn demand_that_is_faster_than_refreshes_uses_as_much_as_without_a_floor() {
    let entry = LibraryEntry::find("fast-demand").unwrap();
    let utilisation = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = entry.read().unwrap();
        assert_eq!(scenario.servers.refresh_floor.0, Duration::from_secs(1));
        assert_eq!(scenario.duration.0, Duration::from_secs(19 * 60 + 57));
        change(&mut scenario);
        let figures = figures(&played(&scenario));
        check_sum(&figures, "fast-demand");
        figures.utilisation
    };
    let no_floor = |scenario: &mut Scenario| scenario.servers.refresh_floor.0 = Duration::ZERO;
    let flat = |scenario: &mut Scenario| {
        scenario.nodes = vec![Node::new("root", None, 1)];
        scenario.clients[0].at = None;
    };
    let trees = (utilisation(&|_| {}), utilisation(&no_floor));
    let flats = (
        utilisation(&flat),
        utilisation(&|scenario| {
            flat(scenario);
            no_floor(scenario);
        }),
    );
    for ((found, without), least) in [(trees, 0.91), (flats, 0.88)] {
        assert!(
            found >= without - 0.02,
            "{found}, and {without} without a floor"
        );
        assert!(found >= least, "{found}");
    }
}
