//! What a client uses of a resource, and how it keeps to what it may use.

use std::time::Duration;

use doorward_client::limiter::demand::AdaptiveWants;
use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;

use crate::scenario::demand::Demand;
use crate::scenario::fault::Span;

/// A resource that each client of a group uses.
#[derive(Clone, Debug)]
pub struct Usage {
    /// What they ask for.
    pub resource: ResourceId,
    /// Their priority.
    pub priority: i64,
    /// What they use without a lease.
    pub mode: Mode,
    /// What they want over time. With a limiter: the load that comes to it.
    pub demand: Demand,
    /// What keeps their use within the lease. Absent: a client uses all that it may and wants, at once.
    pub limiter: Option<Limiter>,
}

/// A limiter of the client library, and what comes to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limiter {
    /// Which one, and what each piece of work is.
    pub work: Work,
    /// The client asks for what it measures at its limiter. Absent: for its load.
    pub adaptive: Option<AdaptiveWants>,
}

/// What each piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// A request of that cost, once: so much per second is limited.
    Rate {
        /// Above 0.
        cost: f64,
    },
    /// So many permits for a time: so much at once is limited.
    Concurrency {
        /// At least 1.
        permits: u32,
        /// How long it takes.
        takes: Span,
    },
}

impl Work {
    /// How long a piece of work may last after it was admitted.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Rate { .. } => Duration::ZERO,
            Self::Concurrency { takes, .. } => takes.1,
        }
    }
}
