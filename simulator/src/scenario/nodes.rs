//! The nodes of the tree: nodes in nodes, some of them multiplied.
//!
//! A node is called what its key says. With a `count` above 1 there are as many, `region-1`,
//! `region-2` and so on; and what is below such a node is called after it, as in `region-1.leaf-2`.
//! So a name depends only on the way to its node, and is unique if the keys are.
//!
//! Or a list of nodes, each with its parent: then they stand in the order of the list, which is that in
//! which chance goes through them. So a file keeps their order: they are written in one another if that says
//! in which order they stand, else as a list.

mod named;

use doorward_documents::form::At;
use doorward_documents::placed_value::{Position, Value};
use doorward_engine::id::HolderName;

use crate::scenario::declared::{FieldRow, Fields, Record, Written};
pub(super) use crate::scenario::nodes::named::NamedNodes;
use crate::scenario::read::Reader;
use crate::scenario::shape::{self, Shape, count, text};
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;
use crate::scenario::{NODES_MAX, Scenario};

/// The most servers of a node.
const CANDIDATES_MAX: usize = 100;

/// What is no name of a node, because it says which nodes are meant.
const RESERVED: [&str; 4] = ["all", "any", "below_root", "leaves"];

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique.
    pub name: String,
    /// Its place among the nodes. None: this is the root, which is the first.
    pub parent: Option<usize>,
    /// How many servers stand there; at least 1. With more than one, a master that dies is succeeded
    /// after [`crate::scenario::Servers::election`]; with one, it is back when its fault is over.
    pub candidates: u32,
}

/// A key of the tree, before it is multiplied.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    key: String,
    place: Position,
    path: String,
    about: About,
}

record! {
    /// What a file says of a node in a map.
    #[derive(Clone, Debug)]
    pub(crate) struct About ("{count: 3, children: […]}") {
        /// How many of them there are at each parent. Not of the root.
        count: usize = count(NODES_MAX), or(1);
        /// How many servers stand there. If there is another one, it succeeds a master that dies.
        candidates: u32 = shape::count(CANDIDATES_MAX), or(1);
        /// The nodes below: a map, or a list of names. Without, it is a leaf.
        children: Vec<Branch> = children(), or_empty(), by(|children: &Vec<Branch>, of: &Scenario| {
            map_of(children, of)
        });
    }
}

record! {
    /// What a file says of a node in a list.
    #[derive(Clone, Debug)]
    pub(crate) struct Listed ("{name: leaf, parent: root}") {
        /// Unique.
        name: String = text(), needed("a name");
        /// The name of a node that stands before it.
        parent: Option<String> = text(), optional("the root");
        /// As above.
        candidates: u32 = count(CANDIDATES_MAX), or(1);
    }
}

/// The nodes that a scenario begins with; a root alone if it says nothing.
pub(super) fn nodes() -> Shape<Vec<Node>> {
    Shape::new("map, or a list", |at, r| {
        let tree = match &at.node.value {
            Value::List(_) => listed(at, r)?,
            _ => grown(&root(at, r)?, r)?,
        };
        let nodes = tree.nodes.clone();
        r.tree = Some(tree);
        Some(nodes)
    })
}

/// A root alone.
pub(super) fn root_alone(r: &mut Reader<'_>) -> Option<Vec<Node>> {
    let root = branch("root", Position::START, "tree".to_owned(), About::nothing());
    let tree = grown(&root, r)?;
    let nodes = tree.nodes.clone();
    r.tree = Some(tree);
    Some(nodes)
}

impl About {
    const fn nothing() -> Self {
        Self {
            count: 1,
            candidates: 1,
            children: Vec::new(),
        }
    }
}

fn branch(key: &str, place: Position, path: String, about: About) -> Branch {
    let key = key.to_owned();
    Branch {
        key,
        place,
        path,
        about,
    }
}

fn root(at: &At<'_>, r: &mut Reader<'_>) -> Option<Branch> {
    let map = at.map("{root: {children: [a, b]}}", &mut r.problems)?;
    let [(key, node)] = map.entries else {
        let message = format!(
            "has {} roots; give one, and all others as its children",
            map.entries.len()
        );
        r.problems.wrong(at, message);
        return None;
    };
    let path = format!("{}.{}", at.path, key.text);
    let root = read_branch(&key.text, key.place, &At { node, path }, r);
    if root.about.count != 1 {
        let path = format!("{}.count", root.path);
        let message = "there is only one root; remove it";
        r.problems.note(root.place, &path, message);
        return None;
    }
    Some(root)
}

