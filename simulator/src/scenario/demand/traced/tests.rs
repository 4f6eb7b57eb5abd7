//! Tests of traces as they are played.

use super::*;

fn trace(text: &'static str, speed: f64, scale: f64) -> Trace {
    let mut trace = Trace {
        file: "t.csv".to_owned(),
        clients: Vec::new(),
        rows: Arc::default(),
        speed: TraceSpeed(speed),
        scale: Amount(scale),
    };
    trace.read(Ok(text.as_bytes())).unwrap();
    trace
}

fn played(trace: &Trace) -> Vec<(f64, usize, f64)> {
    let rows = trace.rows.iter();
    rows.map(|row| (row.time_s, row.client, row.wants))
        .collect()
}

const SMALL: &str = "time_s,client,wants\n0,b,1\n0, a ,2.5\n\n7.5,b,0\n10,c,4\n";

#[test]
fn it_is_played_faster_and_larger() {
    let usual = [(0.0, 0, 1.0), (0.0, 1, 2.5), (7.5, 0, 0.0), (10.0, 2, 4.0)];
    assert_eq!(played(&trace(SMALL, 1.0, 1.0)), usual);
    let quick = usual.map(|(at, client, wants)| (at / 2.0, client, wants * 10.0));
    assert_eq!(played(&trace(SMALL, 2.0, 10.0)), quick);
}
