//! Whoever is sent in circles does not ask all the time, and a client that does is noticed.

#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a test that cannot go on says so"
)]

use doorward_session::session_bugs::{self, SessionBug};
use doorward_simulator::recording::{Checker, Verdict};
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::read::Files;
use doorward_simulator::world::World;

/// There is no master for a while, and then the others send to one another.
const CIRCLES: &str = "
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}
duration: 3m
tree: {root: {candidates: 3}}
clients: [{count: 10, wants: 20}]
faults:
- {at: 60s, kill: root, for: 15s}
- {at: 60s, redirect_loop: root, for: 60s}
limits: {requests: 60}
";

fn requests(bug: Option<SessionBug>) -> Verdict {
    let scenario = Scenario::parse(CIRCLES, "circles.yaml", &Files::BuiltIn(&[]));
    let scenario = scenario.expect("it is a scenario");
    session_bugs::plant(bug);
    let recording = World::new(&scenario).run(|_| {});
    session_bugs::plant(None);
    let mut verdicts = recording.verdicts.into_iter();
    let found = verdicts.find(|verdict| verdict.checker == Checker::Requests);
    found.expect("it is judged")
}

#[test]
fn a_client_that_follows_redirects_without_end_is_noticed() {
    let verdict = requests(None);
    assert!(verdict.holds, "{verdict:?}");
    let verdict = requests(Some(SessionBug::RedirectsWithoutEnd));
    assert!(verdict.is_broken(), "{verdict:?}");
}
