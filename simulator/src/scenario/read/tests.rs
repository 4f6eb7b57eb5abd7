//! Scenario files that are valid, and every way in which they are not.

mod accepted;
mod refused;

use super::*;

const SHARED: &str = "templates: {resources: [{identifier_glob: shared, capacity: 100, \
                      algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}]}\n";

/// A trace and a template file, as if they stood beside the scenario; and some that are
/// invalid.
const BESIDE: Files = Files::BuiltIn(&[
    ("good.csv", "time_s,client,wants\n0,a,1\n60,b,2.5\n"),
    ("still.csv", "time_s,client,wants\n0,a,1e12\n"),
    ("bad.csv", "time_s,client,wants\n0,a,1\n1,a,NaN\n"),
    (
        "good.yaml",
        "resources: [{identifier_glob: db/*, capacity: 5, \
         algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}]",
    ),
    (
        "bad.yaml",
        "resources:\n- identifier_glob: a\n  capacity: many\n",
    ),
]);

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "s.yaml", &BESIDE)
}
