//! Tests of traces as they are played.

use doorward_trace::{Scan, TraceSource, scan};

use super::*;
use crate::scenario::CLIENTS_MAX;

fn built_in(text: &str) -> TraceSource {
    TraceSource::BuiltIn {
        name: "t.csv",
        text: Box::leak(text.to_owned().into_boxed_str()),
    }
}

fn trace(text: &str, speed: f64, scale: f64) -> Trace {
    let source = built_in(text);
    let Scan {
        clients, length, ..
    } = scan(&source, CLIENTS_MAX).unwrap();
    Trace {
        source,
        clients,
        length,
        speed,
        scale,
    }
}

fn played(trace: &Trace) -> Vec<(f64, usize, f64)> {
    let feed = TraceFeed::open(trace).unwrap();
    feed.map(|row| (row.at.as_secs_f64(), row.client, row.wants))
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

#[test]
fn amounts_stay_amounts_however_they_are_scaled() {
    let large = "time_s,client,wants\n0,a,1e15\n";
    assert_eq!(played(&trace(large, 1.0, 2.0)), [(0.0, 0, 1e15)]);
}

#[test]
fn a_trace_ends_at_a_client_that_was_not_there_when_it_was_scanned() {
    let mut trace = trace(SMALL, 1.0, 1.0);
    trace.clients.pop();
    assert_eq!(TraceFeed::open(&trace).unwrap().count(), 3);
}
