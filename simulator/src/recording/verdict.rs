//! Checkers, and their findings.

use serde::{Deserialize, Serialize};

use crate::recording::named;

named! {
    /// A checker, named for the promise that it watches.
    Checker {
        /// Leases never exceed the capacity.
        Overshoot = "overshoot",
        /// Use below a node never exceeds what its parent has reserved for it, at every level of the tree.
        Nesting = "nesting",
        /// On average clients have their ideal shares.
        Fairness = "fairness",
        /// The usable amount is used.
        Utilisation = "utilisation",
        /// Soon after a change of demand or capacity all clients have their shares.
        Convergence = "convergence",
        /// A client that wants something gets something, if there is something for it.
        Starvation = "starvation",
        /// A grant does not turn up and down while no demand changes.
        Oscillation = "oscillation",
        /// Only the master decides.
        Mastership = "mastership",
        /// All clients have their shares at the times that the scenario names.
        SettledFairness = "settled fairness",
        /// A client without a lease that can reach its server again soon has a lease.
        Comeback = "comeback",
        /// Each client that lost its server has a lease at the end.
        NotBack = "not back",
        /// Use in safe mode fits into the capacity.
        SafeUse = "safe use",
        /// A client never sends too many requests.
        Requests = "requests",
    }
}

impl Checker {
    /// Returns true if its values must be at least the limit, not at most.
    pub const fn is_at_least(self) -> bool {
        matches!(self, Self::Utilisation)
    }
}

/// Finding of a checker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The checker. Recordings always have the first seven; the others if a limit asks for them or they found
    /// something.
    pub checker: Checker,
    /// Resource of the finding.
    pub resource: String,
    /// Value found, in the unit of the limit.
    pub value: f64,
    /// The limit. Absent: the value is not judged.
    pub limit: Option<f64>,
    /// True if the limit holds, or there is none.
    pub holds: bool,
    /// Time of the worst value.
    pub at_s: Option<f64>,
}
