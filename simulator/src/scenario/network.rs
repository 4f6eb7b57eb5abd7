//! Links between clients and servers, and between servers: for all, for each of the two, and single ones.

use std::time::Duration;

use serde::Deserialize;

use crate::scenario::Span as TimeSpan;
use crate::scenario::forms::{Form, Maybe, Names, Part, Read, Span, Time, Within, refuse};
use crate::scenario::nodes::{Node, all_named, named};

/// Links of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Links {
    /// Between its servers and their clients.
    pub clients: Link,
    /// Between its servers and their parent.
    pub parent: Link,
}

/// One kind of way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The time of a message, one way.
    pub latency: Latency,
    /// The part of messages that are lost, 0…1. On streams between servers what is lost comes late
    /// (it is sent again after a second), as it does with TCP.
    pub loss: f64,
    /// The part of messages that arrive twice, 0…1. Not on streams.
    pub duplication: f64,
}

/// A distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[serde(expecting = "give a time, [SHORTEST, LONGEST] or {least: 1ms, mean: 5ms}")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum Latency {
    /// All between two alike; or always the same, if the two are equal.
    Uniform(#[serde(with = "Span")] TimeSpan),
    /// A least one, plus an exponential tail of that mean.
    Exponential {
        /// No message is faster.
        #[serde(default, with = "Time")]
        least: Duration,
        /// The mean of the additional time.
        #[serde(with = "Time")]
        mean: Duration,
    },
}

/// The network as a file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Network {
    /// All links.
    #[serde(flatten)]
    pub all: LinkChange,
    /// Only between clients and servers.
    pub clients: LinkChange,
    /// Only between servers.
    pub servers: LinkChange,
    /// Single links.
    pub links: Vec<SingleLinks>,
}

/// A link as a file has it. Absent fields stay as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Link"))]
pub struct LinkChange {
    /// The time of a message, one way: a duration, two between which chance decides, or `{least: 1ms, mean: 5ms}` with
    /// an exponential tail. Absent: `[1ms, 5ms]`.
    pub latency: Option<Latency>,
    /// The part of messages that is lost. On streams between servers they come late instead. Absent: 0.
    #[serde(with = "Maybe::<Part>")]
    pub loss: Option<f64>,
    /// The part of messages that arrives twice. Not on streams. Absent: 0.
    #[serde(with = "Maybe::<Part>")]
    pub duplication: Option<f64>,
}

/// Single links. One of `between` and `at` says which.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SingleLinks {
    /// A node and its parent, or two keys of the tree.
    #[serde(default)]
    pub between: Option<(String, String)>,
    /// The nodes whose links to clients are meant.
    #[serde(default, with = "Maybe::<Names>")]
    pub at: Option<Vec<String>>,
    /// The links.
    #[serde(flatten)]
    pub link: LinkChange,
}

/// Within a region, as in any cloud.
impl Default for Link {
    fn default() -> Self {
        Self {
            latency: Latency::Uniform((Duration::from_millis(1), Duration::from_millis(5))),
            loss: 0.0,
            duplication: 0.0,
        }
    }
}

impl LinkChange {
    fn apply(self, link: Link) -> Link {
        Link {
            latency: self.latency.unwrap_or(link.latency),
            loss: self.loss.unwrap_or(link.loss),
            duplication: self.duplication.unwrap_or(link.duplication),
        }
    }
}

impl Network {
    /// Finds the links of each node of a tree.
    pub(crate) fn resolve(&self, nodes: &[Node]) -> Read<Vec<Links>> {
        let both = self.all.apply(Link::default());
        let usual = Links {
            clients: self.clients.apply(both),
            parent: self.servers.apply(both),
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
        if self.link == LinkChange::default() {
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
                *link = self.link.apply(*link);
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
