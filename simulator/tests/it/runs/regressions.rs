//! Smallest worlds of errors that were found once. Whole worlds are kept as files; see `kept`.

use std::path::Path;

use doorward_simulator::scenario::Scenario;

/// The checkers expected old leases to end with the leases of the last template.
#[test]
fn a_lowered_capacity_runs_down_with_the_longest_leases_of_all_templates_before() {
    let templates = |capacity: u32, lease: u32| {
        format!(
            "{{resources: [{{identifier_glob: shared, capacity: {capacity}, algorithm: {{kind: \
             FAIR_SHARE, lease_length: {lease}s, refresh_interval: 5s}}}}]}}"
        )
    };
    let text = format!(
        "templates: {}
duration: 5m
clients: [{{count: 4, wants: 40}}]
faults:
- {{at: 150s, partition: root, side: below, for: 80s}}
- {{at: 155s, edit: {}}}
- {{at: 160s, edit: {}}}
limits: {{overshoot: 0}}
",
        templates(100, 90),
        templates(100, 20),
        templates(50, 20),
    );
    let scenario = Scenario::parse(&text, "s.yaml", Path::new("")).unwrap();
    super::check_limits(&scenario);
}
