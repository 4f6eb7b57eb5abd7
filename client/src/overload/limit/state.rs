//! States of a limit.

/// State of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Nothing has shown a limit. Whenever it is reached, it doubles, until requests become slower. `latency`: that at
    /// a lower limit, and that limit. `most`: the limit at which that ends, because requests were slow above it a moment ago.
    Open {
        latency: Option<(f64, f64)>,
        most: f64,
    },
    /// Requests were slow, so the limit was cut.
    Falling(Cut),
    /// The limit goes to and fro between two halves.
    Steady {
        half: Half,
        /// Latency in the first half of this round, and the logarithm of the number of requests in flight.
        first: Option<(f64, f64)>,
        run: Run,
    },
}

/// A cut of the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// Number of requests in flight before it, and their latency, if it is known already.
    pub(super) before: f64,
    pub(super) latency: Option<f64>,
    /// Sum of the latencies of those requests that have ended since, and their number.
    pub(super) drained: Drained,
    /// Limit to which it doubles after the cut: a bit below that of slow requests.
    pub(super) most: f64,
    /// Limit before it.
    pub(super) back: f64,
}

/// Requests in flight before a cut that have ended since.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Drained {
    pub(super) count: f64,
    /// Sum of the logarithms of their latencies.
    pub(super) excess: f64,
    /// Number of those that were too late.
    pub(super) late: f64,
}

/// Half of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Low,
    High,
}

/// Steps in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Run {
    pub(super) grows: bool,
    pub(super) length: u32,
    /// Sum of the differences from the target.
    pub(super) sum: f64,
}

impl Half {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}
