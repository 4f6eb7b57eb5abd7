//! Random world drawn so far: each part adds to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use doorward_engine::templates::TemplateSpec;
use humantime::format_duration;
use serde::Serialize;
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::recording::named;
pub(super) use crate::scenario::Span;
use crate::scenario::{Node, Scenario};

/// Time in which faults happen.
pub(super) const FAULTY_FOR: Duration = Duration::from_secs(200);

/// Time of faults: after all clients had an answer, and not right before the end of the faults.
const FAULTS: Span = Span(Duration::from_secs(20), Duration::from_secs(190));

/// First fork of the parts' streams.
const PARTS: u64 = 100;

/// Quality of the worst links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    /// Quick and without loss.
    Quick,
    /// Slower, with little loss.
    Usual,
    /// So slow that messages overtake each other, with loss and duplicates. Answers still come
    /// before servers give up.
    Bad,
}

impl Quality {
    pub(super) const fn draw(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..=2 => Self::Quick,
            3..=6 => Self::Usual,
            _ => Self::Bad,
        }
    }
}

named! {
    /// Kind of fault or special case in a random world, besides its tree, clients and network.
    #[derive(clap::ValueEnum, PartialOrd, Ord)]
    Part {
        /// Masters die, restart, freeze, hand over or lose their keys; often several in a row.
        Masters = "masters",
        /// Nodes are cut off from others.
        Cuts = "cuts",
        /// Etcd is wiped, restored, or badly reachable.
        Etcd = "etcd",
        /// Clocks differ as much as allowed, and jump.
        Clocks = "clocks",
        /// The operator edits the templates.
        Edits = "edits",
        /// Clients leave, close resources, crash, and change their demand.
        Departures = "departures",
        /// Clients use the library's limiters and measure their demand.
        Limiters = "limiters",
        /// Clients use several resources, some with another promise on the total or none.
        Resources = "resources",
        /// Servers' addresses are wrong.
        Addresses = "addresses",
        /// Two processes run under one name.
        Twins = "twins",
    }
}

/// Strength of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    #[default]
    None,
    Little,
    Much,
}

impl Strength {
    pub(super) const fn draw(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..=4 => Self::None,
            5..=7 => Self::Little,
            _ => Self::Much,
        }
    }

    pub(super) const fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Draws a number: none, up to `few`, or up to `many`.
    pub(super) const fn many(self, chance: &mut Chance, few: usize, many: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Little => 1 + chance.below(few),
            Self::Much => few + 1 + chance.below(many - few),
        }
    }
}

/// Scenario file of a random world.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorldFile {
    /// All keys but the following two.
    #[serde(flatten)]
    pub(super) settings: Value,
    /// Groups, each with one client.
    pub clients: Vec<Value>,
    /// Faults, each with its time.
    pub faults: Vec<Value>,
}

impl WorldFile {
    /// Reads it.
    ///
    /// # Panics
    ///
    /// If it is invalid, which is an error of this program.
    #[expect(clippy::panic, reason = "the fuzzer draws valid files only")]
    pub fn read(&self) -> Scenario {
        // JSON is YAML.
        let text = json!(self).to_string();
        let read = Scenario::parse(&text, "", Path::new(""));
        read.unwrap_or_else(|error| panic!("the random world is invalid: {error}"))
    }
}

/// World drawn so far.
pub(super) struct Draft {
    pub(super) strengths: BTreeMap<Part, Strength>,
    pub(super) chance: Chance,
    pub(super) quality: Quality,
    pub(super) nodes: Vec<Node>,
    pub(super) specs: Vec<TemplateSpec>,
    /// Shortest and longest election.
    pub(super) election: Span,
    pub(super) file: WorldFile,
}

impl Draft {
    /// Returns the strength of a part.
    pub(super) fn strength(&self, part: Part) -> Strength {
        self.strengths.get(&part).copied().unwrap_or_default()
    }

    /// Returns the random stream of a part.
    pub(super) fn chance_of(&self, part: Part) -> Chance {
        self.chance.fork(PARTS + part as u64)
    }

    /// Returns the longest lease length of the templates at the start.
    pub(super) fn lease(&self) -> Duration {
        let leases = self.specs.iter().filter_map(|spec| spec.lease_length);
        leases.max().unwrap_or_default()
    }

    /// Draws a time for a fault.
    pub(super) fn some_time(&self, chance: &mut Chance) -> Duration {
        chance.duration(FAULTS.0, FAULTS.1)
    }

    /// Draws a time for a fault, at most `within` after another time.
    pub(super) fn soon(&self, chance: &mut Chance, after: Duration, within: Duration) -> Duration {
        let at = after + chance.duration(Duration::ZERO, within);
        at.min(FAULTS.1)
    }

    /// Draws a node.
    pub(super) fn node(&self, chance: &mut Chance) -> &str {
        self.node_at(chance.below(self.nodes.len()))
    }

    /// Returns the name of a node by its place.
    pub(super) fn node_at(&self, place: usize) -> &str {
        self.nodes.get(place).map_or("root", |node| &node.name)
    }

    /// Chooses the client of a group, by its place.
    pub(super) fn one(&self, group: usize) -> Value {
        let group = self.file.clients.get(group);
        json!({"clients": 1, "of": group.map(|group| &group["name"])})
    }

    /// Adds an event that happens once.
    pub(super) fn put(&mut self, at: Duration, mut event: Value) {
        event["at"] = said(at).into();
        self.file.faults.push(event);
    }
}

/// Returns an event that lasts for some time, or for as long as it lasts without one.
pub(super) fn lasting(kind: &str, whom: impl Serialize, length: impl Into<Option<Span>>) -> Value {
    json!({kind: whom, "for": length.into().map(span)})
}

/// Returns a duration as files have it.
pub(super) fn said(duration: Duration) -> String {
    format_duration(duration).to_string()
}

/// Returns two durations as files have them: chance decides between them.
pub(super) fn span(Span(least, most): Span) -> [String; 2] {
    [said(least), said(most)]
}
