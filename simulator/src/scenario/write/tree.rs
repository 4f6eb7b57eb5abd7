//! The tree, as nodes in nodes if that says in which order they stand; else as a list. Chance goes
//! through nodes in their order, so a file has to keep it.

use crate::scenario::Node;
use crate::scenario::write::yaml::Yaml;

pub(super) fn written(nodes: &[Node]) -> Yaml {
    let mut order = Vec::new();
    let nested = node(nodes, 0, &mut order);
    if order.is_sorted() && order.len() == nodes.len() {
        let name = nodes.first().map_or("root", |root| root.name.as_str());
        let mut out = Yaml::map();
        out.put(&key(name), nested);
        return out;
    }
    let one = |node: &Node| {
        let mut out = Yaml::map();
        out.put("name", Yaml::text(&node.name));
        if let Some(parent) = node.parent.and_then(|parent| nodes.get(parent)) {
            out.put("parent", Yaml::text(&parent.name));
        }
        out.extend(candidates(node));
        out
    };
    Yaml::List(nodes.iter().map(one).collect())
}

/// What is said of a node and of all below it; and in which order they are read.
fn node(nodes: &[Node], number: usize, order: &mut Vec<usize>) -> Yaml {
    order.push(number);
    let mut out = nodes.get(number).map_or(Yaml::map(), candidates);
    let mut children = Yaml::map();
    for (child, below) in nodes.iter().enumerate() {
        if below.parent == Some(number) {
            children.put(&key(&below.name), node(nodes, child, order));
        }
    }
    if let Yaml::Map(entries) = &children
        && !entries.is_empty()
    {
        out.put("children", children);
    }
    out
}

fn candidates(node: &Node) -> Yaml {
    let mut out = Yaml::map();
    if node.candidates != 1 {
        out.put("candidates", Yaml::plain(node.candidates));
    }
    out
}

fn key(name: &str) -> String {
    match Yaml::text(name) {
        Yaml::Plain(key) => key,
        _ => name.to_owned(),
    }
}
