//! The nodes of the tree: nodes in nodes, some of them multiplied, or a list.
//!
//! A node has the name of its key. With a `count` above 1 there are several: `region-1`, `region-2` and so on. The
//! nodes below such a node have its name in front, as in `region-1.leaf-2`. A list keeps the order in which chance
//! goes through the nodes; files that the simulator writes have a list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use doorward_engine::id::HolderName;
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::NODES_MAX;
use crate::scenario::forms::{Candidates, Form, NodeCount};
use crate::scenario::source::{Never, OneOf, OneOrMany, Read, ReadError, Within};

/// Words that say which nodes are meant, so that no node has them as its name. YAML takes the last two for truth
/// values.
const RESERVED: [&str; 6] = ["all", "any", "below_root", "leaves", "true", "false"];

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique.
    pub name: String,
    /// Its place among the nodes. None: this is the root, which is the first.
    pub parent: Option<usize>,
    /// The number of its servers; at least 1. With more than one, a master that dies is succeeded after
    /// [`crate::scenario::Servers::election`]; with one, it is back when its fault is over.
    pub candidates: u32,
}

/// The tree as a file has it.
pub(super) type TreeFile = OneOf<Never, Vec<Listed>, Branches>;

/// A node in a list.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListedNode")]
pub(super) struct Listed {
    /// Its name, which is unique.
    name: String,
    /// The name of a node before it. Absent: it is the root.
    #[serde(default)]
    parent: Option<String>,
    /// The number of its servers.
    #[serde(default = "one", with = "Candidates")]
    candidates: u32,
}

/// Nodes by their keys, in the order of the file.
#[derive(JsonSchema)]
#[schemars(inline)]
pub(super) struct Branches(
    #[schemars(with = "BTreeMap<String, Option<Branch>>")] Vec<(String, Branch)>,
);

/// A key of the tree.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Node")]
struct Branch {
    /// The number of such nodes at each parent. Not for the root.
    #[serde(default = "one", with = "NodeCount")]
    count: u32,
    /// The number of servers of the node. If there are several, another one succeeds a master that dies.
    #[serde(default = "one", with = "Candidates")]
    candidates: u32,
    /// The nodes below: a map, or a list of names. Absent: it is a leaf.
    #[serde(default)]
    children: Option<OneOf<Never, Vec<String>, Branches>>,
}

const fn one() -> u32 {
    1
}

const ALONE: Branch = Branch {
    count: 1,
    candidates: 1,
    children: None,
};

impl Serialize for Branches {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(key, branch)| (key, branch)))
    }
}

impl<'de> Deserialize<'de> for Branches {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Branches;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of nodes, as in {root: {children: [a, b]}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Branches, A::Error> {
                let mut branches = Vec::new();
                while let Some((key, branch)) = map.next_entry::<String, Option<Branch>>()? {
                    branches.push((key, branch.unwrap_or(ALONE)));
                }
                Ok(Branches(branches))
            }
        }
        from.deserialize_map(InOrder)
    }
}

/// The nodes, and what they are called.
#[derive(Debug, Default)]
pub(super) struct NamedNodes {
    /// The root first, parents before their children.
    pub(super) nodes: Vec<Node>,
    /// The nodes without children.
    pub(super) leaves: Vec<usize>,
    names: BTreeMap<String, usize>,
    /// The nodes that are made of one key.
    kinds: BTreeMap<String, Vec<usize>>,
}

impl NamedNodes {
    /// The nodes of a file. Without any, a root alone.
    pub(super) fn of(file: Option<TreeFile>) -> Read<Self> {
        let mut tree = Self::default();
        match file {
            None | Some(OneOf::Plain(_)) => tree.plant("root", &ALONE, None, "")?,
            Some(OneOf::List(list)) => {
                for (index, node) in list.into_iter().enumerate() {
                    tree.add_listed(node).within(&format!("[{index}]"))?;
                }
                if tree.nodes.is_empty() {
                    return Err(ReadError::new("", "is empty; give at least the root"));
                }
            }
            Some(OneOf::Map(Branches(roots))) => {
                let [(key, root)] = roots.as_slice() else {
                    let message = "give one root, and all other nodes as its children";
                    return Err(ReadError::new("", message));
                };
                if root.count != 1 {
                    let message = "is not for the root; remove it";
                    return Err(ReadError::new(format!("{key}.count"), message));
                }
                tree.plant(key, root, None, "")?;
            }
        }
        tree.leaves = super::leaves_of(&tree.nodes);
        Ok(tree)
    }

