//! What is between clients and servers, and between servers: for all of them, for each of the two, and for
//! single links.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_documents::form::At;
use doorward_documents::placed_value::Value;

use crate::scenario::declared::{FieldRow, Fields, Record, Written};
use crate::scenario::read::Reader;
use crate::scenario::shape::{Shape, duration, list_of, part, record, span};
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;
use crate::scenario::{Scenario, choice};

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

record! {
    /// What a file says of a link. What it does not say stays as it was.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub(crate) struct LinkChange ("{latency: 5ms, loss: 0.01}") {
        /// How long a message takes, one way. `{least: 1ms, mean: 5ms}`: at least that long, and what is added is
        /// exponentially distributed with that mean.
        latency: Option<Latency> = latency(), optional("`[1ms, 5ms]`");
        /// The part of messages that are lost. On streams between servers they come late instead.
        loss: Option<f64> = part(), optional("`0`");
        /// The part of messages that arrive twice. Not on streams.
        duplication: Option<f64> = part(), optional("`0`");
    }
}

record! {
    /// What a file says of the network.
    #[derive(Clone, Debug)]
    pub(crate) struct NetworkChange ("{clients: {…}, servers: {…}}") {
        /// All links.
        all: LinkChange = (), flattened();
        /// The same keys, for the way between clients and servers only.
        clients: Option<LinkChange> = record(), optional("as all");
        /// The same keys, for the way between servers only.
        servers: Option<LinkChange> = record(), optional("as all");
        /// Single links that are different.
        links: Vec<SingleLinks> = list_of("[{between: [root, leaf-1], latency: 80ms}]", record()), or_empty();
    }
}

record! {
    /// What a file says of single links.
    #[derive(Clone, Debug)]
    pub(crate) struct SingleLinks ("{between: [root, leaf-1], latency: 80ms}", |whole: SingleLinks, map, reader| {
        if whole.change == LinkChange::default() {
            let message = "says nothing of the link; give a latency, loss or duplication";
            reader.problems.note(map.place, &map.path, message);
        }
        Some(whole)
    }) {
        /// What.
        change: LinkChange = (), flattened();
        /// Of which.
        whose: Whose = (), flattened();
    }
}

kinds! {
    /// Whose link.
    #[derive(Clone, Debug)]
    pub(crate) enum Whose, beside() {
        /// Between two servers, a node and its parent in either order; by the lower ends. For keys of the tree, all
        /// links of their nodes.
        Between as "between" {
            /// The lower ends.
            nodes as "between": Vec<usize> = between(), needed("whose link"),
                by(|nodes: &Vec<usize>, of: &Scenario| ends(nodes, of));
        };
        /// Between clients and the servers at these nodes.
        At as "at" {
            /// The nodes.
            nodes as "at": Vec<usize> = choice::places(), needed("whose link"),
                by(|nodes: &Vec<usize>, of: &Scenario| Ok(choice::names_of(nodes, of)));
        };
    }
}

record! {
    /// A latency with an exponential tail.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Tail ("{least: 1ms, mean: 5ms}") {
        /// No message is faster.
        least: Duration = duration(), or(Duration::ZERO);
        /// The mean of what is added.
        mean: Duration = duration(), needed("the mean of what is added to the least");
    }
}

/// Within a region, as in any cloud.
const LINK: Link = Link {
    latency: Latency::Uniform(Duration::from_millis(1), Duration::from_millis(5)),
    loss: 0.0,
    duplication: 0.0,
};

impl Default for Network {
    fn default() -> Self {
        Self {
            clients: LINK,
            servers: LINK,
            at: BTreeMap::new(),
            above: BTreeMap::new(),
        }
    }
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

impl LinkChange {
    fn of(link: &Link) -> Self {
        Self {
            latency: Some(link.latency),
            loss: Some(link.loss),
            duplication: Some(link.duplication),
        }
    }

