//! How a node is set up.

use std::time::Duration;

use crate::admission::limits::Limits;
use crate::id::Incarnation;
use doorward_time::tolerance::Tolerance;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's name; unique in the tree.
    pub name: String,
    /// Whether capacity is leased from a parent. If not, this is the root, and templates say what
    /// there is.
    pub has_parent: bool,
    /// Identity of this process, drawn anew at each start.
    pub incarnation: Incarnation,
    /// The only chance the engine is handed: it keys hashing and spreads refreshes.
    pub seed: u64,
    /// Requests of one holder for one resource that come faster than this get their current lease
    /// again, without a new decision. Zero: every request is decided.
    pub refresh_floor: Duration,
    /// Largest error of the node's clock.
    pub clock_tolerance: Tolerance,
    /// Limits on resources, leases and requests.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "root".to_owned(),
            has_parent: false,
            incarnation: Incarnation::FIRST,
            seed: 0,
            refresh_floor: Duration::from_secs(1),
            clock_tolerance: Tolerance::default(),
            limits: Limits::default(),
        }
    }
}
