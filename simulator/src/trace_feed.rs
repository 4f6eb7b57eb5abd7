//! Trace as a simulation plays it, with the speed and scale of the scenario.
//!
//! It was read once before the simulation, which found all its errors. This file reads it again,
//! row by row.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_trace::{Rows, TraceError};

use crate::scenario::CLIENTS_MAX;
use crate::scenario::demand::Trace;

/// Change of a client's demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayedRow {
    /// Time from the start of the simulation.
    pub at: Duration,
    /// Index of the client in [`Trace::clients`].
    pub client: usize,
    /// Amount that it wants from then on.
    pub wants: f64,
}

/// Rows of a trace with the speed and scale of the scenario.
pub struct TraceFeed {
    rows: Rows,
    speed: f64,
    scale: f64,
    clients: usize,
}

impl TraceFeed {
    /// Opens a trace.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn open(trace: &Trace) -> Result<Self, TraceError> {
        Ok(Self {
            rows: Rows::open(&trace.source, CLIENTS_MAX)?,
            speed: trace.speed,
            scale: trace.scale,
            clients: trace.clients.len(),
        })
    }
}

/// Ends at the last row, or at a row that has become invalid since the scenario was read.
impl Iterator for TraceFeed {
    type Item = PlayedRow;

    fn next(&mut self) -> Option<PlayedRow> {
        let row = self.rows.next_row().ok()??;
        let at = Duration::try_from_secs_f64(row.time_s / self.speed);
        (row.client < self.clients).then(|| PlayedRow {
            at: at.unwrap_or(Duration::MAX),
            client: row.client,
            wants: (row.wants * self.scale).min(Amount::MAX.get()),
        })
    }
}

#[cfg(test)]
mod tests;
