//! Tests of traces as they are played.

use doorward_trace::{Scan, scan};

use super::*;
use crate::scenario::CLIENTS_MAX;

fn built_in(text: &str) -> TraceSource {
    TraceSource::BuiltIn {
        name: "t.csv",
        text: Box::leak(text.to_owned().into_boxed_str()),
    }
}

fn trace(text: &str, speed: f64, scale: f64, repeat: u32) -> Trace {
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
        repeat,
    }
}

fn played(trace: &Trace) -> Vec<(f64, usize, f64)> {
    let feed = TraceFeed::open(trace).unwrap();
    feed.map(|row| row.unwrap())
        .map(|row| (row.at.as_secs_f64(), row.client, row.wants))
        .collect()
}

const SMALL: &str = "time_s,client,wants\n0,b,1\n0, a ,2.5\n\n7.5,b,0\n10,c,4\n";

#[test]
fn it_is_played_faster_larger_and_again() {
    let once = [(0.0, 0, 1.0), (0.0, 1, 2.5), (7.5, 0, 0.0), (10.0, 2, 4.0)];
    assert_eq!(played(&trace(SMALL, 1.0, 1.0, 1)), once);
    let twice: Vec<_> = [0.0, 5.0]
        .iter()
        .flat_map(|start| once.map(|(at, client, wants)| (start + at / 2.0, client, wants * 10.0)))
        .collect();
    assert_eq!(played(&trace(SMALL, 2.0, 10.0, 2)), twice);
    assert_eq!(played(&trace(SMALL, 1.0, 1.0, 0)), []);
}

#[test]
fn a_trace_without_length_is_not_repeated() {
    let still = "time_s,client,wants\n0,a,1\n";
    assert_eq!(played(&trace(still, 1.0, 1.0, u32::MAX)).len(), 1);
}

#[test]
fn amounts_stay_amounts_however_they_are_scaled() {
    let large = "time_s,client,wants\n0,a,1e15\n";
    assert_eq!(played(&trace(large, 1.0, 2.0, 1)), [(0.0, 0, 1e15)]);
}

#[test]
fn a_trace_that_changed_since_it_was_scanned_is_reported_and_ends() {
    let mut trace = trace(SMALL, 1.0, 1.0, 1);
    trace.clients.pop();
    let mut feed = TraceFeed::open(&trace).unwrap().skip(3);
    let error = feed.next().unwrap().unwrap_err().to_string();
    assert_eq!(
        error,
        "t.csv:6: has a client \"c\" that was not there before"
    );
    assert!(feed.next().is_none());
}

#[test]
fn a_trace_that_begins_late_begins_late_only_once() {
    let text = "time_s,client,wants\n100,a,50\n400,a,10\n";
    assert_eq!(
        played(&trace(text, 1.0, 1.0, 3)),
        [100.0, 400.0, 400.0, 700.0, 700.0, 1000.0]
            .iter()
            .zip([50.0, 10.0].iter().cycle())
            .map(|(at, wants)| (*at, 0, *wants))
            .collect::<Vec<_>>()
    );
    // A single moment is not repeated.
    let text = "time_s,client,wants\n100,a,50\n";
    assert_eq!(played(&trace(text, 1.0, 1.0, 3)), [(100.0, 0, 50.0)]);
}