fn read_branch(key: &str, place: Position, at: &At<'_>, r: &mut Reader<'_>) -> Branch {
    if RESERVED.contains(&key) {
        let message = "cannot be the name of a node: it says which nodes are meant";
        r.problems.note(place, &at.path, message);
    }
    if matches!(key, "true" | "false") {
        let message = "is a truth value to YAML, as on, off, yes and no are; put it in quotes";
        r.problems.note(place, &at.path, message);
    }
    // Of some there is nothing to say.
    let about = match at.node.value {
        Value::Null => None,
        _ => About::read(at, r),
    };
    let about = about.unwrap_or(About::nothing());
    branch(key, place, at.path.clone(), about)
}

/// A map, or a list of those about which there is nothing to say.
fn children() -> Shape<Vec<Branch>> {
    Shape::new("map or list of nodes", |at, r| {
        let mut children = Vec::new();
        match &at.node.value {
            Value::Map(entries) => {
                for (key, node) in entries {
                    let path = format!("{}.{}", at.path, key.text);
                    children.push(read_branch(&key.text, key.place, &At { node, path }, r));
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    let path = at.path.clone();
                    let Some(name) = (At { node, path }).text(&mut r.problems) else {
                        continue;
                    };
                    let nothing = doorward_documents::placed_value::PlacedValue {
                        place: node.place,
                        value: Value::Null,
                    };
                    let path = format!("{}.{name}", at.path);
                    let node = &nothing;
                    children.push(read_branch(&name, nothing.place, &At { node, path }, r));
                }
            }
            _ => r.problems.refuse(at, "a map of nodes, or a list of names"),
        }
        Some(children)
    })
}

/// The nodes that branches make. None: it is noted what is wrong, now or before.
fn grown(root: &Branch, r: &mut Reader<'_>) -> Option<NamedNodes> {
    let nodes = nodes_of(root);
    if nodes > NODES_MAX {
        let message = format!("makes {nodes} nodes; at most {NODES_MAX}");
        r.problems.note(root.place, &root.path, message);
        return None;
    }
    let mut tree = NamedNodes::default();
    plant(root, None, "", &mut tree, r);
    let is_of_tree = |field: &Option<String>| {
        let field = field.as_deref().unwrap_or_default();
        field == "tree" || field.starts_with("tree.")
    };
    let is_wrong = r.problems.0.iter().any(|it| is_of_tree(&it.field));
    (!is_wrong).then_some(tree)
}

/// How many nodes a branch makes.
fn nodes_of(branch: &Branch) -> usize {
    let below = branch.about.children.iter().map(nodes_of);
    let one = below.fold(1_usize, usize::saturating_add);
    branch.about.count.saturating_mul(one)
}

/// Makes the nodes of a branch, `prefix` before the name of each.
fn plant(
    branch: &Branch,
    parent: Option<usize>,
    prefix: &str,
    tree: &mut NamedNodes,
    r: &mut Reader<'_>,
) {
    for number in 1..=branch.about.count {
        let mut name = format!("{prefix}{}", branch.key);
        let mut below = prefix.to_owned();
        if branch.about.count > 1 {
            name = format!("{name}-{number}");
            below = format!("{name}.");
        }
        let node = Node {
            name,
            parent,
            candidates: branch.about.candidates,
        };
        if let Err(cause) = HolderName::new(&node.name) {
            let message = format!("the name of a node {cause}");
            r.problems.note(branch.place, &branch.path, message);
            return;
        }
        let index = match tree.add(node, &branch.key) {
            Ok(index) => index,
            Err(message) => {
                r.problems.note(branch.place, &branch.path, message);
                return;
            }
        };
        if branch.about.children.is_empty() {
            tree.leaves.push(index);
        }
        for child in &branch.about.children {
            plant(child, Some(index), &below, tree, r);
        }
    }
}

