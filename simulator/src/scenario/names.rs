//! Names of nodes in a scenario. It keeps them as its file has them, and the world finds the nodes.

use serde::{Deserialize, Serialize};

use crate::scenario::Node;
use crate::scenario::forms::{OneOrMany, schema};
use crate::scenario::nodes::{all_named, named};
use crate::scenario::source::{OneOf, Read, refuse};

/// A node, or one of several by chance: `any`, `below_root`, or names as in [`all_named`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChoice(OneOrMany<String>);

schema!([] NodeChoice: |generator| OneOrMany::<String>::json_schema(generator));

impl NodeChoice {
    /// Chooses a node by its name.
    pub fn of(name: &str) -> Self {
        Self(name.into())
    }

    /// Finds the nodes that something can happen to.
    pub(crate) fn places(&self, nodes: &[Node]) -> Read<Vec<usize>> {
        let OneOf::Plain(name) = &self.0 else {
            let mut places = all_named(nodes, &self.0)?;
            places.sort_unstable();
            places.dedup();
            return Ok(places);
        };
        match name.as_str() {
            "any" => Ok((0..nodes.len()).collect()),
            "below_root" if nodes.len() > 1 => Ok((1..nodes.len()).collect()),
            "below_root" => refuse("", "no node is below the root"),
            "all" => refuse("", "is all; give any, for a node by chance"),
            name => named(nodes, name),
        }
    }

    /// Finds the node, if only one can be meant, whatever the tree.
    pub(crate) fn only(&self, nodes: &[Node]) -> Option<usize> {
        let is_word = |name: &str| matches!(name, "any" | "below_root");
        match self.places(nodes).ok()?[..] {
            [only] if !matches!(&self.0, OneOf::Plain(name) if is_word(name)) => Some(only),
            _ => None,
        }
    }
}
