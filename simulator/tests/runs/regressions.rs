//! Seeds that failed once, and what it was. What a seed draws stays as it is: more is drawn from
//! another stream. What chance decides while it is played does not, whenever the engine or the
//! simulator changes what it says and when; so what was mended has a test of its own besides, where
//! it was mended.

use doorward_simulator::fuzz;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::read::Files;

const SEEDS: &[(u64, &str)] = &[
    (
        18,
        "the simulator: a client waited for ever for a server that had vanished",
    ),
    (
        54,
        "the simulator: an answer to an older call counted for a newer one",
    ),
    (
        193,
        "the simulator: a client waited for ever for a server that had vanished",
    ),
    (
        933,
        "the checkers: utilisation was judged where there was nothing to use",
    ),
    (
        1_433,
        "the checkers: a lowered capacity and a new root within one lease length count as \
         overshoot, though what is out is promised to run down",
    ),
    (2_527, "as 1433"),
    (2_761, "as 1433"),
    (9_138, "as 1433"),
    (
        10_645,
        "the simulator: after a partition, an answer to a later question about another resource made \
         a server forget that the one before it was lost on the same stream",
    ),
    (10_952, "as 10645"),
    (11_880, "as 10645"),
    (
        6_879,
        "the engine: a child server told what was outstanding until a moment ago without saying for \
         how long; its parent, without a lease itself, told that on for a whole lease length",
    ),
    (
        10_142,
        "the engine: leases were counted to the last moment, on clocks of different speed",
    ),
    (10_768, "as 10142"),
    (
        11_283,
        "the checkers: a root that begins anew after it was frozen learns like one that is elected",
    ),
];

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, what) in SEEDS {
        let (_, failure) = fuzz::play(&fuzz::scenario(*seed));
        assert_eq!(
            failure, None,
            "doorward-sim fuzz --seed {seed}; it was: {what}"
        );
    }
}

/// The checkers took what runs down to be over with the leases of the last template.
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
    let scenario = Scenario::parse(&text, "s.yaml", &Files::BuiltIn(&[])).unwrap();
    super::check_limits(&scenario);
}
