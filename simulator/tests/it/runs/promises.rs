//! Whole worlds that must break a promise with the production engine: clocks slower than allowed, a
//! badly timed restore of etcd, outages too long for a limit. Findings on stories of a few lines
//! (`testdata/promises`) must occur in a simulation too. Each world has a twin that keeps its
//! promise.

use std::path::Path;

use doorward_simulator::recording::Checker;
use doorward_simulator::scenario::Scenario;

use super::played;

/// Promise, and the world that breaks it.
struct BrokenPromise {
    checker: Checker,
    /// Scenario text besides five clients at each of two leaves, which want twice the capacity.
    with: &'static str,
    /// Values of `HERE` in the world that breaks the promise and in its twin.
    here: [&'static str; 2],
}

const WORLDS: &[BrokenPromise] = &[
    // The right leaf's clients get the amounts of the left leaf's clients, whose leases have ended
    // for the servers.
    BrokenPromise {
        checker: Checker::Overshoot,
        with: "
faults:
- {at: 90s, drift: {clients: 5, at: left}, speed: HERE}
- {at: 100s, partition: left, side: below, for: 60s}
limits: {overshoot: 0}",
        here: ["0.5", "1"],
    },
    // The marks of the backup are too low, and no server of the root has seen later ones. The right leaf's clients
    // get what the left leaf's clients have.
    BrokenPromise {
        checker: Checker::Overshoot,
        with: "
servers: {election: [2s, 4s]}
faults:
- {at: 30s, demand: {clients: 5, at: left}, wants: 5}
- {at: 30s, demand: {clients: 5, at: right}, wants: 5}
- {at: 90s, demand: {clients: 5, at: left}, wants: 15}
- {at: 99s, stop: root, for: 3s}
- {at: 100s, etcd: restored, back: HERE, for: 3s}
- {at: 101s, partition: left, side: parent, for: 10s}
- {at: 101s, demand: {clients: 5, at: right}, wants: 10}
limits: {overshoot: 0}",
        here: ["20s", "100ms"],
    },
    BrokenPromise {
        checker: Checker::Nesting,
        with: "
faults:
- {at: 90s, drift: {clients: 5, at: left}, speed: HERE}
- {at: 100s, partition: left, side: below, for: 60s}
limits: {nesting: 0}",
        here: ["0.5", "1"],
    },
    // Etcd goes back to a time before the master was succeeded, and the old master reaches it again
    // at that moment. With nine of ten seeds both answer once or twice.
    BrokenPromise {
        checker: Checker::Mastership,
        with: "
faults:
- {at: 100s, isolate: root, for: 11s, way: there}
- {at: 111s, etcd: restored, back: HERE}
seed: 2
limits: {mastership: 0}",
        here: ["7s", "100ms"],
    },
    BrokenPromise {
        checker: Checker::Fairness,
        with: "
faults: [{at: 100s, partition: left, side: below, for: HERE}]
limits: {unfairness: 0.1}",
        here: ["90s", "5s"],
    },
    BrokenPromise {
        checker: Checker::SettledFairness,
        with: "
faults: [{at: 100s, partition: left, side: below, for: HERE}]
right_at: [150s]
limits: {rest: 0.01}",
        here: ["90s", "5s"],
    },
    BrokenPromise {
        checker: Checker::Utilisation,
        with: "
faults: [{at: 100s, partition: root, side: below, for: HERE}]
limits: {utilisation: 0.9}",
        here: ["90s", "5s"],
    },
    // A client that is cut off cannot report that it wants less.
    BrokenPromise {
        checker: Checker::Convergence,
        with: "
faults:
- {at: 100s, partition: left, side: below, for: HERE}
- {at: 101s, demand: {clients: 5, at: left}, wants: 2}
limits: {convergence: 20s}",
        here: ["90s", "2s"],
    },
    BrokenPromise {
        checker: Checker::Starvation,
        with: "
faults: [{at: 100s, partition: left, side: below, for: HERE}]
limits: {starvation: 30s}",
        here: ["90s", "5s"],
    },
    // Whenever the left leaf is cut off, its clients' capacity goes to the others, and then back.
    BrokenPromise {
        checker: Checker::Oscillation,
        with: "
faults: [{every: 60s, partition: left, side: below, for: HERE}]
limits: {oscillation: 1}",
        here: ["30s", "5s"],
    },
    BrokenPromise {
        checker: Checker::Comeback,
        with: "
faults: [{at: 100s, kill: left, for: 40s}]
limits: {comeback: HERE}",
        here: ["100ms", "60s"],
    },
    BrokenPromise {
        checker: Checker::NotBack,
        with: "
faults: [{at: 100s, kill: left, for: HERE}]
limits: {not_back: 0}",
        here: ["139.9s", "40s"],
    },
    // Servers that are not master redirect to one another, and a client follows a few times.
    BrokenPromise {
        checker: Checker::Requests,
        with: "
faults:
- {at: 100s, kill: left, for: 15s}
- {at: 100s, redirect_loop: left, for: 60s}
limits: {requests: HERE}",
        here: ["3", "60"],
    },
    BrokenPromise {
        checker: Checker::SafeUse,
        with: "
limits: {safe_use: HERE}",
        here: ["0.9", "1"],
    },
];

fn scenario(world: &BrokenPromise, here: &str) -> Scenario {
    let text = format!(
        "templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {{kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}}
duration: 4m
settled_after: 60s
tree: {{root: {{candidates: 2, children: {{left: {{candidates: 2}}, right: {{}}}}}}}}
clients:
- {{name: left, count: 5, at: left, wants: 20}}
- {{name: right, count: 5, at: right, wants: 20}}
{}
",
        world.with.replace("HERE", here)
    );
    Scenario::parse(&text, "s.yaml", Path::new("")).unwrap()
}

#[test]
fn every_promise_can_be_seen_broken_in_a_whole_world() {
    let mut failed = Vec::new();
    for world in WORLDS {
        for (here, breaks) in world.here.into_iter().zip([true, false]) {
            let verdicts = played(&scenario(world, here)).verdicts;
            let judged = verdicts.iter().filter(|verdict| verdict.limit.is_some());
            let judged: Vec<_> = judged.collect();
            let is_so = judged
                .iter()
                .all(|verdict| verdict.checker == world.checker && verdict.holds != breaks);
            if !is_so || judged.len() != 1 {
                failed.push(format!("{:?} with {here}: {judged:?}", world.checker));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_checker_has_a_whole_world() {
    let missing = Checker::ALL.into_iter();
    let missing = missing.filter(|it| WORLDS.iter().all(|world| world.checker != *it));
    assert_eq!(missing.collect::<Vec<_>>(), []);
}
