//! Tree of a random world: mostly small with several candidates at each node, now and then up to
//! four levels deep.

use crate::chance::Chance;
use crate::fuzz::draft::Draft;
use crate::scenario::nodes::{Node, listed};

/// Maximum number of nodes in a deep tree.
const NODES_MAX: usize = 12;

pub(super) fn draw(draft: &mut Draft, chance: &mut Chance) {
    draft.nodes = match chance.below(10) {
        0 => vec![node("root", None, chance)],
        1..=6 => small(chance),
        _ => deep(chance),
    };
    draft.file.settings["tree"] = listed(&draft.nodes);
}

fn node(name: &str, parent: Option<usize>, chance: &mut Chance) -> Node {
    Node::new(name, parent, chance.pick([1, 2, 3, 3]))
}

/// Draws a root and its leaves, perhaps with a region between them.
fn small(chance: &mut Chance) -> Vec<Node> {
    let mut nodes = vec![node("root", None, chance)];
    let mut above = 0;
    if chance.happens(0.4) {
        nodes.push(node("region", Some(0), chance));
        above = 1;
    }
    let leaves = ["leaf-a", "leaf-b", "leaf-c"].iter();
    for name in leaves.take(2 + chance.below(2)) {
        nodes.push(node(name, Some(above), chance));
    }
    nodes
}

fn deep(chance: &mut Chance) -> Vec<Node> {
    let mut nodes = vec![node("root", None, chance)];
    let mut level = vec![0];
    for depth in 0..1 + chance.below(3) {
        let mut below = Vec::new();
        for parent in level {
            for _ in 0..1 + chance.below(3) {
                if nodes.len() >= NODES_MAX {
                    break;
                }
                below.push(nodes.len());
                let name = format!("node-{depth}-{}", nodes.len());
                nodes.push(node(&name, Some(parent), chance));
            }
        }
        level = below;
    }
    nodes
}

/// Returns the number of levels below the root.
pub(super) fn depth(nodes: &[Node]) -> u32 {
    let mut levels: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let above = node.parent.and_then(|parent| levels.get(parent));
        levels.push(above.map_or(0, |above| above + 1));
    }
    levels.into_iter().max().unwrap_or_default()
}

/// Draws a node below the root, and its parent; the root twice if it is alone.
pub(super) fn pair(nodes: &[Node], chance: &mut Chance) -> (usize, usize) {
    let below = chance.below(nodes.len().saturating_sub(1));
    let lower = (1 + below).min(nodes.len().saturating_sub(1));
    let upper = nodes.get(lower).and_then(|node| node.parent).unwrap_or(0);
    (lower, upper)
}
