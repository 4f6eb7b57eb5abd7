//! Traces that the demonstration can follow, and those that it cannot.

use super::*;

#[test]
fn the_built_in_trace_can_be_followed() {
    let trace = DemandTrace::read(None).unwrap();
    assert_eq!(trace.clients.len(), 10);
    let mean = trace.mean_demand();
    assert!((110.0..130.0).contains(&mean), "{mean}");
    assert!((590..=600).contains(&trace.length().as_secs()));
}

#[test]
fn rows_say_who_wants_how_much_from_when_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "time_s,client,wants\n0,a,1\n0,b,2.5\n7.5, a ,0\n").unwrap();
    let trace = DemandTrace::read(Some(&path)).unwrap();
    let step = |at: f64, client, wants| DemandStep {
        at: Duration::from_secs_f64(at),
        client,
        wants: Amount::new(wants).unwrap(),
    };
    assert_eq!(
        trace.steps,
        [step(0.0, 0, 1.0), step(0.0, 1, 2.5), step(7.5, 0, 0.0)]
    );
}

#[test]
fn a_trace_that_cannot_be_followed_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for (text, expected) in [
        ("time_s,client,wants\n", ":2: has no rows; add at least one"),
        (
            "time_s,client,wants\nx,a,1\n",
            ":2: time_s is \"x\"; give a number",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = DemandTrace::read(Some(&path)).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}
