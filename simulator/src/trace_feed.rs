//! A trace as a simulation plays it: in time and amount as the scenario wants it, and as often.
//!
//! It was read once before the simulation, so that whatever is wrong with it is known; here it is read again, row by row.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_trace::{Rows, TraceError, TraceSource};

use crate::scenario::CLIENTS_MAX;
use crate::scenario::demand::Trace;

/// From a time on, a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayedRow {
    /// From the start of the simulation.
    pub at: Duration,
    /// Its place among [`Trace::clients`].
    pub client: usize,
    /// How much.
    pub wants: f64,
}

/// The rows of a trace as it is played: in time and amount as the scenario wants it, and as often.
/// A round starts where the one before it ended: its first row is when the last one was.
#[derive(Debug)]
pub struct TraceFeed {
    source: TraceSource,
    /// None: it is over.
    rows: Option<Rows>,
    speed: f64,
    scale: f64,
    rounds_left: u32,
    /// When the first row is, from the start of a round: later rounds begin with it.
    lead: Option<Duration>,
    /// When this round began, its lead included.
    started: Duration,
    /// When the last row was.
    last: Duration,
    clients: usize,
}

impl TraceFeed {
    /// Begins a trace.
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
            // A round that takes no time would be followed by as many others as are wanted, at one
            // and the same moment.
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

/// Ends after an error: the trace was valid when the scenario was read, and no longer is.
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
