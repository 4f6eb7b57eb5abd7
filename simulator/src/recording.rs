//! A recording: everything that is known of one run, as plain data. Its field names are an interface (JSON).
//!
//! Times are seconds since the start, amounts are in the resource's own unit, parts are from 0 to 1.

mod client_spread;
mod mark;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use client_spread::{ClientSpread, Percentiles};
pub use mark::{Mark, MarkKind};

/// Largest number of clients of a resource whose figures are recorded by name.
pub const CLIENT_FIGURES_MAX: usize = 1_000;

/// Defines an enum whose variants have names, also in JSON, and lists them all.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$more:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$more])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// All of them, in the order in which reports list them.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns its name in recordings and reports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}
pub(crate) use named;

/// Everything that is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Name of the scenario.
    pub scenario: String,
    /// Purpose of the scenario.
    pub description: String,
    /// Command that plays the same run again. Empty: unknown.
    pub command: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Duration of the run.
    pub duration_s: f64,
    /// Time between two samples.
    pub sample_every_s: f64,
    /// Time from which averages are taken.
    pub settled_after_s: f64,
    /// Nodes of the tree, the root first.
    pub nodes: Vec<NodeInfo>,
    /// Number of clients.
    pub clients: usize,
    /// Measurements of each resource, sorted by id.
    pub resources: Vec<ResourceRecording>,
    /// Faults and changes from outside, in order of time.
    pub marks: Vec<Mark>,
    /// Findings of the checkers.
    pub verdicts: Vec<Verdict>,
    /// Amount of work done.
    pub work: Work,
    /// Hash of all decisions and deliveries: equal for equal runs.
    pub trace_hash: String,
}

/// A node of the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Index of its parent among the nodes. Absent: it is the root.
    pub parent: Option<usize>,
    /// Number of nodes above it.
    pub level: usize,
    /// Number of clients attached to it.
    pub clients: usize,
    /// Most requests in one second, from clients and child servers.
    pub requests_most: u64,
    /// Start of the first second with that many requests.
    pub requests_most_at_s: f64,
}

/// Measurements of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceRecording {
    /// Its id.
    pub resource: String,
    /// Its algorithm, as templates spell it.
    pub algorithm: String,
    /// Lease length by the templates at the start. Absent: not recorded.
    pub lease_length_s: Option<f64>,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// Clients that are recorded over time: up to 50, spread over all.
    pub clients: Vec<ClientSeries>,
    /// Averages and extremes from `settled_after_s` on. Peaks and overshoot cover the whole run.
    pub figures: Figures,
    /// Means of single clients from then on: the thousand clients with the largest shortage, largest first.
    /// Clients that never wanted anything are left out.
    pub client_figures: Vec<ClientFigures>,
}

/// Sums over all clients of a resource at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time of the sample.
    pub at_s: f64,
    /// Capacity by the template.
    pub capacity: f64,
    /// Sum of wants.
    pub demand: f64,
    /// Sum of valid leases.
    pub granted: f64,
    /// Use without a lease, as the clients' modes allow it.
    pub fallback: f64,
    /// Part of the fallback that is used in safe mode.
    pub safe: f64,
    /// Use by leases: for each client the smaller of its wants and its lease.
    pub used: f64,
    /// Usable amount: the smaller of demand and capacity.
    pub usable: f64,
    /// Largest sum of valid leases at any instant since the previous sample.
    pub peak: f64,
    /// Half the sum of all clients' distances from their ideal shares.
    pub unfair: f64,
    /// Clients with a valid lease.
    pub holders: usize,
    /// Clients that want something.
    pub wanting: usize,
    /// Clients whose lease is for less than they want, by more than a hundredth.
    pub short: usize,
    /// State of each node, in the order of the nodes.
    pub nodes: Vec<NodeSample>,
}

/// A node at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSample {
    /// Amount that it may hand out by its own lease; at the root the capacity.
    pub has: f64,
    /// Sum of its holders' wants.
    pub wants: f64,
    /// Sum of the newest leases of its holders.
    pub granted: f64,
    /// Largest amount that may be in use by leases that it granted.
    pub reserved: f64,
    /// True if it has a working master.
    pub is_up: bool,
    /// True if it is in learning mode.
    pub is_learning: bool,
}

