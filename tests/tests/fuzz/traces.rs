//! Traces of demand: refused with the line, or played to their end.

use std::fs;
use std::path::PathBuf;

use doorward_simulator::scenario::CLIENTS_MAX;
use doorward_simulator::scenario::demand::Trace;
use doorward_simulator::trace_feed::TraceFeed;
use doorward_trace::{TraceSource, scan};

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn traces() {
    fuzz!("traces", Format::Lines, share: 2, read);
}

fn read(bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz-trace.csv");
    fs::write(&path, bytes).unwrap();
    let source = TraceSource::File(path);
    let Ok(found) = scan(&source, CLIENTS_MAX) else {
        return;
    };
    assert!(!found.clients.is_empty());
    let trace = Trace {
        source,
        speed: 2.0,
        scale: 3.0,
        clients: found.clients,
        length: found.length,
    };
    assert!(rows(&trace) > 0);
}

/// Reads all rows, and returns their number.
fn rows(trace: &Trace) -> usize {
    let mut before = std::time::Duration::ZERO;
    let mut number = 0;
    for row in TraceFeed::open(trace).expect("it was read before") {
        assert!(row.at >= before && row.client < trace.clients.len());
        assert!(row.wants.is_finite() && row.wants >= 0.0);
        before = row.at;
        number += 1;
    }
    number
}
