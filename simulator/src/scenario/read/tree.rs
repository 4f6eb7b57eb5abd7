//! The tree: nodes in nodes, some of them multiplied.
//!
//! A node is called what its key says. With a `count` above 1 there are as many, `region-1`,
//! `region-2` and so on; and what is below such a node is called after it, as in `region-1.leaf-2`.
//! So a name depends only on the way to its node, and is unique if the keys are.
//!
//! Or a list of nodes, each with its parent: then they stand in the order of the list, which is that in
//! which chance goes through them.

use std::collections::{BTreeMap, BTreeSet};

use doorward_documents::tree::{Place, Value};
use doorward_engine::id::HolderName;

use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, hint, some_of};
use crate::scenario::{NODES_MAX, Node};

const KEYS: [&str; 3] = ["count", "candidates", "children"];

/// The most servers of a node.
const CANDIDATES_MAX: usize = 100;

/// What is no name of a node, because it says which nodes are meant.
const RESERVED: [&str; 4] = ["all", "any", "below_root", "leaves"];

/// The nodes, and how they are called.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The root first, parents before their children.
    pub(super) nodes: Vec<Node>,
    pub(super) leaves: Vec<usize>,
    names: BTreeMap<String, usize>,
    /// The nodes that are made of one key.
    kinds: BTreeMap<String, Vec<usize>>,
}

/// A key of the tree, before it is multiplied.
struct Branch {
    key: String,
    place: Place,
    path: String,
    count: usize,
    candidates: u32,
    children: Vec<Branch>,
}

impl Tree {
    /// The node of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The nodes that are made of the key of that name.
    pub(super) fn find_kind(&self, key: &str) -> Option<&[usize]> {
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
    pub(super) fn no_such_node(&self, name: &str, others: &[&str]) -> String {
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

impl Reader<'_> {
    /// The tree; a root alone if there is none. None: it is noted what is wrong.
    pub(super) fn tree(&mut self, map: &super::Map<'_>) -> Option<Tree> {
        let before = self.problems.0.len();
        let root = match map.get("tree") {
            Some(at) if matches!(at.node.value, Value::List(_)) => return self.listed(&at),
            Some(at) => self.root(&at)?,
            None => Branch {
                key: "root".to_owned(),
                place: map.place,
                path: "tree".to_owned(),
                count: 1,
                candidates: 1,
                children: Vec::new(),
            },
        };
        let nodes = nodes_of(&root);
        if nodes > NODES_MAX {
            let message = format!("makes {nodes} nodes; at most {NODES_MAX}");
            self.problems.note(root.place, &root.path, message);
            return None;
        }
        let mut tree = Tree::default();
        self.plant(&root, None, "", &mut tree);
        (self.problems.0.len() == before).then_some(tree)
    }

    fn root(&mut self, at: &At<'_>) -> Option<Branch> {
        let map = at.map("{root: {children: [a, b]}}", &mut self.problems)?;
        let [(key, node)] = map.entries else {
            let message = format!(
                "has {} roots; give one, and all others as its children",
                map.entries.len()
            );
            self.problems.wrong(at, message);
            return None;
        };
        let path = format!("{}.{}", at.path, key.text);
        let root = self.branch(&key.text, key.place, &At { node, path });
        if root.count != 1 {
            let path = format!("{}.count", root.path);
            let message = "there is only one root; remove it";
            self.problems.note(root.place, &path, message);
            return None;
        }
        Some(root)
    }

    /// A list of nodes: the root, and then others, each after its parent.
    fn listed(&mut self, at: &At<'_>) -> Option<Tree> {
        const EXAMPLE: &str = "[{name: root}, {name: leaf, parent: root}]";
        let before = self.problems.0.len();
        let list = at.list(EXAMPLE, &mut self.problems)?;
        if list.is_empty() || list.len() > NODES_MAX {
            let message = format!("makes {} nodes; give 1 to {NODES_MAX}", list.len());
            self.problems.wrong(at, message);
            return None;
        }
        let mut tree = Tree::default();
        for at in &list {
            self.listed_node(at, &mut tree);
        }
        let parents: BTreeSet<usize> = tree.nodes.iter().filter_map(|node| node.parent).collect();
        tree.leaves = (0..tree.nodes.len()).collect();
        tree.leaves.retain(|node| !parents.contains(node));
        (self.problems.0.len() == before).then_some(tree)
    }

    fn listed_node(&mut self, at: &At<'_>, tree: &mut Tree) -> Option<()> {
        let map = at.map("{name: leaf, parent: root}", &mut self.problems)?;
        map.check_keys(&["name", "parent", "candidates"], &mut self.problems);
        let name_at = map.need("name", "a name", &mut self.problems)?;
        let name = name_at.text(&mut self.problems)?;
        if let Err(cause) = HolderName::new(&name) {
            let message = format!("the name of a node {cause}");
            self.problems.wrong(&name_at, message);
        }
        if RESERVED.contains(&name.as_str()) {
            let message = "cannot be the name of a node: it says which nodes are meant";
            self.problems.wrong(&name_at, message);
        }
        let parent = map.get("parent");
        let parent = match parent {
            Some(at) => {
                let above = at.text(&mut self.problems)?;
                let found = tree.find(&above);
                if found.is_none() {
                    let message = format!("is {above:?}, which is none of the nodes before it");
                    self.problems.wrong(&at, message);
                }
                found
            }
            None => None,
        };
        if parent.is_some() == tree.nodes.is_empty() {
            let message = "must have a parent among the nodes before it, unless it is the first";
            self.problems.wrong(at, message);
        }
        let candidates = map.get("candidates");
        let candidates =
            candidates.map_or(Some(1), |at| at.count(CANDIDATES_MAX, &mut self.problems));
        let index = tree.nodes.len();
        if tree.names.insert(name.clone(), index).is_some() {
            let message = format!("there are two nodes {name:?}; rename one");
            self.problems.wrong(at, message);
        }
        tree.kinds.insert(name.clone(), vec![index]);
        tree.nodes.push(Node {
            name,
            parent,
            candidates: candidates.map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        });
        Some(())
    }

    fn branch(&mut self, key: &str, place: Place, at: &At<'_>) -> Branch {
        let mut branch = Branch {
            key: key.to_owned(),
            place,
            path: at.path.clone(),
            count: 1,
            candidates: 1,
            children: Vec::new(),
        };
        if RESERVED.contains(&key) {
            let message = "cannot be the name of a node: it says which nodes are meant";
            self.problems.note(place, &at.path, message);
        }
        if matches!(key, "true" | "false") {
            let message = "is a truth value to YAML, as on, off, yes and no are; put it in quotes";
            self.problems.note(place, &at.path, message);
        }
        // A node about which there is nothing to say.
        if matches!(at.node.value, Value::Null) {
            return branch;
        }
        let Some(map) = at.map("{count: 3, children: […]}", &mut self.problems) else {
            return branch;
        };
        map.check_keys(&KEYS, &mut self.problems);
        if let Some(at) = map.get("count") {
            branch.count = at.count(NODES_MAX, &mut self.problems).unwrap_or(1);
        }
        if let Some(at) = map.get("candidates") {
            let candidates = at.count(CANDIDATES_MAX, &mut self.problems);
            branch.candidates = candidates.map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX));
        }
        if let Some(at) = map.get("children") {
            branch.children = self.children(&at);
        }
        branch
    }

