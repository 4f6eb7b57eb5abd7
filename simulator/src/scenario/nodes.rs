//! The nodes of the tree: nodes in nodes, some of them multiplied, or a list.
//!
//! A node has the name of its key. With a `count` above 1 there are several: `region-1`, `region-2` and so on. The
//! nodes below such a node have its name in front, as in `region-1.leaf-2`. A list keeps the order in which chance
//! goes through the nodes; files that the simulator writes have a list.
//!
//! Groups of clients, links and faults name nodes. A scenario keeps the names as its file has them, and the world finds
//! the nodes.

use std::collections::BTreeMap;

use doorward_engine::id::HolderName;
use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::scenario::NODES_MAX;
use crate::scenario::forms::{Candidates, Names, NodeCount, Read, Within, one, refuse};

/// Words that say which nodes are meant, so that no node has them as its name. YAML takes the last two for truth
/// values.
const RESERVED: [&str; 6] = ["all", "any", "below_root", "leaves", "true", "false"];

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique.
    pub name: String,
    /// The key of the tree that it is made of. Several nodes of a key have different names.
    pub key: String,
    /// Its place among the nodes. None: this is the root, which is the first.
    pub parent: Option<usize>,
    /// The number of its servers; at least 1. With more than one, a master that dies is succeeded after
    /// [`crate::scenario::Servers::election`]; with one, it is back when its fault is over.
    pub candidates: u32,
}

impl Node {
    /// Returns a node whose key is its name.
    pub fn new(name: impl Into<String>, parent: Option<usize>, candidates: u32) -> Self {
        let name = name.into();
        Self {
            key: name.clone(),
            name,
            parent,
            candidates,
        }
    }
}

/// The tree as a file has it.
#[derive(Deserialize)]
#[serde(untagged)]
#[serde(
    expecting = "give one root, as in {root: {candidates: 3, children: [a, b]}}, or a list of nodes"
)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub(super) enum TreeFile {
    List(Vec<Listed>),
    Nested(Branches),
}

/// The nodes below a node.
#[derive(Deserialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
enum Children {
    Names(Vec<String>),
    Nested(Branches),
}

/// A node in a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ListedNode"))]
pub(super) struct Listed {
    /// Its name, which is unique.
    name: String,
    /// The key of a tree that the node was made of. Absent: its name.
    key: Option<String>,
    /// The name of a node before it. Absent: it is the root.
    parent: Option<String>,
    /// The number of its servers.
    #[serde(default = "one::<Candidates>")]
    candidates: Candidates,
}

/// Nodes by their keys, in the order of the file. A node with nothing to say has no value.
#[derive(Deserialize)]
#[serde(transparent)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub(super) struct Branches(
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Option<Branch>>"))]
    IndexMap<String, Option<Branch>>,
);

/// A key of the tree.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Node"))]
pub(super) struct Branch {
    /// The number of such nodes at each parent. Not for the root.
    #[serde(default = "one::<NodeCount>")]
    count: NodeCount,
    /// The number of servers of the node. If there are several, another one succeeds a master that dies.
    #[serde(default = "one::<Candidates>")]
    candidates: Candidates,
    /// The nodes below: a map, or a list of names. Absent: it is a leaf.
    children: Option<Children>,
}

const ALONE: Branch = Branch {
    count: NodeCount(1),
    candidates: Candidates(1),
    children: None,
};

/// The nodes of a tree: the root first, parents before their children.
pub(super) struct TreeForm;

impl TreeForm {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Node>, D::Error> {
        let nodes = planted(TreeFile::deserialize(from)?).within("tree");
        nodes.map_err(D::Error::custom)
    }
}

/// Returns a tree as a list, as files have it.
pub fn listed(nodes: &[Node]) -> Value {
    let listed = nodes.iter().map(|node| {
        let parent = node.parent.and_then(|parent| nodes.get(parent));
        json!({
            "name": node.name,
            "key": Some(&node.key).filter(|key| **key != node.name),
            "parent": parent.map(|parent| &parent.name),
            "candidates": node.candidates,
        })
    });
    listed.collect()
}

fn planted(file: TreeFile) -> Read<Vec<Node>> {
    let mut tree = Planting::default();
    match file {
        TreeFile::List(list) => {
            for (index, node) in list.into_iter().enumerate() {
                tree.add_listed(node).within(&format!("[{index}]"))?;
            }
        }
        TreeFile::Nested(Branches(roots)) => {
            let mut all = roots.iter();
            let (Some((key, root)), None) = (all.next(), all.next()) else {
                return refuse("", "give one root, and all other nodes as its children");
            };
            let root = root.as_ref().unwrap_or(&ALONE);
            if root.count.0 != 1 {
                return refuse(format!("{key}.count"), "is not for the root; remove it");
            }
            tree.plant(key, root, None, "")?;
        }
    }
    if tree.nodes.is_empty() {
        return refuse("", "is empty; give at least the root");
    }
    Ok(tree.nodes)
}

