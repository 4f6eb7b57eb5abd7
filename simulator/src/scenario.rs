//! What is simulated: plain data, checked, with nothing left to look up.
//!
//! Each field of a file is declared where the type is that holds it (`declared`): files are read (`read`) and
//! written (`write`) by these declarations, and the tables of `docs/simulator.md` are made of them
//! (`reference`). Whoever has a `Scenario` has one that makes sense: names are resolved to indices, parents stand
//! before their children, every probability is one, every amount is finite and not negative.

#[macro_use]
pub(crate) mod declared;
mod choice;
pub mod clients;
pub mod demand;
pub mod fault;
pub mod network;
pub mod nodes;
pub mod read;
pub mod reference;
pub mod settings;
mod shape;
mod templates;
pub mod usage;
pub mod write;
pub(crate) mod yaml;

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_documents::form::{At, Map};
use doorward_engine::template::{Template, Templates};

pub use crate::scenario::clients::ClientGroup;
use crate::scenario::fault::{Event, Fault};
pub use crate::scenario::network::{Latency, Link, Network};
pub use crate::scenario::nodes::Node;
use crate::scenario::read::Reader;
pub use crate::scenario::settings::{ClientGaps, Limits, ParentProtocol, Servers};
use crate::scenario::shape::{list_of, record, step, text, time, truth, whole};
use crate::scenario::usage::Usage;

/// The most nodes of a tree.
pub const NODES_MAX: usize = 10_000;

/// The most clients, all groups together.
pub const CLIENTS_MAX: usize = 5_000_000;

/// How long is played if nothing else is said.
const DURATION: Duration = Duration::from_secs(600);

/// How often is measured if nothing else is said.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The most samples of all nodes together: each takes some fifty bytes.
const NODE_SAMPLES_MAX: u128 = 20_000_000;

/// The longest name of a scenario, in bytes: names of files are made of it.
const NAME_BYTES_MAX: usize = 100;

record! {
    /// A whole simulation.
    #[derive(Clone, Debug, Default)]
    pub struct Scenario ("{templates: {…}, clients: […]}", is_sampled_seldom_enough) {
        /// Of the files that are written, too: letters, digits, `-`, `_` and `.`.
        name: String = text(), or_from("the file's, without its ending", |_, reader| Some(reader.file_stem())),
            check(|at, name: &String, reader| is_name_of_files(at, name, reader)),
            unless(|name: &String, _| name.is_empty());
        /// For people.
        description: String = trimmed(), or(String::new());
        /// How long is played.
        duration: Duration = whole_duration(), or_from("`10m`", |_, reader| {
            reader.end = DURATION;
            Some(DURATION)
        });
        /// All chance comes from it: the same seed gives the same run.
        seed: u64 = whole(0, i128::from(u64::MAX)), or_from("`1`", |_, _| Some(1));
        /// How often everything is measured. At most 20,000,000 samples of all nodes together.
        sample_every: Duration = step(), or_from("`5s`", |_, _| duration.map(|all| SAMPLE_EVERY.min(all))),
            check(|at, every: &Duration, reader| if duration.is_some_and(|all| *every > all) {
                let message = "is longer than the whole simulation; give less";
                reader.problems.wrong(at, message);
            });
        /// From then on nothing goes wrong: what is down comes back, nothing is lost or doubled, no fault begins,
        /// and nobody wants anything else any more but by `surge` and `demand`.
        heal_at: Option<Duration> = time(), optional("never");
        /// At these times everybody must have what is right: see the limit `settled_unfairness`.
        right_at: Vec<Duration> = list_of("[5m, 6m]", time()), or_empty();
        /// `true`: faults that concern nobody, or fewer clients than they say, are no mistake. Files that chance
        /// wrote say so.
        idle_faults: bool = may_be_idle(), or(false);
        /// What the root's templates are at the start.
        templates: Templates = templates::templates_at_first(),
            needed("templates, as in {resources: […]}, or the name of a template file");
        /// The servers: the root first, parents before their children.
        nodes as "tree": Vec<Node> = nodes::nodes(), or_from("one node, `root`", |_, reader| nodes::root_alone(reader)),
            by(|nodes: &Vec<Node>, of: &Scenario| nodes::written(nodes, of));
        /// Who asks: groups of clients.
        clients: Vec<ClientGroup> = clients::clients(),
            needed("a list of those who ask, as in [{count: 10, wants: 5}]");
        /// What is between them.
        network: Network = network::network(), or(Network::default());
        /// How servers are set up.
        servers: Servers = record(), or(Servers::default());
        /// How long clients wait after a request before they say that they want something else.
        client_gaps: ClientGaps = record(), or(ClientGaps::default());
        /// What goes wrong, and when.
        faults: Vec<Fault> = fault::faults(), or_empty();
        /// From when on averages are judged.
        settled_after: Duration = shape::duration(),
            or_from("the longest learning mode and 30 s, but at most half of the duration", |_, _| {
                Some(settled_by_default(clients.as_ref()?, templates.as_ref()?, duration?))
            }),
            check(|at, settled: &Duration, reader| if duration.is_some_and(|all| *settled >= all) {
                let message = "is not before the end; give less, so that something is judged";
                reader.problems.wrong(at, message);
            }),
            unless(|settled: &Duration, of: &Scenario| *settled == of.settled_by_default());
        /// What must hold.
        limits: Limits = record(), or(Limits::default());
    }
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

fn trimmed() -> shape::Shape<String> {
    shape::Shape::new("text", |at, r| {
        let text = at.text(&mut r.problems)?;
        Some(text.trim().to_owned())
    })
}

/// How long is played: what begins later than that is a slip.
fn whole_duration() -> shape::Shape<Duration> {
    shape::Shape::new("duration", |at, r| {
        let duration = step().read(at, r)?;
        r.end = duration;
        Some(duration)
    })
}

fn may_be_idle() -> shape::Shape<bool> {
    shape::Shape::new(truth().is, |at, r| {
        let may_be_idle = truth().read(at, r)?;
        r.may_be_idle = may_be_idle;
        Some(may_be_idle)
    })
}

/// What may stand in the name of a file.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_name_of_files(at: &At<'_>, name: &str, reader: &mut Reader<'_>) {
    let is_name = name.chars().all(is_plain)
        && name.starts_with(char::is_alphanumeric)
        && name.len() <= NAME_BYTES_MAX;
    if !is_name {
        let expected = "letters, digits, '-', '_' and '.', and a letter or digit first: files are \
                        named for it";
        reader.problems.refuse(at, expected);
    }
}

/// Notes that there are more samples than can be kept.
fn is_sampled_seldom_enough(
    scenario: Scenario,
    map: &Map<'_>,
    reader: &mut Reader<'_>,
) -> Option<Scenario> {
    let every = scenario.sample_every.as_nanos().max(1);
    let nodes = scenario.nodes.len();
    let samples = scenario.duration.as_nanos() / every * nodes as u128;
    if samples > NODE_SAMPLES_MAX {
        let at = map.get(&["sample_every"]);
        let message = format!(
            "gives {samples} samples of {nodes} nodes together; at most {NODE_SAMPLES_MAX}: sample \
             less often"
        );
        let place = at.map_or(map.place, |at| at.node.place);
        reader.problems.note(place, "sample_every", message);
    }
    Some(scenario)
}
