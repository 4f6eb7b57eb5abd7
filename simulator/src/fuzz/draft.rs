//! Random world drawn so far: each part adds to it.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::templates::TemplateSpec;

use crate::chance::Chance;
use crate::recording::named;
use crate::scenario::Scenario;
use crate::scenario::fault::{ClientChoice, Event, Fault, NodeChoice, Span};

/// Time in which faults happen.
pub(super) const FAULTY_FOR: Duration = Duration::from_secs(200);

/// Time of faults: after all clients had an answer, and not right before the end of the faults.
const FAULTS: Span = (Duration::from_secs(20), Duration::from_secs(190));

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

/// World drawn so far.
pub(super) struct Draft {
    pub(super) strengths: BTreeMap<Part, Strength>,
    pub(super) chance: Chance,
    pub(super) quality: Quality,
    pub(super) specs: Vec<TemplateSpec>,
    pub(super) scenario: Scenario,
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
    pub(super) fn node(&self, chance: &mut Chance) -> NodeChoice {
        self.node_at(chance.below(self.scenario.nodes.len()))
    }

    /// Chooses a node by its place.
    pub(super) fn node_at(&self, place: usize) -> NodeChoice {
        let node = self.scenario.nodes.get(place);
        NodeChoice::of(node.map_or("root", |node| &node.name))
    }

    /// Chooses the client of a group, by its place.
    pub(super) fn one(&self, group: usize) -> ClientChoice {
        let group = self.scenario.clients.get(group);
        group.map_or(ClientChoice::any(1), ClientChoice::one_of)
    }

    /// Adds an event that happens once.
    pub(super) fn put(&mut self, at: Duration, event: Event) {
        self.scenario.faults.push(Fault::once(at, event));
    }
}
