//! Trace as a simulation plays it, with the speed, scale and repetitions of the scenario.
//!
//! It was read once before the simulation, which found all its errors. This file reads it again,
//! row by row.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_trace::{Rows, TraceError, TraceSource};

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

/// Rows of a trace with the speed, scale and repetitions of the scenario. A round starts when the
/// one before it ended: its first row comes at the time of the last one.
#[derive(Debug)]
pub struct TraceFeed {
    source: TraceSource,
    /// `None` once it has ended.
    rows: Option<Rows>,
    speed: f64,
    scale: f64,
    rounds_left: u32,
    /// Time of the first row within a round. Later rounds start with that row.
    lead: Option<Duration>,
    /// Start of this round, its lead included.
    started: Duration,
    /// Time of the last row.
    last: Duration,
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
            rows: match trace.repeat {
                0 => None,
                _ => Some(Rows::open(&trace.source, CLIENTS_MAX)?),
            },
            source: trace.source.clone(),
            speed: trace.speed,
            scale: trace.scale,
            rounds_left: trace.repeat.saturating_sub(1),
            lead: None,
            started: Duration::ZERO,
            last: Duration::ZERO,
            clients: trace.clients.len(),
        })
    }

    fn next_row(&mut self) -> Result<Option<PlayedRow>, TraceError> {
        loop {
            let Some(rows) = &mut self.rows else {
                return Ok(None);
            };
            if let Some(row) = rows.next_row()? {
                if row.client >= self.clients {
                    let problem = format!("has a client {:?} that was not there before", row.name);
                    return Err(rows.error(problem));
                }
                let since = Duration::try_from_secs_f64(row.time_s / self.speed);
                let since = since.unwrap_or(Duration::MAX);
                self.lead.get_or_insert(since);
                self.last = self.started.saturating_add(since);
                return Ok(Some(PlayedRow {
                    at: self.last,
                    client: row.client,
                    wants: (row.wants * self.scale).min(Amount::MAX.get()),
                }));
            }
            // A round without length would repeat all its rows at the same moment.
            let lead = self.lead.unwrap_or_default();
            let next = self.last.saturating_sub(lead);
            if self.rounds_left == 0 || next == self.started {
                self.rows = None;
            } else {
                self.rounds_left -= 1;
                self.started = next;
                rows.again(&self.source)?;
            }
        }
    }
}

/// Ends after an error: the trace was valid when the scenario was read, and has changed since.
impl Iterator for TraceFeed {
    type Item = Result<PlayedRow, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row();
        if row.is_err() {
            self.rows = None;
        }
        row.transpose()
    }
}

#[cfg(test)]
mod tests;