/// One client over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSeries {
    /// Its name.
    pub client: String,
    /// Name of its node.
    pub node: String,
    /// Samples at the times of the resource's samples.
    pub samples: Vec<ClientSample>,
}

/// One client at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSample {
    /// Amount that it wants.
    pub wants: f64,
    /// Amount of its valid lease.
    pub granted: f64,
    /// Amount that it may use without a lease.
    pub fallback: f64,
    /// Amount that the ideal would give it.
    pub ideal: f64,
}

/// Averages and extremes. `report/figures.rs` says in full what each means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Mean part of the usable amount that was granted to clients that could use it.
    pub utilisation: f64,
    /// Part of all wants that was granted.
    pub demand_met: f64,
    /// Part of the clients' time of wanting in which they had less than they wanted.
    pub clients_short: f64,
    /// Part of the time in which demand exceeded capacity.
    pub scarce: f64,
    /// Mean part of the capacity that was granted.
    pub granted_of_capacity: f64,
    /// Largest sum of leases at any instant, as a part of the capacity at that instant.
    pub peak_of_capacity: f64,
    /// The same sum with use without a lease added.
    pub peak_with_fallback: f64,
    /// Largest use in safe mode at any instant, as a part of the capacity at that instant.
    pub peak_of_safe_use: f64,
    /// Time during which more was granted than the capacity.
    pub overshoot_s: f64,
    /// Mean of `unfair`, as a part of the usable amount.
    pub unfairness: f64,
    /// Part of the time with a distance from the ideal above 1 % of the usable amount.
    pub restless: f64,
    /// Changes of demand or capacity after which convergence was measured; overlapping changes are one.
    pub shifts: usize,
    /// Longest time to convergence after a change.
    pub convergence_max_s: f64,
    /// Mean time to convergence.
    pub convergence_mean_s: f64,
    /// Time since the last change that had not converged when the run ended.
    pub unfinished_s: f64,
    /// Longest time that a client had nothing although capacity was free for it.
    pub starvation_max_s: f64,
    /// Changes of direction per client and minute while no demand changed.
    pub oscillation_per_minute: f64,
    /// Number of times that a client without a server and a lease got a lease again.
    pub comebacks: usize,
    /// Median time to that lease, since the client could reach its server again.
    pub comeback_median_s: f64,
    /// Longest time to that lease.
    pub comeback_max_s: f64,
    /// Clients that had no lease at the end.
    pub not_back: usize,
    /// Loss of utilisation by the clients' reason to wait. The parts add up to the loss.
    pub waits: Waits,
    /// Distribution over clients. Absent: not measured, or no client wanted anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<ClientSpread>,
}

named! {
    /// Reason for which a client that wants more than it may use waits.
    #[derive(Default, PartialOrd, Ord)]
    Wait {
        /// It asked a moment ago, and keeps its own gap before it reports changed wants.
        Gap = "gap",
        /// Its request or the answer is under way.
        Answer = "answer",
        /// The server answered without a decision because it had just decided for this client.
        Floor = "floor",
        /// Others hold the capacity until their leases shrink.
        Others = "others",
        /// The server, or one above it, is in learning mode.
        Learning = "learning",
        /// The server has nothing to give yet, or refused.
        #[default]
        Refused = "refused",
        /// The answer gave it its full share. It learns of more with its next request.
        Share = "share",
        /// No server answers.
        NoServer = "no_server",
    }
}

/// Parts of the usable amount that were not used, by the reason for which clients waited.
pub type Waits = BTreeMap<Wait, f64>;

/// Means of one client over the time of which averages are taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Its name.
    pub client: String,
    /// Name of its node.
    pub node: String,
    /// Amount that it wanted.
    pub wanted: f64,
    /// Part of that amount that valid leases gave it.
    pub got: f64,
    /// Amount that the ideal would have given it.
    pub ideal: f64,
}

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

/// Amount of work done in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Answered requests of clients.
    pub refreshes: u64,
    /// Messages sent, of all kinds.
    pub messages: u64,
    /// Messages lost.
    pub lost: u64,
    /// Events played.
    pub events: u64,
}

/// Returns a part of a whole, or a default if the whole is nothing.
pub(crate) fn part(sum: f64, of: f64, of_nothing: f64) -> f64 {
    if of > 0.0 { sum / of } else { of_nothing }
}
