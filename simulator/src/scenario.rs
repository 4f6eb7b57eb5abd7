//! What is simulated: plain data, checked, with nothing left to look up.
//!
//! Files are read by `read` and written by `write`, traces by `crate::trace`. Whoever has a `Scenario` has one that makes
//! sense: names are resolved to indices, parents stand before their children, every probability is
//! one, every amount is finite and not negative.

pub mod demand;
pub mod fault;
pub mod read;
pub mod usage;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorward_engine::template::{Template, Templates};

use crate::recording::Checker;
use crate::scenario::demand::Demand;
use crate::scenario::fault::{Event, Fault};
use crate::scenario::usage::Usage;

/// The most nodes of a tree.
pub const NODES_MAX: usize = 10_000;

/// The most clients, all groups together.
pub const CLIENTS_MAX: usize = 5_000_000;

/// A whole simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// For people; also the name of the files that are written.
    pub name: String,
    /// What it is for, in a sentence or two.
    pub description: String,
    /// All chance comes from it.
    pub seed: u64,
    /// How long it is played.
    pub duration: Duration,
    /// How often everything is measured.
    pub sample_every: Duration,
    /// From when on checkers judge averages: the first learning mode is over.
    pub settled_after: Duration,
    /// What the root's templates are at the start.
    pub templates: Templates,
    /// The tree: the root first, parents before their children.
    pub nodes: Vec<Node>,
    /// Who asks.
    pub clients: Vec<ClientGroup>,
    /// What is between them.
    pub network: Network,
    /// How servers are set up.
    pub servers: Servers,
    /// How long clients wait before they send news.
    pub client_gaps: ClientGaps,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
    /// From then on nothing goes wrong: what is down comes back, nothing is lost or doubled, no fault
    /// begins, and nobody wants anything else any more but by a fault that says so. Absent: never.
    pub heal_at: Option<Duration>,
    /// At these times everybody must have what is right.
    pub right_at: Vec<Duration>,
    /// What must hold.
    pub limits: Limits,
}

/// The time after the first learning mode until averages are judged, if nothing else is said.
const SETTLES_FOR: Duration = Duration::from_secs(30);

impl Scenario {
    /// The nodes that have none below them.
    pub fn leaves(&self) -> Vec<usize> {
        let parents: BTreeSet<usize> = self.nodes.iter().filter_map(|it| it.parent).collect();
        let all = 0..self.nodes.len();
        all.filter(|node| !parents.contains(node)).collect()
    }

    /// From when on averages are judged, if nothing else is said: some time after the first learning
    /// mode, but within the first half.
    pub fn settled_by_default(&self) -> Duration {
        settled_by_default(&self.clients, &self.templates, self.duration)
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

fn settled_by_default(
    clients: &[ClientGroup],
    templates: &Templates,
    duration: Duration,
) -> Duration {
    let learning = |group: &ClientGroup| {
        let learning = |usage: &Usage| {
            let template = templates.find(&usage.resource)?;
            Some(template.algorithm.learning_mode_duration)
        };
        group.usages().filter_map(learning).max()
    };
    let learning = clients.iter().filter_map(learning).max();
    (learning.unwrap_or_default() + SETTLES_FOR).min(duration / 2)
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique.
    pub name: String,
    /// Its place among the nodes. None: this is the root, which is the first.
    pub parent: Option<usize>,
    /// How many servers stand there; at least 1. With more than one, a master that dies is succeeded
    /// after [`Servers::election`]; with one, it is back when its fault is over.
    pub candidates: u32,
}

/// Clients of one kind.
#[derive(Clone, Debug)]
pub struct ClientGroup {
    /// Each client is named by this and a number from 0; by this alone if there is only one. Those
    /// of a trace have their own names.
    pub name: String,
    /// How many.
    pub count: usize,
    /// At which nodes: the first at the first, and so on in turn.
    pub nodes: Vec<usize>,
    /// What each of them uses.
    pub first: Usage,
    /// What else each of them uses; all of different resources.
    pub also: Vec<Usage>,
    /// When they start: spread evenly over this span.
    pub start_within: Duration,
}

impl ClientGroup {
    /// All that each of them uses.
    pub fn usages(&self) -> impl Iterator<Item = &Usage> {
        std::iter::once(&self.first).chain(&self.also)
    }

    /// One of these, by its place.
    pub fn usage(&self, place: usize) -> Option<&Usage> {
        match place.checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.also.get(place),
        }
    }

    /// The name of the client of that number.
    pub fn client_name(&self, number: usize) -> String {
        match &self.first.demand {
            Demand::Trace(trace) => trace
                .clients
                .get(number)
                .map_or_else(|| format!("{}-{number}", self.name), Clone::clone),
            _ if self.count == 1 => self.name.clone(),
            _ => format!("{}-{number}", self.name),
        }
    }
}

/// How long messages take, and what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Between clients and servers, unless a node has its own way.
    pub clients: Link,
    /// Between servers, unless a node has its own way.
    pub servers: Link,
    /// Between clients and the servers of these nodes, instead.
    pub at: BTreeMap<usize, Link>,
    /// Between the servers of these nodes and their parents, instead.
    pub above: BTreeMap<usize, Link>,
}

