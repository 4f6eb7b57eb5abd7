//! Clients on streams hear of changes at once.

use std::time::Duration;

use doorward_simulator::library::LibraryEntry;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::clients::Connection;

use super::{check_limits, played};

/// Returns the step of the library with a tenth of its clients.
fn step() -> Scenario {
    let mut scenario = LibraryEntry::find("step").unwrap().read().unwrap();
    for group in &mut scenario.clients {
        assert_eq!(group.connection, Connection::Stream);
        group.count /= 10;
    }
    scenario
}

#[test]
fn a_step_of_many_is_settled_through_three_levels_in_a_second() {
    for seed in 1..=3 {
        let mut scenario = step();
        assert_eq!(
            scenario.limits.convergence_max,
            Some(Duration::from_secs(1))
        );
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
