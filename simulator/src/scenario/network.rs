//! Links between clients and servers, and between servers: for all, for each of the two, and single ones.

use std::time::Duration;

use serde::Deserialize;

use crate::scenario::forms::{Names, Part, Read, Span, Time, Within, refuse};
use crate::scenario::nodes::{Node, all_named, named};

/// Links of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Links {
    /// Between its servers and their clients.
    pub clients: Link,
    /// Between its servers and their parent.
    pub parent: Link,
}

/// The latency of a link that says none: within a region, as in any cloud.
pub const NEAR: Latency =
    Latency::Uniform(Span(Duration::from_millis(1), Duration::from_millis(5)));

/// A distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[serde(expecting = "give a time, [SHORTEST, LONGEST] or {least: 1ms, mean: 5ms}")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum Latency {
    /// All between two alike; or always the same, if the two are equal.
    Uniform(Span),
    /// A least one, plus an exponential tail of that mean.
    Exponential {
        /// No message is faster.
        #[serde(default)]
        least: Time,
        /// The mean of the additional time.
        mean: Time,
    },
}

/// The network as a file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Network {
    /// All links.
    #[serde(flatten)]
    pub all: Link,
    /// Only between clients and servers.
    pub clients: Link,
    /// Only between servers.
    pub servers: Link,
    /// Single links.
    pub links: Vec<SingleLinks>,
}

/// A link. Absent fields stay as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// The time of a message, one way: a duration, two between which chance decides, or `{least: 1ms, mean: 5ms}` with
    /// an exponential tail. Absent: `[1ms, 5ms]`.
    pub latency: Option<Latency>,
    /// The part of messages that is lost. On streams between servers they come late instead: they are sent again after
    /// a second, as with TCP. Absent: 0.
    pub loss: Option<Part>,
    /// The part of messages that arrives twice. Not on streams. Absent: 0.
    pub duplication: Option<Part>,
}

/// Single links. One of `between` and `at` says which.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SingleLinks {
    /// A node and its parent, or two keys of the tree.
    pub between: Option<(String, String)>,
    /// The nodes whose links to clients are meant.
    pub at: Option<Names>,
    /// The links.
    #[serde(flatten)]
    pub link: Link,
}

impl Link {
    /// Fills in absent fields from another link.
    fn or(self, usual: Self) -> Self {
        Self {
            latency: self.latency.or(usual.latency),
            loss: self.loss.or(usual.loss),
            duplication: self.duplication.or(usual.duplication),
        }
    }
}

impl Network {
    /// Finds the links of each node of a tree.
    pub(crate) fn resolve(&self, nodes: &[Node]) -> Read<Vec<Links>> {
        let usual = Links {
            clients: self.clients.or(self.all),
            parent: self.servers.or(self.all),
        };
        let mut all = vec![usual; nodes.len()];
        for (index, links) in self.links.iter().enumerate() {
            let changed = links.change(&mut all, nodes);
            changed.within(&format!("links[{index}]"))?;
        }
        Ok(all)
    }
}

impl SingleLinks {
    fn change(&self, all: &mut [Links], nodes: &[Node]) -> Read<()> {
        if self.link == Link::default() {
            let message = "says nothing of the link; give a latency, loss or duplication";
            return refuse("", message);
        }
        let places = match (&self.between, &self.at) {
            (Some(ends), None) => lower_ends(ends, nodes).within("between")?,
            (None, Some(names)) => all_named(nodes, names).within("at")?,
            _ => return refuse("", "give one of between and at"),
        };
        for place in places {
            let link = all.get_mut(place).map(|it| match self.between {
                Some(_) => &mut it.parent,
                None => &mut it.clients,
            });
            if let Some(link) = link {
                *link = self.link.or(*link);
            }
        }
        Ok(())
    }
}

/// The lower ends of the links between two nodes, or two keys of the tree.
fn lower_ends((one, other): &(String, String), nodes: &[Node]) -> Read<Vec<usize>> {
    let (one, other) = (named(nodes, one)?, named(nodes, other)?);
    let is_below = |child: &usize, parents: &[usize]| {
        let parent = nodes.get(*child).and_then(|node| node.parent);
        parent.is_some_and(|parent| parents.contains(&parent))
    };
    let mut lower = one.clone();
    lower.retain(|child| is_below(child, &other));
    lower.extend(other.iter().filter(|child| is_below(child, &one)));
    if lower.is_empty() {
        let message = "neither is the parent of the other; give a node and its parent";
        return refuse("", message);
    }
    Ok(lower)
}
