//! The demand that the demonstration follows: a trace, held in memory, for it starts over at its end.

use std::path::Path;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::HolderName;
use doorward_trace::{Row, Trace, TraceError, TraceSource};

/// The most clients a demo shows.
pub(super) const CLIENTS_MAX: usize = 100;

/// The most rows that are held: some 100 MB.
const ROWS_MAX: usize = 4_000_000;

/// The trace that comes with the program.
const BUILT_IN: TraceSource = TraceSource::BuiltIn {
    name: "demo.csv",
    text: include_str!("../../demo/demo.csv"),
};

/// Demand of each client over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DemandTrace {
    /// In order of appearance.
    pub clients: Vec<HolderName>,
    /// In order of time.
    pub steps: Vec<DemandStep>,
}

/// From a time on, a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DemandStep {
    /// From the start of the trace.
    pub at: Duration,
    /// Index into [`DemandTrace::clients`].
    pub client: usize,
    /// Per second.
    pub wants: Amount,
}

impl DemandTrace {
    /// The trace of a file, or the one that comes with the program.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is invalid, has no rows, or more rows or clients than there may be.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, TraceError> {
        let source = path.map_or(BUILT_IN, |path| TraceSource::File(path.to_owned()));
        let Trace { clients, rows } = Trace::read(&source, CLIENTS_MAX, ROWS_MAX)?;
        // The reader refuses what is no name, no amount and no time.
        let step = |row: Row| DemandStep {
            at: Duration::from_secs_f64(row.time_s),
            client: row.client,
            wants: Amount::new(row.wants).unwrap_or_default(),
        };
        Ok(Self {
            clients: clients.iter().flat_map(|it| HolderName::new(it)).collect(),
            steps: rows.into_iter().map(step).collect(),
        })
    }

    /// When the last change happens.
    pub(super) fn length(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |step| step.at)
    }

    /// Returns the total demand, on average over time.
    pub(super) fn mean_demand(&self) -> f64 {
        let mut wants = vec![0.0; self.clients.len()];
        let (mut area, mut at) = (0.0, Duration::ZERO);
        for step in &self.steps {
            let total: f64 = wants.iter().sum();
            area += total * step.at.saturating_sub(at).as_secs_f64();
            at = step.at;
            if let Some(wants) = wants.get_mut(step.client) {
                *wants = step.wants.get();
            }
        }
        let length = self.length().as_secs_f64();
        if length > 0.0 {
            area / length
        } else {
            wants.iter().sum()
        }
    }
}

#[cfg(test)]
mod tests;
