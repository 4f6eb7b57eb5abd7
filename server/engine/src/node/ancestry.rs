//! The ancestors of a node: no node can be a child of a node that leases its capacity from it.

use thiserror::Error;

use crate::id::HolderName;
use crate::node::Node;

/// A child server is an ancestor of this one, or this one itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the node {child} cannot be a child of {node}: its capacity would come from itself, by way of \
     {path}; check --node and --parent of the servers on this way",
    path = path.join(" → ")
)]
pub struct Cycle {
    /// Who asked.
    pub child: String,
    /// Who was asked.
    pub node: String,
    /// From the asked node up to the one that asked.
    pub path: Vec<String>,
}

impl Node {
    /// Whether a node may be a child of this one.
    ///
    /// # Errors
    ///
    /// If it is one of those above, or this one.
    pub(super) fn check_cycle(&self, child: &HolderName) -> Result<(), Cycle> {
        let node = &self.config.name;
        let up = std::iter::once(node).chain(self.ancestors());
        match up.clone().position(|name| name == child.as_str()) {
            None => Ok(()),
            Some(position) => Err(Cycle {
                child: child.to_string(),
                node: node.clone(),
                path: up.take(position + 1).cloned().collect(),
            }),
        }
    }
}
