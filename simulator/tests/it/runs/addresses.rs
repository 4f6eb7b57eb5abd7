//! Runs with redirect loops and stale addresses.

use std::path::Path;

use doorward_simulator::recording::Recording;
use doorward_simulator::scenario::Scenario;

use super::played;

/// Plays clients at a leaf and at its parent, with three candidates each, until all must have their
/// ideal share again.
fn with(way_up: &str, faults: &str) -> Recording {
    let text = format!(
        "templates: {{resources: [{{identifier_glob: shared, capacity: 100, algorithm: {{kind: FAIR_SHARE, \
         lease_length: 20s, refresh_interval: 5s}}}}]}}
duration: 6m
sample_every: 1s
settled_after: 350s
tree: {{root: {{candidates: 3, children: {{leaf: {{candidates: 3}}}}}}}}
servers: {{way_up: {way_up}, election: 2s}}
clients:
- {{name: high, count: 5, wants: 20, at: root, start_within: 0s}}
- {{name: low, count: 5, wants: 20, at: leaf, start_within: 0s}}
heal_at: 260s
right_at: [320s]
limits: {{overshoot: 0, nesting: 0, mastership: 0, rest: 0.01}}
faults: [{faults}]
"
    );
    played(&Scenario::parse(&text, "s.yaml", Path::new("")).unwrap())
}

/// Returns the smallest total that clients had between two seconds.
fn least_granted(recording: &Recording, from: f64, until: f64) -> f64 {
    let samples = recording.resources.iter().flat_map(|it| &it.samples);
    let within = samples.filter(|it| from <= it.at_s && it.at_s <= until);
    within.map(|it| it.granted).fold(f64::INFINITY, f64::min)
}

#[test]
fn no_promise_is_broken_when_masters_die_while_addresses_are_wrong() {
    for way_up in ["stream", "poll"] {
        for fault in ["redirect_loop", "stale_addresses"] {
            for node in ["root", "leaf"] {
                let recording = with(
                    way_up,
                    &format!(
                        "{{at: 100s, {fault}: {node}, for: 100s}}, {{at: 110s, kill: {node}, for: 5s}}, \
                         {{at: 150s, kill: {node}}}"
                    ),
                );
                for verdict in &recording.verdicts {
                    assert!(verdict.holds, "{way_up}, {fault} of {node}: {verdict:?}");
                }
                let again = least_granted(&recording, 330.0, 360.0);
                assert!(again > 99.9, "{way_up}, {fault} of {node}: {again}");
            }
        }
    }
}