    fn apply(&self, link: Link) -> Link {
        Link {
            latency: self.latency.unwrap_or(link.latency),
            loss: self.loss.unwrap_or(link.loss),
            duplication: self.duplication.unwrap_or(link.duplication),
        }
    }
}

/// The network as files have it.
pub(super) fn network() -> Shape<Network> {
    Shape::new("map", |at, r| {
        let change = NetworkChange::read(at, r)?;
        let both = change.all.apply(LINK);
        let own = |own: Option<LinkChange>| own.map_or(both, |own| own.apply(both));
        let mut network = Network {
            clients: own(change.clients),
            servers: own(change.servers),
            ..Network::default()
        };
        for single in change.links {
            let (nodes, ways, usual) = match single.whose {
                Whose::At { nodes } => (nodes, &mut network.at, network.clients),
                Whose::Between { nodes } => (nodes, &mut network.above, network.servers),
            };
            for node in nodes {
                let link = ways.entry(node).or_insert(usual);
                *link = single.change.apply(*link);
            }
        }
        Some(network)
    })
}

impl Written for Network {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        let single = |whose, link| SingleLinks {
            change: LinkChange::of(link),
            whose,
        };
        let at = self.at.iter().map(|(node, link)| {
            let nodes = vec![*node];
            single(Whose::At { nodes }, link)
        });
        // The root has no parent, and no way to it.
        let has_parent = |node: &usize| of.nodes.get(*node).is_some_and(|it| it.parent.is_some());
        let above = self.above.iter().filter(|(node, _)| has_parent(node));
        let above = above.map(|(node, link)| {
            let nodes = vec![*node];
            single(Whose::Between { nodes }, link)
        });
        let change = NetworkChange {
            all: LinkChange::default(),
            clients: Some(LinkChange::of(&self.clients)),
            servers: Some(LinkChange::of(&self.servers)),
            links: at.chain(above).collect(),
        };
        change.written(of)
    }
}

/// A span, or a least with a tail.
fn latency() -> Shape<Latency> {
    Shape::new("span, or `{least: 1ms, mean: 5ms}`", |at, r| {
        if let Value::Map(_) = at.node.value {
            let Tail { least, mean } = Tail::read(at, r)?;
            return Some(Latency::Exponential { least, mean });
        }
        let (least, most) = span().read(at, r)?;
        Some(if least == most {
            Latency::Constant(least)
        } else {
            Latency::Uniform(least, most)
        })
    })
}

impl Written for Latency {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        match *self {
            Self::Constant(span) => span.written(of),
            Self::Uniform(least, most) => (least, most).written(of),
            Self::Exponential { least, mean } => Tail { least, mean }.written(of),
        }
    }
}

/// The lower ends of the links between two.
fn between() -> Shape<Vec<usize>> {
    Shape::new("`[PARENT, CHILD]`", |at, r| {
        let ends = at.list("[root, leaf-1]", &mut r.problems)?;
        let [one, other] = ends.as_slice() else {
            let message = format!(
                "is a list of {}; give a node and its parent, as in [root, leaf-1]",
                ends.len()
            );
            r.problems.wrong(at, message);
            return None;
        };
        let (one, other) = (choice::place(one, r), choice::place(other, r));
        lower_ends(at, &one?, &other?, r)
    })
}

fn lower_ends(
    at: &At<'_>,
    one: &[usize],
    other: &[usize],
    r: &mut Reader<'_>,
) -> Option<Vec<usize>> {
    let tree = r.tree.as_ref()?;
    let is_below = |child: usize, parents: &[usize]| {
        let parent = tree.nodes.get(child).and_then(|node| node.parent);
        parent.is_some_and(|parent| parents.contains(&parent))
    };
    let mut lower: Vec<usize> = Vec::new();
    for (children, parents) in [(one, other), (other, one)] {
        let below = children.iter().copied();
        lower.extend(below.filter(|child| is_below(*child, parents)));
    }
    if lower.is_empty() {
        let message = "has no link: neither is the parent of the other; give a node and its parent";
        r.problems.wrong(at, message);
        return None;
    }
    // Once each, for what is said of them is applied to each.
    lower.sort_unstable();
    lower.dedup();
    Some(lower)
}

/// The two ends of a link, by its lower end.
fn ends(nodes: &[usize], of: &Scenario) -> Result<Yaml, CannotWrite> {
    let [node] = nodes else {
        return Err(CannotWrite::new("several links at once"));
    };
    let parent = of.nodes.get(*node).and_then(|node| node.parent);
    let ends = parent.into_iter().chain([*node]);
    Ok(Yaml::List(
        ends.map(|end| choice::name_of(end, of)).collect(),
    ))
}

/// The tables of the network.
pub(super) fn tables() -> [(&'static str, Vec<FieldRow>); 2] {
    let all = NetworkChange::rows();
    [("network", all), ("links", Whose::rows())]
}
