//! The ancestors of a node: no node can be a child of a node that leases its capacity from it.

use crate::id::HolderName;
use crate::messages::Cycle;
use crate::node::Node;

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
