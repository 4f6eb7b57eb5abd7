//! Traces of demand: refused with the line, or played to their end.

use std::fs;
use std::path::PathBuf;

use doorward_simulator::scenario::demand::Trace;
use doorward_trace::TraceSource;

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
    let Ok(found) = doorward_trace::Trace::read(&source, 1_000, 100_000) else {
        return;
    };
    assert!(!found.clients.is_empty());
    let trace = Trace {
        file: String::new(),
        speed: 2.0,
        scale: 3.0,
        clients: found.clients,
        rows: found.rows.into(),
    };
    assert!(rows(&trace) > 0);
}

/// Plays all rows, and returns their number.
fn rows(trace: &Trace) -> usize {
    let mut before = std::time::Duration::ZERO;
    let mut number = 0;
    for row in trace.played() {
        assert!(row.at >= before && row.client < trace.clients.len());
        assert!(row.wants.is_finite() && row.wants >= 0.0);
        before = row.at;
        number += 1;
    }
    number
}