/// The nodes so far, and their places by name.
#[derive(Default)]
struct Planting {
    nodes: Vec<Node>,
    places: BTreeMap<String, usize>,
}

impl Planting {
    /// Makes the nodes of a key, `path` before the name of each.
    fn plant(&mut self, key: &str, branch: &Branch, parent: Option<usize>, path: &str) -> Read<()> {
        for number in 1..=branch.count.0 {
            let mut node = Node::new(key, parent, branch.candidates.0);
            node.name = format!("{path}{key}");
            let mut below = path.to_owned();
            if branch.count.0 > 1 {
                node.name = format!("{}-{number}", node.name);
                below = format!("{}.", node.name);
            }
            let parent = Some(self.add(node)?);
            match &branch.children {
                None => {}
                Some(Children::Names(names)) => {
                    for name in names {
                        self.plant(name, &ALONE, parent, &below)?;
                    }
                }
                Some(Children::Nested(Branches(children))) => {
                    for (key, child) in children {
                        let child = child.as_ref().unwrap_or(&ALONE);
                        self.plant(key, child, parent, &below)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_listed(&mut self, node: Listed) -> Read<()> {
        let parent = node.parent.and_then(|name| self.places.get(&name).copied());
        if parent.is_some() == self.nodes.is_empty() {
            let message = "give a node before it; only the first node has no parent";
            return refuse("parent", message);
        }
        let mut added = Node::new(node.name, parent, node.candidates.0);
        added.key = node.key.unwrap_or(added.key);
        self.add(added).map(|_| ())
    }

    /// Adds a node, and returns its place.
    fn add(&mut self, node: Node) -> Read<usize> {
        let (place, name) = (self.nodes.len(), &node.name);
        let is_reserved = |it: &&String| RESERVED.contains(&it.as_str());
        let message = if let Err(cause) = HolderName::new(name) {
            format!("the name of a node {cause}")
        } else if let Some(reserved) = [name, &node.key].into_iter().find(is_reserved) {
            format!("{reserved:?} cannot be the name of a node; rename it")
        } else if place >= NODES_MAX {
            format!("makes too many nodes; give at most {NODES_MAX}")
        } else if self.places.insert(name.clone(), place).is_some() {
            format!("there are two nodes {name:?}; rename one")
        } else {
            self.nodes.push(node);
            return Ok(place);
        };
        refuse("", message)
    }
}

/// Finds the nodes of one name, of a key of the tree, or of a word.
pub(super) fn named(nodes: &[Node], name: &str) -> Read<Vec<usize>> {
    let of = |is_meant: &dyn Fn(&Node) -> bool| -> Vec<usize> {
        let meant = nodes.iter().enumerate().filter(|(_, node)| is_meant(node));
        meant.map(|(place, _)| place).collect()
    };
    let found = match name {
        "leaves" => super::leaves_of(nodes),
        "all" => (0..nodes.len()).collect(),
        name => match of(&|node| node.name == name) {
            none if none.is_empty() => of(&|node| node.key == name),
            one => one,
        },
    };
    match found.is_empty() {
        true => refuse("", format!("{name:?} is no node")),
        false => Ok(found),
    }
}

/// Finds the nodes of one name or of several.
pub(super) fn all_named(nodes: &[Node], Names(names): &Names) -> Read<Vec<usize>> {
    if names.is_empty() {
        return refuse("", "is empty; give at least one node");
    }
    let found: Read<Vec<Vec<usize>>> = names.iter().map(|name| named(nodes, name)).collect();
    Ok(found?.concat())
}

/// A node, or one of several by chance: `any`, `below_root`, or names as in [`all_named`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NodeChoice(Names);

impl NodeChoice {
    /// Finds the nodes that something can happen to.
    pub(crate) fn places(&self, nodes: &[Node]) -> Read<Vec<usize>> {
        let Names(names) = &self.0;
        let word = names.first().filter(|_| names.len() == 1);
        match word.map_or("", String::as_str) {
            "any" => Ok((0..nodes.len()).collect()),
            "below_root" if nodes.len() > 1 => Ok((1..nodes.len()).collect()),
            "below_root" => refuse("", "no node is below the root"),
            "all" => refuse("", "is all; give any, for a node by chance"),
            _ => {
                let mut places = all_named(nodes, &self.0)?;
                places.sort_unstable();
                places.dedup();
                Ok(places)
            }
        }
    }

    /// Finds the node, if only one can be meant, whatever the tree.
    pub(crate) fn only(&self, nodes: &[Node]) -> Option<usize> {
        let is_word = |name: &String| matches!(name.as_str(), "any" | "below_root");
        match self.places(nodes).ok()?[..] {
            [only] if !self.0.0.iter().any(is_word) => Some(only),
            _ => None,
        }
    }
}
