//! Runs with faults of masters and clients.

use std::path::Path;

use doorward_simulator::recording::{Checker, Recording, Verdict};
use doorward_simulator::scenario::Scenario;

use super::played;

const TEMPLATES: &str = "{resources: [{identifier_glob: shared, capacity: 100, algorithm: {kind: \
                         FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}]}";

/// Plays ten clients at a root with two candidates, for five minutes.
fn with(faults: &str) -> Recording {
    let text = format!(
        "templates: {TEMPLATES}
duration: 5m
sample_every: 1s
tree: {{root: {{candidates: 2}}}}
clients: [{{count: 10, wants: 20, start_within: 0s}}]
limits: {{overshoot: 0, mastership: 0}}
faults: {faults}
"
    );
    played(&Scenario::parse(&text, "s.yaml", Path::new("")).unwrap())
}

fn verdict(recording: &Recording, checker: Checker) -> &Verdict {
    let mut all = recording.verdicts.iter();
    all.find(|verdict| verdict.checker == checker).unwrap()
}

/// Returns the seconds at which the root satisfies a condition.
fn seconds(recording: &Recording, is: impl Fn(bool, bool) -> bool) -> Vec<u32> {
    let samples = recording.resources.iter().flat_map(|it| &it.samples);
    let found = samples.filter(|sample| {
        let root = sample.nodes.first().unwrap();
        is(root.is_up, root.is_learning)
    });
    found.map(|sample| sample.at_s as u32).collect()
}

#[test]
fn a_master_that_is_cut_off_from_the_election_is_succeeded_after_its_term_and_not_before() {
    let recording = with("[{at: 100s, isolate: root, for: 60s}]");
    // It served for nine seconds after its last renewal; an election takes ten.
    let down = seconds(&recording, |is_up, _| !is_up);
    assert_eq!(down.last(), Some(&110), "{down:?}");
    // Its successor knows the most that leases have in use.
    let learning = seconds(&recording, |_, is_learning| is_learning);
    assert!(learning.iter().all(|at| *at <= 60), "{learning:?}");
    for checker in [Checker::Mastership, Checker::Overshoot] {
        let found = verdict(&recording, checker);
        assert!(found.holds && found.value == 0.0, "{found:?}");
    }
}

#[test]
fn a_master_that_reaches_etcd_again_within_its_term_keeps_its_knowledge() {
    let recording = with("[{at: 101s, isolate: root, for: 4s}]");
    let learning = seconds(&recording, |_, is_learning| is_learning);
    assert!(learning.iter().all(|at| *at <= 60), "{learning:?}");
}

/// The succession of the first freeze was once not cancelled after it.
#[test]
fn a_second_freeze_is_no_part_of_the_first() {
    let recording = with("[{at: 100s, freeze: root, for: 4s}, {at: 105s, freeze: root, for: 7s}]");
    let learning = seconds(&recording, |_, is_learning| is_learning);
    assert!(learning.iter().all(|at| *at <= 60), "{learning:?}");
    assert_eq!(verdict(&recording, Checker::Mastership).value, 0.0);
}

#[test]
fn a_node_that_is_killed_twice_is_without_a_master_until_both_are_over() {
    let recording = with(
        "[{at: 100.5s, kill: root, for: 50s}, {at: 110s, kill: root, for: 3s}, \
         {at: 120s, elect: root}, {at: 125s, restart: root, for: 1s}]",
    );
    let away = seconds(&recording, |is_up, _| !is_up);
    assert_eq!((away.first(), away.last()), (Some(&101), Some(&150)));
    assert_eq!(away.len(), 50);
}

#[test]
fn clients_that_crash_before_they_start_are_down_for_the_given_time() {
    let recording = with("[{at: 0s, crash: {clients: 10}}]");
    assert_eq!(recording.work.refreshes, 0);
    let recording = with(
        "[{at: 0s, crash: {clients: 10}, for: 50.5s}, {at: 10s, crash: {clients: 10}, for: 5s}]",
    );
    let samples = &recording.resources[0].samples;
    assert!(
        samples
            .iter()
            .all(|it| (it.at_s > 50.0) == (it.demand > 0.0))
    );
}

#[test]
fn a_frozen_root_reads_new_templates_when_it_goes_on() {
    let lower = TEMPLATES.replace("capacity: 100", "capacity: 10");
    let recording = with(&format!(
        "[{{at: 101s, freeze: root, for: 7s}}, {{at: 102s, edit: {lower}}}]"
    ));
    let found = verdict(&recording, Checker::Overshoot);
    assert!(found.holds, "{found:?}");
    let samples = &recording.resources[0].samples;
    assert_eq!(
        (samples[107].nodes[0].has, samples[109].nodes[0].has),
        (100.0, 10.0)
    );
}
