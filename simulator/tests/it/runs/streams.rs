//! Clients on streams hear of changes at once.

use std::path::Path;

use doorward_simulator::library::LibraryEntry;
use doorward_simulator::recording::Checker;
use doorward_simulator::scenario::clients::Connection;
use doorward_simulator::scenario::{ClientGroup, Scenario};

use super::{check_limits, played};

/// Returns the step of the library with a tenth of its clients, and of its capacity.
fn step() -> Scenario {
    let text = LibraryEntry::find("step").unwrap().text.to_owned();
    let tenth = [
        ("100000", "10000"),
        ("count: 9000", "count: 900"),
        ("count: 1000", "count: 100"),
    ];
    let text = tenth.iter().fold(text, |text, (all, part)| {
        assert!(text.contains(all), "{all}");
        text.replace(all, part)
    });
    let scenario = Scenario::parse(&text, "step.yaml", Path::new("")).unwrap();
    let streams = |group: &ClientGroup| group.connection == Connection::Stream;
    assert!(scenario.clients.iter().all(streams));
    scenario
}

#[test]
fn a_step_of_many_is_settled_through_three_levels_in_a_second() {
    for seed in 1..=3 {
        let mut scenario = step();
        assert_eq!(scenario.limits.of(Checker::Convergence), Some(1.0));
        scenario.seed = seed;
        check_limits(&scenario);
    }
}

#[test]
fn clients_that_poll_need_refreshes_for_that() {
    let mut scenario = step();
    for group in &mut scenario.clients {
        group.connection = Connection::Poll;
    }
    let convergence = played(&scenario).verdicts;
    assert!(convergence.iter().any(|it| !it.holds), "{convergence:?}");
}
