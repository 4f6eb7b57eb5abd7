//! What came of a simulation: what reports are made of. Plain data; its field names are an
//! interface (JSON).
//!
//! Times are seconds from the start, amounts in the resource's own unit, parts 0…1.

mod mark;
mod verdict;

use serde::{Deserialize, Serialize};

pub use mark::{Mark, MarkKind, Nature};
pub use verdict::{Checker, LimitSide, Verdict};

/// Of so many clients of each resource it is recorded how they did.
pub const CLIENT_FIGURES_MAX: usize = 1_000;

/// Everything that is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The scenario's name.
    pub scenario: String,
    /// What it is for.
    pub description: String,
    /// The command that makes it again. Empty: `doorward-sim run` with its name and seed does.
    #[serde(default)]
    pub command: String,
    /// Its seed.
    pub seed: u64,
    /// How long it was played.
    pub duration_s: f64,
    /// How often it was measured.
    pub sample_every_s: f64,
    /// From when on averages are taken.
    pub settled_after_s: f64,
    /// The tree, the root first.
    pub nodes: Vec<NodeInfo>,
    /// How many clients there are.
    pub clients: usize,
    /// Each resource for itself, sorted by id.
    pub resources: Vec<ResourceRecording>,
    /// What happened from outside, in order.
    pub marks: Vec<Mark>,
    /// What the checkers found.
    pub verdicts: Vec<Verdict>,
    /// How much was done.
    pub work: Work,
    /// A hash of everything that was decided and delivered: equal for equal runs.
    pub trace_hash: String,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Its parent's place among the nodes. Absent: the root.
    pub parent: Option<usize>,
    /// Nodes above it.
    pub level: usize,
    /// Clients attached to it.
    pub clients: usize,
    /// The most requests that it got in one second, of clients and child servers.
    #[serde(default)]
    pub requests_most: u64,
    /// The second in which that was first, by its beginning.
    #[serde(default)]
    pub requests_most_at_s: f64,
}

/// What was measured of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceRecording {
    /// Its id.
    pub resource: String,
    /// As templates spell it.
    pub algorithm: String,
    /// How long its leases last by the templates at the start. Absent: not known.
    #[serde(default)]
    pub lease_length_s: Option<f64>,
    /// In order of time.
    pub samples: Vec<Sample>,
    /// Those that are shown one by one: up to 50, spread over all.
    pub clients: Vec<ClientSeries>,
    /// Averages and extremes, from `settled_after_s` on; what was granted beyond the capacity, of the
    /// whole time.
    pub figures: Figures,
    /// How clients did from then on: the thousand to whom most was missing, worst first. Those that
    /// never wanted anything are left out.
    #[serde(default)]
    pub client_figures: Vec<ClientFigures>,
}

/// All clients of a resource at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub at_s: f64,
    /// What the template says there is.
    pub capacity: f64,
    /// What clients want together.
    pub demand: f64,
    /// What they may use by valid leases.
    pub granted: f64,
    /// What they may use besides, in their modes, without a lease.
    pub fallback: f64,
    /// The part of that which is used in safe mode.
    #[serde(default = "unknown")]
    pub safe: f64,
    /// What they do use: of each the smaller of what it wants and may.
    pub used: f64,
    /// What could be used: the smaller of demand and capacity.
    pub usable: f64,
    /// The most that was granted at any instant since the last sample.
    pub peak: f64,
    /// Half the sum of the distances of all clients from what the ideal gives them.
    pub unfair: f64,
    /// Clients with a valid lease.
    pub holders: usize,
    /// Clients that want something.
    #[serde(default)]
    pub wanting: usize,
    /// Those of them whose lease is for less than they want, by more than a hundredth.
    #[serde(default)]
    pub short: usize,
    /// What each node has and hands out, in the order of the nodes.
    pub nodes: Vec<NodeSample>,
}

/// A node at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSample {
    /// What it may hand out by its own lease; at the root the capacity.
    pub has: f64,
    /// What its holders want.
    pub wants: f64,
    /// What the newest leases of its holders say.
    pub granted: f64,
    /// The most that may be in use by what it handed out.
    pub reserved: f64,
    /// Whether it is up, and master.
    pub is_up: bool,
    /// Whether it is in learning mode.
    pub is_learning: bool,
}

/// One client over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSeries {
    /// Its name.
    pub client: String,
    /// The name of its node.
    pub node: String,
    /// In order of time, as the resource's samples.
    pub samples: Vec<ClientSample>,
}

