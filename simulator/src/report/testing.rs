//! For tests: recordings of a small scenario, played once in each test binary.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::world::World;

const SCENARIO: &str = "
description: A leaf dies for a while; six clients at two leaves want more than there is.
duration: 3m
sample_every: 5s
settled_after: 90s
templates:
  resources:
  - identifier_glob: shared
    capacity: 100
    algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 5s}
tree:
  root: {children: {leaf: {count: 2}}}
clients:
- {count: 6, wants: {walk: {start: 30, factor: [0.5, 2], every: 20s}}}
faults:
- {at: 100s, kill: leaf-1, for: 40s}
limits: {overshoot: 0, utilisation: 0.1}
";

/// Plays the scenario with a replaced text.
fn play(from: &str, to: &str) -> Arc<Recording> {
    let text = SCENARIO.replace(from, to);
    assert!(text.contains(to));
    let scenario = Scenario::parse(&text, "small.yaml", Path::new(""));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    Arc::new(World::new(&scenario).run(|_| {}))
}

/// Returns a run in which all limits hold.
pub(super) fn played() -> Arc<Recording> {
    static RUN: LazyLock<Arc<Recording>> = LazyLock::new(|| play("", ""));
    Arc::clone(&RUN)
}

/// Returns a run with a violated limit.
pub(super) fn violated() -> Arc<Recording> {
    static RUN: LazyLock<Arc<Recording>> =
        LazyLock::new(|| play("utilisation: 0.1", "utilisation: 1"));
    Arc::clone(&RUN)
}

/// Returns a run with names that try to break out of where they stand.
pub(super) fn hostile() -> Recording {
    const EVIL: &str = "</script><!--<script>alert(1)</script>&\"',\n\u{1b}[31m\u{2028}";
    let mut run = (*violated()).clone();
    for name in [&mut run.scenario, &mut run.description, &mut run.trace_hash] {
        *name = EVIL.to_owned();
    }
    run.nodes[0].name = EVIL.to_owned();
    run.marks[0].text = EVIL.to_owned();
    for verdict in &mut run.verdicts {
        verdict.resource = EVIL.to_owned();
    }
    let resource = &mut run.resources[0];
    (resource.resource, resource.algorithm) = (EVIL.to_owned(), EVIL.to_owned());
    resource.clients[0].client = EVIL.to_owned();
    resource.client_figures[0].client = EVIL.to_owned();
    run
}
