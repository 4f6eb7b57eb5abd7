//! Runs with several resources, releases, limiters, and work in flight.

use std::path::Path;

use doorward_simulator::recording::{ClientSample, Recording};
use doorward_simulator::scenario::Scenario;

use doorward_simulator::world::World;

const TWO: &str = "templates:
  resources:
  - {identifier_glob: rps, capacity: 100, algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}
  - {identifier_glob: workers, capacity: 8, algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}
duration: 5m
sample_every: 1s
limits: {overshoot: 0, nesting: 0}
";

fn run(text: &str) -> Recording {
    let text = format!("{TWO}{text}");
    let scenario = Scenario::parse(&text, "s.yaml", Path::new("")).unwrap();
    let recording = World::new(&scenario).asserting().run(|_| {});
    for verdict in &recording.verdicts {
        assert!(verdict.holds, "{verdict:?}");
    }
    recording
}

/// Returns the sample of a client and a resource at a second.
#[track_caller]
fn at(recording: &Recording, resource: &str, client: &str, second: usize) -> ClientSample {
    let mut resources = recording.resources.iter();
    let resource = resources.find(|it| it.resource == resource).unwrap();
    let mut clients = resource.clients.iter();
    let series = clients.find(|it| it.client == client).unwrap();
    *series.samples.get(second).unwrap()
}

#[test]
fn released_capacity_is_free_at_once_and_that_of_a_crashed_client_is_not() {
    for (event, has) in [("leave", 100.0), ("close", 100.0), ("crash", 50.0)] {
        let recording = run(&format!(
            "clients: [{{name: gone, resource: rps, wants: 100}}, {{name: stays, resource: rps, wants: 100}}]
faults: [{{at: 150s, {event}: {{clients: 1, of: gone}}}}]
"
        ));
        assert_eq!(at(&recording, "rps", "stays", 149).granted, 50.0, "{event}");
        assert_eq!(at(&recording, "rps", "gone", 151).granted, 0.0, "{event}");
        assert_eq!(at(&recording, "rps", "stays", 160).granted, has, "{event}");
        assert_eq!(
            at(&recording, "rps", "stays", 250).granted,
            100.0,
            "{event}"
        );
    }
}

#[test]
fn a_client_that_closes_one_resource_keeps_the_others_and_may_open_it_again() {
    let recording = run(
        "clients: [{name: both, resource: rps, wants: 100, also: [{resource: workers, wants: 5}]}]
faults: [{at: 150s, close: {clients: 1}, resource: workers, for: 30s}]
",
    );
    for (second, workers) in [(149, 5.0), (152, 0.0), (179, 0.0), (182, 5.0)] {
        assert_eq!(at(&recording, "rps", "both", second).granted, 100.0);
        assert_eq!(at(&recording, "workers", "both", second).granted, workers);
        assert_eq!(at(&recording, "workers", "both", second).wants, workers);
    }
}

#[test]
fn work_in_flight_counts_as_used_until_it_is_done_and_no_other_client_gets_it() {
    let recording = run("clients:
- {name: busy, resource: workers, wants: 8, limiter: {concurrency: 1, for: 20s}}
- {name: other, resource: workers, wants: 0}
faults: [{at: 150s, demand: {clients: 1, of: other}, wants: 8}]
");
    let busy = |second| at(&recording, "workers", "busy", second).granted;
    assert_eq!(busy(149), 8.0);
    // It gets half once it has asked, and the other half as the work ends.
    assert!(busy(157) > 4.0, "{}", busy(157));
    assert_eq!(busy(185), 4.0);
    assert_eq!(at(&recording, "workers", "other", 190).granted, 4.0);
}

#[test]
fn a_client_that_measures_asks_for_the_load_of_its_limiter() {
    let recording = run(
        "clients:
- {name: measures, resource: rps, wants: 20, limiter: {rate: 1, adaptive: {least: 1, headroom: 1.2}}}
faults: [{at: 200s, demand: {clients: 1}, wants: 0}]
",
    );
    let wants = |second| at(&recording, "rps", "measures", second).wants;
    assert_eq!(wants(0), 1.0, "nothing is measured yet");
    let before = wants(190);
    assert!((15.0..40.0).contains(&before), "{before}");
    assert_eq!(wants(220), 1.0, "the least");
}

#[test]
fn a_demand_beyond_the_largest_amount_is_cut_to_it() {
    let recording = run("clients: [{resource: rps, wants: 1000000000000000}]
faults: [{at: 60s, surge: {clients: 1}, by: 50}]
");
    let samples = &recording.resources[0].clients[0].samples;
    assert!(samples.len() > 250);
    // The root learns for a minute; then comes a refresh.
    for (second, sample) in samples.iter().enumerate().skip(66) {
        assert_eq!(sample.granted, 100.0, "{second} s");
        assert_eq!(sample.wants, 1e15, "{second} s");
    }
}
