//! Runs in which clients lose their server: their comeback, their requests at that moment, and
//! clients that do not come back.

use std::path::Path;
use std::time::Duration;

use doorward_simulator::library::LibraryEntry;
use doorward_simulator::recording::{Checker, Recording};
use doorward_simulator::scenario::Scenario;

use super::played;

#[track_caller]
fn check_limits(recording: &Recording) {
    for verdict in &recording.verdicts {
        assert!(verdict.holds, "{verdict:?}");
    }
}

/// A fiftieth of the clients of the library's scenario, over the same time.
#[test]
fn clients_that_lost_their_server_are_back_within_seconds_and_not_all_at_once() {
    let mut scenario = LibraryEntry::find("comeback").unwrap().read().unwrap();
    assert_eq!(scenario.clients[0].count.0, 100_000);
    scenario.clients[0].count.0 = 2_000;
    let recording = played(&scenario);
    check_limits(&recording);
    let figures = &recording.resources[0].figures;
    assert_eq!((figures.comebacks, figures.not_back), (2_000, 0));
    assert!(figures.comeback_median_s < 2.5 && figures.comeback_max_s <= 5.1);
    let judged = |checker: Checker| recording.verdicts.iter().any(|it| it.checker == checker);
    assert!(judged(Checker::Comeback) && judged(Checker::NotBack));
    // Learning mode ends for all of them at the same time, and most of them come then.
    let busiest = |recording: &Recording| {
        let root = &recording.nodes[0];
        (root.requests_most_at_s, root.requests_most)
    };
    let (at, requests) = busiest(&recording);
    assert!(at == 240.0 && requests < 1_500, "{requests} at {at}");
    // Before that, the first second after the server's return is the busiest.
    scenario.duration.0 = Duration::from_secs(230);
    let (at, requests) = busiest(&played(&scenario));
    assert!(at == 180.0 && requests < 1_000, "{requests} at {at}");
}

/// Plays a hundred clients of a leaf, with faults.
fn with(faults: &str, limits: &str) -> Recording {
    let text = format!(
        "templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {{kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}}
duration: 5m
settled_after: 60s
tree: {{root: {{children: [leaf]}}}}
clients: [{{count: 100, wants: 2}}]
faults: [{faults}]
limits: {limits}
"
    );
    played(&Scenario::parse(&text, "s.yaml", Path::new("")).unwrap())
}

#[test]
fn a_comeback_counts_from_when_the_server_is_reachable() {
    for fault in [
        "{at: 100s, kill: leaf, for: 60s}",
        "{at: 100s, partition: leaf, for: 60s}",
    ] {
        let recording = with(fault, "{comeback: 15s, not_back: 0}");
        check_limits(&recording);
        let figures = &recording.resources[0].figures;
        assert_eq!((figures.comebacks, figures.not_back), (100, 0), "{fault}");
    }
    // A leaf that is up and has nothing to give does not count as an outage.
    let recording = with(
        "{at: 100s, kill: root, for: 60s}",
        "{comeback: 0s, not_back: 0}",
    );
    check_limits(&recording);
    // A client whose lease outlasts the outage lost nothing.
    let recording = with(
        "{at: 100s, kill: leaf, for: 3s}",
        "{comeback: 0s, not_back: 0}",
    );
    check_limits(&recording);
    assert_eq!(recording.resources[0].figures.comebacks, 0);
}

#[test]
fn a_client_that_is_not_back_at_the_end_is_found() {
    let fault = "{at: 200s, kill: leaf, for: 60s}, {at: 250s, kill: root, for: 60s}";
    let recording = with(fault, "{comeback: 15s, not_back: 0}");
    // The leaf is up and has nothing to give; the time of the wait counts.
    let figures = &recording.resources[0].figures;
    assert_eq!(figures.not_back, 100);
    assert_eq!(figures.comeback_max_s, 40.0);
    let broken = recording.verdicts.iter().filter(|it| !it.holds);
    let broken: Vec<&str> = broken.map(|it| it.checker.as_str()).collect();
    assert_eq!(broken, ["comeback", "not back"]);
}

/// Clients join one after the other, at leaves that learn of each other through the root. Then all
/// servers are down.
#[test]
fn use_in_safe_mode_is_no_overshoot_and_fits_once_all_clients_were_informed() {
    let text = "
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}
duration: 5m
tree: {root: {children: [a, b]}}
clients: [{count: 12, wants: 30, start_within: 120s}]
faults:
- {at: 150s, kill: root, for: 80s}
- {at: 150s, kill: a, for: 80s}
- {at: 150s, kill: b, for: 80s}
limits: {overshoot: 0, safe_use: 1}
";
    let scenario = Scenario::parse(text, "s.yaml", Path::new("")).unwrap();
    let recording = played(&scenario);
    check_limits(&recording);
    let resource = &recording.resources[0];
    let figures = &resource.figures;
    assert_eq!(figures.overshoot_s, 0.0);
    assert!(figures.peak_of_capacity <= 1.0 + 1e-9);
    assert!((figures.peak_of_safe_use - 1.0).abs() < 1e-9, "{figures:?}");
    // Use in safe mode halves over time, and the samples show it apart from leases.
    let at = |seconds: f64| {
        resource
            .samples
            .iter()
            .find(|it| it.at_s == seconds)
            .unwrap()
    };
    let used = |seconds: f64| (at(seconds).granted, at(seconds).safe);
    assert_eq!(used(145.0), (100.0, 0.0));
    for (seconds, part) in [(175.0, 1.0), (195.0, 0.5), (215.0, 0.25)] {
        let (granted, safe) = used(seconds);
        assert_eq!(granted, 0.0);
        assert!((safe - 100.0 * part).abs() < 1e-9, "{safe} at {seconds}");
    }
}

/// There is enough for all, so a join changes nothing for the clients at the other leaf but their
/// number.
#[test]
fn a_join_at_one_leaf_lowers_safe_capacities_at_the_other() {
    let text = "
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 10s}
duration: 5m
tree: {root: {children: [a, b]}}
clients: [{count: 12, wants: 5, start_within: 217s}]
limits: {safe_use: 1}
";
    let scenario = Scenario::parse(text, "s.yaml", Path::new("")).unwrap();
    let recording = played(&scenario);
    check_limits(&recording);
    let mut all = recording.verdicts.iter();
    let found = all.find(|it| it.checker == Checker::SafeUse).unwrap();
    assert_eq!(
        found.value, 1.0,
        "they were looked at when there was nobody else"
    );
}

/// The operator gave three clients half of the capacity each.
#[test]
fn safe_use_beyond_the_capacity_is_found() {
    let text = "
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    safe_capacity: 50
    algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}
duration: 2m
clients: [{name: safe, count: 3, wants: 60}, {name: bold, mode: optimistic, wants: 60}]
faults: [{at: 60s, kill: root, for: 60s}]
limits: {overshoot: 0, safe_use: 1}
";
    let scenario = Scenario::parse(text, "s.yaml", Path::new("")).unwrap();
    let recording = played(&scenario);
    let found = |checker: Checker| {
        let mut all = recording.verdicts.iter();
        let verdict = all.find(|it| it.checker == checker).unwrap();
        (verdict.value, verdict.holds)
    };
    assert_eq!(found(Checker::SafeUse), (1.5, false));
    assert_eq!(found(Checker::Overshoot), (0.0, true));
    let figures = &recording.resources[0].figures;
    assert_eq!(figures.peak_of_safe_use, 1.5);
    assert_eq!(figures.peak_with_fallback, 2.1, "with who is optimistic");
}