    /// The nodes of a scenario that is written.
    pub(super) fn written(nodes: &[Node]) -> Self {
        let nodes = nodes.to_vec();
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// Makes the nodes of a key, `prefix` before the name of each.
    fn plant(
        &mut self,
        key: &str,
        branch: &Branch,
        parent: Option<usize>,
        prefix: &str,
    ) -> Read<()> {
        for number in 1..=branch.count {
            let (mut name, mut below) = (format!("{prefix}{key}"), prefix.to_owned());
            if branch.count > 1 {
                name = format!("{name}-{number}");
                below = format!("{name}.");
            }
            let index = self.nodes.len();
            let candidates = branch.candidates;
            self.add(
                Node {
                    name,
                    parent,
                    candidates,
                },
                key,
            )?;
            match &branch.children {
                None | Some(OneOf::Plain(_)) => {}
                Some(OneOf::List(names)) => {
                    for name in names {
                        self.plant(name, &ALONE, Some(index), &below)?;
                    }
                }
                Some(OneOf::Map(Branches(children))) => {
                    for (key, child) in children {
                        self.plant(key, child, Some(index), &below)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_listed(&mut self, node: Listed) -> Read<()> {
        let parent = node.parent.as_ref().and_then(|name| self.find(name));
        if parent.is_some() == self.nodes.is_empty() {
            let message = "give a node before it; only the first node has no parent";
            return Err(ReadError::new("parent", message));
        }
        let (name, candidates) = (node.name.clone(), node.candidates);
        self.add(
            Node {
                name,
                parent,
                candidates,
            },
            &node.name,
        )
    }

    fn add(&mut self, node: Node, key: &str) -> Read<()> {
        let (index, name) = (self.nodes.len(), node.name.clone());
        let message = if let Err(cause) = HolderName::new(&name) {
            format!("the name of a node {cause}")
        } else if RESERVED.contains(&key) {
            format!("{key:?} cannot be the name of a node; rename it")
        } else if index >= NODES_MAX {
            format!("makes too many nodes; give at most {NODES_MAX}")
        } else if let Entry::Vacant(place) = self.names.entry(name.clone()) {
            place.insert(index);
            self.kinds.entry(key.to_owned()).or_default().push(index);
            self.nodes.push(node);
            return Ok(());
        } else {
            format!("there are two nodes {name:?}; rename one")
        };
        Err(ReadError::new("", message))
    }

    /// The node of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The nodes of one name, of a key of the tree, or of a word.
    pub(super) fn named(&self, name: &str) -> Read<Vec<usize>> {
        match name {
            "leaves" => return Ok(self.leaves.clone()),
            "all" => return Ok((0..self.nodes.len()).collect()),
            _ => {}
        }
        if let Some(node) = self.find(name) {
            return Ok(vec![node]);
        }
        let found = self.kinds.get(name).cloned();
        found.ok_or_else(|| ReadError::new("", format!("{name:?} is no node")))
    }

    /// The nodes of one name or of several.
    pub(super) fn all_named(&self, names: &OneOrMany<String>) -> Read<Vec<usize>> {
        let names = match names {
            OneOf::Plain(name) => return self.named(name),
            OneOf::List(names) => names,
            OneOf::Map(never) => match *never {},
        };
        if names.is_empty() {
            return Err(ReadError::new("", "is empty; give at least one node"));
        }
        let mut all = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let nodes = self.named(name);
            all.extend(nodes.within(&format!("[{index}]"))?);
        }
        Ok(all)
    }
}

/// The nodes as a file has them.
pub(super) fn listed(nodes: &[Node]) -> TreeFile {
    let name_of = |parent: usize| nodes.get(parent).map(|node| node.name.clone());
    let each = nodes.iter().map(|node| Listed {
        name: node.name.clone(),
        parent: node.parent.and_then(name_of),
        candidates: node.candidates,
    });
    OneOf::List(each.collect())
}
