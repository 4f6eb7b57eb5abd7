//! What a server tells about its limits: use and bound of each, and what it refused.
//!
//! Only who asks for them gets them. They are the limits of this process, master or not: a candidate has
//! connections and no leases.

use serde::Serialize;

use crate::limits::{LimitFigure, Unit};
use crate::status::{Board, Status};

/// A limit at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitStatus {
    /// As in metrics.
    pub name: &'static str,
    /// What is limited, for people.
    pub what: &'static str,
    /// The flag that sets it.
    pub flag: &'static str,
    /// What the numbers count: `count`, `bytes`, `per_second` or `millis`.
    pub unit: Unit,
    /// What is in use; of a limit for each address, template or resource, the most that one of them uses.
    /// Absent: nobody counts it.
    pub used: Option<u64>,
    /// The bound. Absent: there is none.
    pub max: Option<u64>,
    /// How often something was refused for it since the start.
    pub refused: u64,
}

impl LimitStatus {
    /// A figure, as it is told.
    pub fn of(figure: &LimitFigure) -> Self {
        let limit = figure.limit;
        Self {
            name: limit.name(),
            what: limit.what(),
            flag: limit.flag(),
            unit: limit.unit(),
            used: figure.used,
            max: figure.max,
            refused: figure.refused,
        }
    }
}

impl Status {
    /// The same, with the limits of the server.
    #[must_use]
    pub fn with_limits(self, board: &Board) -> Self {
        let figures = board.limit_figures();
        Self {
            limits: Some(figures.iter().map(LimitStatus::of).collect()),
            ..self
        }
    }
}