impl Network {
    /// Between clients and the servers of a node, by its place.
    pub fn to_clients(&self, node: u32) -> Link {
        let own = self.at.get(&(node as usize));
        own.copied().unwrap_or(self.clients)
    }

    /// Between the servers of a node, by its place, and its parent.
    pub fn to_parent(&self, node: u32) -> Link {
        let own = self.above.get(&(node as usize));
        own.copied().unwrap_or(self.servers)
    }
}

/// One kind of way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// How long a message takes, one way.
    pub latency: Latency,
    /// The part of messages that are lost, 0…1. On streams between servers what is lost comes late
    /// (it is sent again after a second), as it does with TCP.
    pub loss: f64,
    /// The part of messages that arrive twice, 0…1. Not on streams.
    pub duplication: f64,
}

/// A distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always the same.
    Constant(Duration),
    /// All between two alike.
    Uniform(Duration, Duration),
    /// A least one, plus an exponential tail of that mean.
    Exponential {
        /// The least.
        least: Duration,
        /// The mean of what is added.
        mean: Duration,
    },
}

/// How servers are set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Servers {
    /// As the flag `--refresh-floor`.
    pub refresh_floor: Duration,
    /// As the flag `--push-round`.
    pub push_round: Duration,
    /// How servers ask their parents.
    pub way_up: WayUp,
    /// From when a master is gone to when its successor serves: between these two.
    pub election: (Duration, Duration),
}

/// How long every client waits after a request before it says, earlier than it was to refresh, that it
/// wants something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientGaps {
    /// While it does not know whether the server tells if it decided.
    pub early: Duration,
    /// Towards a server that tells.
    pub news: Duration,
}

/// How servers ask their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayUp {
    /// On a stream, on which both sides tell what changes.
    Stream,
    /// By calls.
    Poll,
}

/// What must hold; absent: it is measured and not judged. Parts are 0…1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The largest part of the capacity that clients may be able to use beyond it, at any instant.
    pub overshoot_max: Option<f64>,
    /// How many answers servers may give that are not the master of their node, or not any more.
    pub mastership_max: Option<f64>,
    /// The largest part by which what a node's holders may use exceeds what its own lease lets it.
    pub nesting_max: Option<f64>,
    /// The largest distance of clients from the ideal at a time at which all must be right, as a part
    /// of what there is to have.
    pub rest_max: Option<f64>,
    /// The mean distance of clients from the ideal, as a part of what there is to have.
    pub unfairness_max: Option<f64>,
    /// The least mean part of what could be used that is used.
    pub utilisation_min: Option<f64>,
    /// The longest time from a change of demand to allocations within 1 % of the ideal.
    pub convergence_max: Option<Duration>,
    /// The longest time a client that wants something has nothing, though there is something for it.
    pub starvation_max: Option<Duration>,
    /// The longest time from when a client without a lease could reach its server again to its next
    /// lease.
    pub comeback_max: Option<Duration>,
    /// How many clients that lost their server may be without a lease at the end.
    pub not_back_max: Option<f64>,
    /// The most that clients may use in safe mode all at once, as a part of the capacity, when each of
    /// them has been told its safe capacity since the last one joined, whatever it wants.
    pub safe_use_max: Option<f64>,
    /// How many requests a client may send within a second, for leases and for who the master is.
    pub requests_max: Option<f64>,
    /// How often per minute a client's grant may turn (up after down, or down after up) by more than
    /// 1 % while nobody's demand changes.
    pub oscillation_max: Option<f64>,
}

impl Limits {
    /// That of a checker, in the unit of its verdicts. None: it is not judged.
    pub fn of(&self, checker: Checker) -> Option<f64> {
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        match checker {
            Checker::Overshoot => self.overshoot_max,
            Checker::Nesting => self.nesting_max,
            Checker::Fairness => self.unfairness_max,
            Checker::Utilisation => self.utilisation_min,
            Checker::Convergence => seconds(self.convergence_max),
            Checker::Starvation => seconds(self.starvation_max),
            Checker::Oscillation => self.oscillation_max,
            Checker::Mastership => self.mastership_max,
            Checker::SettledFairness => self.rest_max,
            Checker::Comeback => seconds(self.comeback_max),
            Checker::NotBack => self.not_back_max,
            Checker::SafeUse => self.safe_use_max,
            Checker::Requests => self.requests_max,
        }
    }
}
