//! Scenarios: plain, checked data, with nothing left to look up.
//!
//! Files are read in two steps. Serde reads typed values (`source`, `forms`), with the file types beside the types of
//! this module; then names become places (`names`) and fields are checked against one another (`read`). A `Scenario` makes
//! sense: parents stand before their children, every probability is one, every amount is finite and not negative.

pub mod clients;
pub mod demand;
pub mod fault;
mod forms;
mod names;
pub mod network;
pub mod nodes;
pub mod read;
pub mod settings;
mod source;
mod templates;
pub mod usage;
pub mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_engine::template::{Template, Templates};

pub use crate::scenario::clients::ClientGroup;
use crate::scenario::fault::{Event, Fault};
pub use crate::scenario::network::{Latency, Link, Network};
pub use crate::scenario::nodes::Node;
pub use crate::scenario::settings::{ClientGaps, Limits, ParentProtocol, Servers};

/// The most nodes of a tree.
pub const NODES_MAX: usize = 10_000;

/// The most clients, all groups together.
pub const CLIENTS_MAX: usize = 5_000_000;

/// A whole simulation.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The name, also of written files: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// For people.
    pub description: String,
    /// The simulated time.
    pub duration: Duration,
    /// All chance comes from it: the same seed gives the same run.
    pub seed: u64,
    /// The time between two measurements.
    pub sample_every: Duration,
    /// From then on nothing goes wrong: what is down comes back, nothing is lost or doubled, no fault begins,
    /// and demand changes by `surge` and `demand` only.
    pub heal_at: Option<Duration>,
    /// At these times clients must have what is right: see the limit `settled_unfairness`.
    pub right_at: Vec<Duration>,
    /// Faults that concern no client, or fewer than they say, are no mistake. Files that chance wrote say so.
    pub idle_faults: bool,
    /// The templates of the root at the start.
    pub templates: Templates,
    /// The servers: the root first, parents before their children.
    pub nodes: Vec<Node>,
    /// Groups of clients.
    pub clients: Vec<ClientGroup>,
    /// The links between them.
    pub network: Network,
    /// How servers are set up.
    pub servers: Servers,
    /// The gap between a request and an early refresh because of other demand.
    pub client_gaps: ClientGaps,
    /// Faults, each with its time.
    pub faults: Vec<Fault>,
    /// Averages are judged from this time on.
    pub settled_after: Duration,
    /// The limits that verdicts judge by.
    pub limits: Limits,
}

/// The default time after the first learning mode until averages are judged.
const SETTLES_FOR: Duration = Duration::from_secs(30);

impl Scenario {
    /// The nodes that have none below them.
    pub fn leaves(&self) -> Vec<usize> {
        leaves_of(&self.nodes)
    }

    /// The default of `settled_after`: some time after the first learning mode, but within the first half.
    pub fn settled_by_default(&self) -> Duration {
        let used = self.clients.iter().flat_map(ClientGroup::usages);
        let used = used.filter_map(|usage| self.templates.find(&usage.resource));
        let learning = used.map(|template| template.algorithm.learning_mode_duration);
        let longest = learning.max().unwrap_or_default();
        (longest + SETTLES_FOR).min(self.duration / 2)
    }

    /// Whether etcd is ever restored from a backup.
    pub fn restores_etcd(&self) -> bool {
        let mut events = self.faults.iter().flat_map(|fault| &fault.choices);
        events.any(|(_, event)| matches!(event, Event::Etcd { back: Some(_), .. }))
    }

    /// All templates that are ever in force: those at the start, and those of every edit.
    pub fn templates_ever(&self) -> impl Iterator<Item = &Template> {
        let events = self.faults.iter().flat_map(|fault| &fault.choices);
        let edits = events.filter_map(|(_, event)| match event {
            Event::Edit { templates } => Some(templates),
            _ => None,
        });
        let all = edits.chain([&self.templates]).flat_map(Templates::iter);
        all.map(AsRef::as_ref)
    }
}

fn leaves_of(nodes: &[Node]) -> Vec<usize> {
    let parents: BTreeSet<usize> = nodes.iter().filter_map(|it| it.parent).collect();
    let all = 0..nodes.len();
    all.filter(|node| !parents.contains(node)).collect()
}

#[cfg(test)]
mod reference_tests;
