//! What is between clients and servers, and between servers: for all of them, for each of the two,
//! and for single links.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_documents::tree::Value;

use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, Map};
use crate::scenario::read::tree::Tree;
use crate::scenario::{Latency, Link, Network};

const LINK_KEYS: [&str; 3] = ["latency", "loss", "duplication"];

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

impl Reader<'_> {
    /// Both ways alike, or each for itself; and single links.
    pub(super) fn network(&mut self, map: &Map<'_>, tree: Option<&Tree>) -> Network {
        let mut network = Network::default();
        let Some(map) = self.settings(map, "network", "{clients: {…}, servers: {…}}") else {
            return network;
        };
        let keys = [&LINK_KEYS[..], &["clients", "servers", "links"]].concat();
        map.check_keys(&keys, &mut self.problems);
        let both = self.link(&map, LINK);
        network.clients = both;
        network.servers = both;
        for (key, link) in [
            ("clients", &mut network.clients),
            ("servers", &mut network.servers),
        ] {
            if let Some(map) = self.settings(&map, key, "{latency: 5ms, loss: 0.01}") {
                map.check_keys(&LINK_KEYS, &mut self.problems);
                *link = self.link(&map, both);
            }
        }
        const EXAMPLE: &str = "[{between: [root, leaf-1], latency: 80ms}]";
        let links = map.get("links");
        let links = links.and_then(|at| at.list(EXAMPLE, &mut self.problems));
        for at in links.unwrap_or_default() {
            self.single(&at, tree, &mut network);
        }
        network
    }

    /// Links of single nodes. What is not said of one stays as it was before.
    fn single(&mut self, at: &At<'_>, tree: Option<&Tree>, network: &mut Network) {
        const EXAMPLE: &str = "{between: [root, leaf-1], latency: 80ms}";
        let Some(map) = at.map(EXAMPLE, &mut self.problems) else {
            return;
        };
        let whose = map.only_one(&["between", "at"], &mut self.problems);
        if let Some(whose) = whose {
            map.check_keys(&[&LINK_KEYS[..], &[whose]].concat(), &mut self.problems);
        }
        if !LINK_KEYS.iter().any(|key| map.has(key)) {
            let message = "says nothing of the link; give a latency, loss or duplication";
            self.problems.wrong(at, message);
        }
        // Once, so that what is wrong is told once.
        let read = self.link(&map, LINK);
        let apply = |link: Link| Link {
            latency: map.get("latency").map_or(link.latency, |_| read.latency),
            loss: map.get("loss").map_or(link.loss, |_| read.loss),
            duplication: map
                .get("duplication")
                .map_or(link.duplication, |_| read.duplication),
        };
        let (Some(whose), Some(tree)) = (whose, tree) else {
            return;
        };
        let Some(at) = map.need(whose, "whose link", &mut self.problems) else {
            return;
        };
        if whose == "at" {
            for node in self.places(&at, tree).unwrap_or_default() {
                let link = network.at.entry(node).or_insert(network.clients);
                *link = apply(*link);
            }
        } else {
            for node in self.between(&at, tree).unwrap_or_default() {
                let link = network.above.entry(node).or_insert(network.servers);
                *link = apply(*link);
            }
        }
    }

    /// The lower ends of the links between two.
    fn between(&mut self, at: &At<'_>, tree: &Tree) -> Option<Vec<usize>> {
        let ends = at.list("[root, leaf-1]", &mut self.problems)?;
        let [one, other] = ends.as_slice() else {
            let message = format!(
                "is a list of {}; give a node and its parent, as in [root, leaf-1]",
                ends.len()
            );
            self.problems.wrong(at, message);
            return None;
        };
        let (one, other) = (self.place(one, tree), self.place(other, tree));
        let (one, other) = (one?, other?);
        let is_below = |child: usize, parents: &[usize]| {
            let parent = tree.nodes.get(child).and_then(|node| node.parent);
            parent.is_some_and(|parent| parents.contains(&parent))
        };
        let mut lower: Vec<usize> = Vec::new();
        for (children, parents) in [(&one, &other), (&other, &one)] {
            let below = children.iter().copied();
            lower.extend(below.filter(|child| is_below(*child, parents)));
        }
        if lower.is_empty() {
            let message =
                "has no link: neither is the parent of the other; give a node and its parent";
            self.problems.wrong(at, message);
            return None;
        }
        // Once each, for what is said of them is applied to each.
        lower.sort_unstable();
        lower.dedup();
        Some(lower)
    }

    fn link(&mut self, map: &Map<'_>, default: Link) -> Link {
        let latency = map.get("latency").and_then(|at| self.latency(&at));
        let loss = map.get("loss").and_then(|at| at.part(&mut self.problems));
        let duplication = map.get("duplication");
        let duplication = duplication.and_then(|at| at.part(&mut self.problems));
        Link {
            latency: latency.unwrap_or(default.latency),
            loss: loss.unwrap_or(default.loss),
            duplication: duplication.unwrap_or(default.duplication),
        }
    }

    fn latency(&mut self, at: &At<'_>) -> Option<Latency> {
        if let Value::Map(_) = at.node.value {
            let map = at.map("{least: 1ms, mean: 5ms}", &mut self.problems)?;
            map.check_keys(&["least", "mean"], &mut self.problems);
            let least = map.get("least");
            let least = least.map_or(Some(Duration::ZERO), |at| at.duration(&mut self.problems));
            let what = "the mean of what is added to the least";
            let mean = map.need("mean", what, &mut self.problems);
            let mean = mean.and_then(|at| at.duration(&mut self.problems));
            return Some(Latency::Exponential {
                least: least?,
                mean: mean?,
            });
        }
        let (least, most) = at.span(&mut self.problems)?;
        Some(if least == most {
            Latency::Constant(least)
        } else {
            Latency::Uniform(least, most)
        })
    }
}