    /// A map, or a list of those about which there is nothing to say.
    fn children(&mut self, at: &At<'_>) -> Vec<Branch> {
        let mut children = Vec::new();
        match &at.node.value {
            Value::Map(entries) => {
                for (key, node) in entries {
                    let path = format!("{}.{}", at.path, key.text);
                    children.push(self.branch(&key.text, key.place, &At { node, path }));
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    let path = at.path.clone();
                    let Some(name) = (At { node, path }).text(&mut self.problems) else {
                        continue;
                    };
                    let nothing = doorward_documents::tree::Node {
                        place: node.place,
                        value: Value::Null,
                    };
                    let path = format!("{}.{name}", at.path);
                    let at = At {
                        node: &nothing,
                        path,
                    };
                    children.push(self.branch(&name, node.place, &at));
                }
            }
            _ => {
                let expected = "a map of nodes, or a list of names";
                self.problems.refuse(at, expected);
            }
        }
        children
    }

    /// Makes the nodes of a branch, `prefix` before the name of each.
    fn plant(&mut self, branch: &Branch, parent: Option<usize>, prefix: &str, tree: &mut Tree) {
        for number in 1..=branch.count {
            let mut name = format!("{prefix}{}", branch.key);
            let mut below = prefix.to_owned();
            if branch.count > 1 {
                name = format!("{name}-{number}");
                below = format!("{name}.");
            }
            let index = tree.nodes.len();
            if let Err(cause) = HolderName::new(&name) {
                let message = format!("the name of a node {cause}");
                self.problems.note(branch.place, &branch.path, message);
                return;
            }
            if let Some(other) = tree.names.insert(name.clone(), index) {
                let message = if tree.is_above(other, parent) {
                    format!("the node {name:?} is below itself, which is a cycle; rename one")
                } else {
                    format!("there are two nodes {name:?}; rename one")
                };
                self.problems.note(branch.place, &branch.path, message);
                return;
            }
            let kind = tree.kinds.entry(branch.key.clone()).or_default();
            kind.push(index);
            tree.nodes.push(Node {
                name,
                parent,
                candidates: branch.candidates,
            });
            if branch.children.is_empty() {
                tree.leaves.push(index);
            }
            for child in &branch.children {
                self.plant(child, Some(index), &below, tree);
            }
        }
    }
}

/// How many nodes a branch makes.
fn nodes_of(branch: &Branch) -> usize {
    let below = branch.children.iter().map(nodes_of);
    let one = below.fold(1_usize, usize::saturating_add);
    branch.count.saturating_mul(one)
}
