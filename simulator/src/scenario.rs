//! Scenarios: plain, checked data, with nothing left to look up.
//!
//! Files are read in two steps. Serde reads typed values (`forms`); then names become places (`nodes`), and
//! fields are completed and checked against one another (`read`). Fields called `…_file` have what a file says until
//! then, and are empty after it. A `Scenario` makes sense: parents stand before their children, every probability is
//! one, every amount is finite and not negative.

pub mod clients;
pub mod demand;
pub mod fault;
pub mod forms;
pub mod network;
pub mod nodes;
pub mod read;
pub mod settings;
pub mod templates;
pub mod usage;

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_engine::templates::{Template, Templates};
use serde::Deserialize;
use serde_json::Value;

pub use crate::scenario::clients::{ClientGroup, Connection};
pub use crate::scenario::demand::Demand;
pub use crate::scenario::demand::demand_player::{DemandChange, DemandPlayer};
pub use crate::scenario::fault::{Event, Fault};
pub use crate::scenario::forms::Span;
use crate::scenario::forms::{Fields, Step, Time, one, seconds, unsaid, unsaid_step};
pub use crate::scenario::network::{Latency, Link, Links, NEAR, Network};
pub use crate::scenario::nodes::Node;
use crate::scenario::nodes::{TreeForm, all_named};
pub use crate::scenario::settings::{ClientGaps, Limits, Servers};
pub use crate::scenario::usage::{Adaptive, Limiter, Usage};

/// The most nodes of a tree.
pub const NODES_MAX: usize = 10_000;

/// The most clients, all groups together.
pub const CLIENTS_MAX: usize = 5_000_000;

/// Most rows of a trace: 2.4 GB of memory.
pub const TRACE_ROWS_MAX: usize = 100_000_000;

/// The longest time in a scenario: a year.
pub const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A whole simulation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scenario {
    /// The name of the scenario. Absent: the name of the file.
    #[serde(default)]
    pub name: String,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// The duration of the simulation.
    #[serde(default = "seconds::<600>")]
    pub duration: Step,
    /// The seed of all chance. The same seed gives the same run.
    #[serde(default = "one::<u64>")]
    pub seed: u64,
    /// The time between two measurements; at most 20,000,000 samples of all nodes together. Absent: 5 s.
    #[serde(default = "unsaid_step")]
    pub sample_every: Step,
    /// From this time on nothing goes wrong. Servers come back, no message is lost or doubled, no fault begins, and
    /// demand changes by `surge` and `demand` only. Absent: never.
    pub heal_at: Option<Time>,
    /// At these times clients must have what is right: see the limit `settled_unfairness`.
    #[serde(default)]
    pub right_at: Vec<Time>,
    /// Faults may concern no client, or fewer clients than they say. Files that chance wrote say so.
    #[serde(default)]
    pub idle_faults: bool,
    /// The templates of the root at the start.
    #[serde(skip)]
    pub templates: Templates,
    /// The templates of the root at the start, as in a template file; or the name of one.
    #[serde(rename = "templates")]
    #[cfg_attr(test, schemars(with = "schema_tests::TemplatesForm"))]
    pub templates_file: Value,
    /// The servers: nodes in nodes, or a list. Absent: one node, `root`.
    #[serde(rename = "tree", default, with = "TreeForm")]
    pub nodes: Vec<Node>,
    /// Groups of clients.
    pub clients: Vec<ClientGroup>,
    /// The links between clients and servers.
    #[serde(default)]
    pub network: Network,
    /// The settings of servers.
    #[serde(default)]
    pub servers: Servers,
    /// The settings of clients.
    #[serde(default)]
    pub client_gaps: ClientGaps,
    /// Faults, each with its time.
    #[serde(skip)]
    pub faults: Vec<Fault>,
    /// Faults, each with its time.
    #[serde(default, rename = "faults")]
    #[cfg_attr(test, schemars(with = "Vec<schema_tests::FaultFile>"))]
    pub fault_files: Vec<Fields>,
    /// Averages are judged from this time on. Absent: the longest learning mode and 30 s, but at most half of the
    /// duration.
    #[serde(default = "unsaid")]
    pub settled_after: Time,
    /// The limits that verdicts judge by.
    #[serde(default)]
    pub limits: Limits,
}

/// The default time after the first learning mode until averages are judged.
const SETTLES_FOR: Duration = Duration::from_secs(30);

impl Scenario {
    /// The default of `settled_after`: some time after the first learning mode, but within the first half.
    pub fn settled_by_default(&self) -> Duration {
        let used = self.clients.iter().flat_map(ClientGroup::usages);
        let used = used.filter_map(|usage| self.templates.find(&usage.resource));
        let learning = used.map(|template| template.algorithm.learning_mode_duration);
        let longest = learning.max().unwrap_or_default();
        (longest + SETTLES_FOR).min(self.duration.0 / 2)
    }

    /// All events of faults.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        let choices = self.faults.iter().flat_map(|fault| &fault.choices);
        choices.map(|(_, event)| event)
    }

    /// All templates that are ever in force: those at the start, and those of every edit.
    pub fn templates_ever(&self) -> impl Iterator<Item = &Template> {
        let edits = self.events().filter_map(|event| match event {
            Event::Edit { templates, .. } => Some(templates),
            _ => None,
        });
        let all = edits.chain([&self.templates]).flat_map(Templates::iter);
        all.map(AsRef::as_ref)
    }
}

/// Returns the nodes without children.
pub fn leaves_of(nodes: &[Node]) -> Vec<usize> {
    let parents: BTreeSet<usize> = nodes.iter().filter_map(|it| it.parent).collect();
    let all = 0..nodes.len();
    all.filter(|node| !parents.contains(node)).collect()
}

#[cfg(test)]
mod schema_tests;
