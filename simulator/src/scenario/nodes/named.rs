//! The nodes of a tree, and how they are called.

use std::collections::BTreeMap;

use doorward_documents::form::{hint, some_of};

use crate::scenario::nodes::Node;

/// The nodes, and how they are called.
#[derive(Debug, Default)]
pub(in crate::scenario) struct NamedNodes {
    /// The root first, parents before their children.
    pub(in crate::scenario) nodes: Vec<Node>,
    /// Those that have none below them.
    pub(in crate::scenario) leaves: Vec<usize>,
    names: BTreeMap<String, usize>,
    /// The nodes that are made of one key.
    kinds: BTreeMap<String, Vec<usize>>,
}

impl NamedNodes {
    /// Adds a node that is made of a key, and says where it stands, or what is wrong with its name.
    pub(super) fn add(&mut self, node: Node, key: &str) -> Result<usize, String> {
        let (index, name) = (self.nodes.len(), node.name.clone());
        if let Some(other) = self.names.get(&name) {
            return Err(if self.is_above(*other, node.parent) {
                format!("the node {name:?} is below itself, which is a cycle; rename one")
            } else {
                format!("there are two nodes {name:?}; rename one")
            });
        }
        self.names.insert(name, index);
        self.kinds.entry(key.to_owned()).or_default().push(index);
        self.nodes.push(node);
        Ok(index)
    }

    /// The node of that name.
    pub(in crate::scenario) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The nodes that are made of the key of that name.
    pub(in crate::scenario) fn find_kind(&self, key: &str) -> Option<&[usize]> {
        self.kinds.get(key).map(Vec::as_slice)
    }

    /// Whether a node is another one, or above it.
    fn is_above(&self, upper: usize, lower: Option<usize>) -> bool {
        let mut at = lower;
        while let Some(node) = at {
            if node == upper {
                return true;
            }
            at = self.nodes.get(node).and_then(|node| node.parent);
        }
        false
    }

    /// What to do about a name that no node has. `others` are words that would do as well.
    pub(in crate::scenario) fn no_such_node(&self, name: &str, others: &[&str]) -> String {
        let mut known: Vec<&str> = self.names.keys().map(String::as_str).collect();
        known.extend(others);
        let hint = hint(name, &known);
        if hint.is_empty() {
            let nodes = some_of(self.nodes.iter().map(|node| node.name.as_str()));
            format!(
                "is no node; give one of {nodes}, or {}",
                others.join(" or ")
            )
        } else {
            format!("is no node{hint}")
        }
    }
}