/// One client at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSample {
    /// What it wants.
    pub wants: f64,
    /// What it may use by a valid lease.
    pub granted: f64,
    /// What it may use without one.
    pub fallback: f64,
    /// What the ideal would give it.
    pub ideal: f64,
}

/// Averages and extremes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The mean part of what could be used that was granted to those who could use it.
    pub utilisation: f64,
    /// Of all that clients wanted, the part that was granted to them.
    #[serde(default = "unknown")]
    pub demand_met: f64,
    /// Of all the time in which clients wanted something, the part in which they had less.
    #[serde(default = "unknown")]
    pub clients_short: f64,
    /// The part of the time in which more was wanted than there was.
    #[serde(default = "unknown")]
    pub scarce: f64,
    /// The mean part of the capacity that was granted.
    pub granted_of_capacity: f64,
    /// The most that was granted at any instant, as a part of the capacity then.
    pub peak_of_capacity: f64,
    /// The same, and what clients used without a lease besides.
    #[serde(default = "unknown")]
    pub peak_with_fallback: f64,
    /// The most that clients used in safe mode at any instant, as a part of the capacity then. It is no
    /// part of the peak, nor of an overshoot.
    #[serde(default = "unknown")]
    pub peak_of_safe_use: f64,
    /// How long more was granted than there is.
    pub overshoot_s: f64,
    /// The mean of `unfair`, as a part of what could be used.
    pub unfairness: f64,
    /// The part of the time in which clients were further from the ideal than 1 % of what could be
    /// used.
    #[serde(default = "unknown")]
    pub restless: f64,
    /// Changes of demand or capacity after which convergence was measured; those that overlap are one.
    pub shifts: usize,
    /// The longest and the mean time to convergence after one.
    pub convergence_max_s: f64,
    /// The mean.
    pub convergence_mean_s: f64,
    /// How long it had not been at rest since such a change when everything ended.
    #[serde(default)]
    pub unfinished_s: f64,
    /// The longest time that a client had nothing though there was something for it.
    pub starvation_max_s: f64,
    /// Turns per client and minute while nobody's demand changed.
    pub oscillation_per_minute: f64,
    /// How often a client that had lost its server, and its lease, had one again.
    #[serde(default)]
    pub comebacks: usize,
    /// The median time of that, from when it could be.
    #[serde(default = "unknown")]
    pub comeback_median_s: f64,
    /// The longest.
    #[serde(default = "unknown")]
    pub comeback_max_s: f64,
    /// Clients that had none at the end.
    #[serde(default)]
    pub not_back: usize,
    /// What utilisation misses to all, by what clients waited for. They add up to that.
    #[serde(default)]
    pub waits: Waits,
}

/// Parts of what could be used that was not, by what those waited for who wanted more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// The client's own gap before it says that it wants something else.
    pub gap: f64,
    /// The answer to its request.
    pub answer: f64,
    /// The server's refresh floor.
    pub floor: f64,
    /// Others, who have yet to shrink.
    pub others: f64,
    /// Learning mode.
    pub learning: f64,
    /// A server that has nothing to give yet, or refuses.
    pub refused: f64,
    /// The next refresh of a client that was answered that it has its share.
    pub share: f64,
    /// A server.
    pub no_server: f64,
}

impl Waits {
    /// Nothing is missing.
    pub const NONE: Self = Self {
        gap: 0.0,
        answer: 0.0,
        floor: 0.0,
        others: 0.0,
        learning: 0.0,
        refused: 0.0,
        share: 0.0,
        no_server: 0.0,
    };
}

/// Not known: a recording from before they were measured.
impl Default for Waits {
    fn default() -> Self {
        Self {
            gap: unknown(),
            answer: unknown(),
            floor: unknown(),
            others: unknown(),
            learning: unknown(),
            refused: unknown(),
            share: unknown(),
            no_server: unknown(),
        }
    }
}

/// What a recording from before the figure was measured has for it: no number.
const fn unknown() -> f64 {
    f64::NAN
}

/// How one client did: means over the time of which averages are taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientFigures {
    /// Its name.
    pub client: String,
    /// The name of its node.
    pub node: String,
    /// What it wanted.
    pub wanted: f64,
    /// What it got of that by valid leases.
    pub got: f64,
    /// What the ideal would have given it.
    pub ideal: f64,
    /// Of the time in which it wanted something, the part in which it had less.
    pub short: f64,
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Requests of clients that were answered.
    pub refreshes: u64,
    /// Messages that were sent, of whatever kind.
    pub messages: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Events that were played.
    pub events: u64,
}
