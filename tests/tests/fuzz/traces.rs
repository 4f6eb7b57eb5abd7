//! Traces of demand: refused with the line, or played to their end.

use std::sync::Arc;

use doorward_simulator::scenario::demand::Trace;
use doorward_simulator::scenario::forms::{Amount, TraceSpeed};

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn traces() {
    fuzz!("traces", Format::Lines, share: 2, read);
}

fn read(bytes: &[u8]) {
    let mut trace = Trace {
        file: String::new(),
        speed: TraceSpeed(2.0),
        scale: Amount(3.0),
        clients: Vec::new(),
        rows: Arc::default(),
    };
    if trace.read(Ok(bytes)).is_err() {
        return;
    }
    assert!(!trace.clients.is_empty());
    assert!(rows(&trace) > 0);
}

/// Plays all rows, and returns their number.
fn rows(trace: &Trace) -> usize {
    let mut before = std::time::Duration::ZERO;
    let mut number = 0;
    for row in trace.rows.iter() {
        assert!(row.at() >= before && row.client < trace.clients.len());
        assert!(row.wants.is_finite() && row.wants >= 0.0);
        before = row.at();
        number += 1;
    }
    number
}