/// A list of nodes: the root, and then others, each after its parent.
fn listed(at: &At<'_>, r: &mut Reader<'_>) -> Option<NamedNodes> {
    const EXAMPLE: &str = "[{name: root}, {name: leaf, parent: root}]";
    let before = r.problems.0.len();
    let list = at.list(EXAMPLE, &mut r.problems)?;
    if list.is_empty() || list.len() > NODES_MAX {
        let message = format!("makes {} nodes; give 1 to {NODES_MAX}", list.len());
        r.problems.wrong(at, message);
        return None;
    }
    let mut tree = NamedNodes::default();
    for at in &list {
        listed_node(at, &mut tree, r);
    }
    tree.leaves = (0..tree.nodes.len()).collect();
    let is_parent = |place: &usize| tree.nodes.iter().any(|it| it.parent == Some(*place));
    let leaves = (0..tree.nodes.len()).filter(|place| !is_parent(place));
    tree.leaves = leaves.collect();
    (r.problems.0.len() == before).then_some(tree)
}

fn listed_node(at: &At<'_>, tree: &mut NamedNodes, r: &mut Reader<'_>) -> Option<()> {
    let node = Listed::read(at, r)?;
    let map = at.map(Listed::EXAMPLE, &mut r.problems)?;
    if let (Err(cause), Some(at)) = (HolderName::new(&node.name), map.get(&["name"])) {
        let message = format!("the name of a node {cause}");
        r.problems.wrong(&at, message);
    }
    if let (true, Some(at)) = (RESERVED.contains(&node.name.as_str()), map.get(&["name"])) {
        let message = "cannot be the name of a node: it says which nodes are meant";
        r.problems.wrong(&at, message);
    }
    let parent = node.parent.as_ref().and_then(|above| tree.find(above));
    if let (Some(above), None, Some(at)) = (&node.parent, parent, map.get(&["parent"])) {
        let message = format!("is {above:?}, which is none of the nodes before it");
        r.problems.wrong(&at, message);
    }
    if parent.is_some() == tree.nodes.is_empty() {
        let message = "must have a parent among the nodes before it, unless it is the first";
        r.problems.wrong(at, message);
    }
    let (name, candidates) = (node.name.clone(), node.candidates);
    let node = Node {
        name,
        parent,
        candidates,
    };
    let key = node.name.clone();
    if tree.add(node, &key).is_err() {
        let message = format!("there are two nodes {key:?}; rename one");
        r.problems.wrong(at, message);
    }
    Some(())
}

fn map_of(branches: &[Branch], of: &Scenario) -> Result<Yaml, CannotWrite> {
    let mut out = Yaml::map();
    for branch in branches {
        let Yaml::Plain(key) = Yaml::text(&branch.key) else {
            continue;
        };
        out.put(&key, branch.about.written(of)?);
    }
    Ok(out)
}

/// In one another if that says in which order they stand; else as a list.
pub(super) fn written(nodes: &[Node], of: &Scenario) -> Result<Yaml, CannotWrite> {
    let mut order = Vec::new();
    let nested = branch_of(nodes, 0, &mut order);
    if order.is_sorted() && order.len() == nodes.len() {
        return map_of(&[nested], of);
    }
    let one = |node: &Node| {
        let parent = node.parent.and_then(|parent| nodes.get(parent));
        let listed = Listed {
            name: node.name.clone(),
            parent: parent.map(|parent| parent.name.clone()),
            candidates: node.candidates,
        };
        listed.written(of)
    };
    let list: Result<Vec<Yaml>, CannotWrite> = nodes.iter().map(one).collect();
    list.map(Yaml::List)
}

/// A node and all below it; and in which order they are read.
fn branch_of(nodes: &[Node], number: usize, order: &mut Vec<usize>) -> Branch {
    order.push(number);
    let mut about = About::nothing();
    about.candidates = nodes.get(number).map_or(1, |node| node.candidates);
    for (child, below) in nodes.iter().enumerate() {
        if below.parent == Some(number) {
            about.children.push(branch_of(nodes, child, order));
        }
    }
    let name = nodes.get(number).map_or("root", |node| node.name.as_str());
    branch(name, Position::START, String::new(), about)
}

/// The tables of nodes.
pub(super) fn tables() -> [(&'static str, Vec<FieldRow>); 2] {
    [("tree", About::rows()), ("tree-list", Listed::rows())]
}
