//! Value of `--tree`: a shape such as `3x3`, or a file.
//!
//! A shape has one number for each level below the root: the children of each node above it. `3x3`
//! is a root with three regions of three leaves each. Nodes have the names of scenario files, such
//! as `region-1.leaf-3`. Levels between regions and leaves are called `site`.

use std::path::PathBuf;
use std::str::FromStr;

use doorward_simulator::scenario::{NODES_MAX, Node, Scenario};

use crate::failure::Failure;

/// Tree as the flag describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TreeFlag {
    /// Children of each node, level by level.
    Shape(Vec<usize>),
    /// Scenario file.
    File(PathBuf),
}

impl FromStr for TreeFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_shape = |c: char| c.is_ascii_digit() || c == 'x';
        if text.is_empty() || !text.chars().all(is_shape) {
            return Ok(Self::File(PathBuf::from(text)));
        }
        let levels = text.split('x').map(|level| match level.parse() {
            Ok(0) | Err(_) => Err("give a number for each level, as in 3x3".to_owned()),
            Ok(children) => Ok(children),
        });
        let levels: Vec<usize> = levels.collect::<Result<_, String>>()?;
        let (mut level, mut nodes) = (1_usize, 1_usize);
        for children in &levels {
            level = level.saturating_mul(*children);
            nodes = nodes.saturating_add(level);
        }
        if nodes > NODES_MAX {
            return Err(format!("makes {nodes} nodes; at most {NODES_MAX}"));
        }
        Ok(Self::Shape(levels))
    }
}

impl TreeFlag {
    /// Returns the nodes: the root first, parents before their children.
    pub(crate) fn nodes(&self) -> Result<Vec<Node>, Failure> {
        match self {
            Self::Shape(levels) => Ok(planted(levels)),
            Self::File(path) if !path.exists() => Err(Failure::Usage(format!(
                "--tree {} is neither a shape such as 3x3 nor an existing file",
                path.display()
            ))),
            Self::File(path) => Scenario::read_tree(path)
                .map_err(|error| Failure::Usage(format!("the tree is invalid\n{error}"))),
        }
    }
}

fn planted(levels: &[usize]) -> Vec<Node> {
    let mut nodes = Vec::new();
    plant(&mut nodes, "root".to_owned(), None, levels);
    nodes
}

/// Adds a node and all nodes below it, in the order of scenario files.
fn plant(nodes: &mut Vec<Node>, name: String, parent: Option<usize>, levels: &[usize]) {
    let index = nodes.len();
    let (prefix, middle) = match parent {
        None => (String::new(), "region"),
        Some(_) => (format!("{name}."), "site"),
    };
    nodes.push(Node::new(name, parent, 1));
    if let Some((children, below)) = levels.split_first() {
        let kind = if below.is_empty() { "leaf" } else { middle };
        for number in 1..=*children {
            let name = format!("{prefix}{kind}-{number}");
            plant(nodes, name, Some(index), below);
        }
    }
}

/// Returns the nodes without children.
pub(crate) fn leaves(nodes: &[Node]) -> Vec<usize> {
    let mut is_leaf = vec![true; nodes.len()];
    for parent in nodes.iter().filter_map(|node| node.parent) {
        if let Some(is_leaf) = is_leaf.get_mut(parent) {
            *is_leaf = false;
        }
    }
    let numbered = is_leaf.into_iter().enumerate();
    numbered.filter_map(|(n, leaf)| leaf.then_some(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_a_number_for_each_level() {
        let tree: TreeFlag = "2x2".parse().unwrap();
        let nodes = tree.nodes().unwrap_or_default();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let expected = [
            "root",
            "region-1",
            "region-1.leaf-1",
            "region-1.leaf-2",
            "region-2",
            "region-2.leaf-1",
            "region-2.leaf-2",
        ];
        assert_eq!(names, expected);
        assert_eq!(nodes[6].parent, Some(4));
        assert_eq!(leaves(&nodes), [2, 3, 5, 6]);
        assert_eq!(leaves(&nodes[..1]), [0]);
    }

    #[test]
    fn text_that_is_no_shape_is_a_file_and_too_large_a_shape_is_refused() {
        assert_eq!(
            "tree.yaml".parse(),
            Ok(TreeFlag::File(PathBuf::from("tree.yaml")))
        );
        for wrong in ["0", "3x", "x", "3x0", "101x100", "99999999999999999999"] {
            assert!(wrong.parse::<TreeFlag>().is_err(), "{wrong}");
        }
    }
}
