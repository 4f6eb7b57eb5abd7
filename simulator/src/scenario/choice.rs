//! Which nodes, and which clients, are meant: by names, keys of the tree, and words.

use doorward_documents::form::{At, Map, hint, some_of};
use doorward_documents::placed_value::Value;
use doorward_engine::id::ResourceId;

use crate::scenario::declared::{Record, Written};
use crate::scenario::fault::{ClientChoice, ClockChoice, NodeChoice};
use crate::scenario::read::Reader;
use crate::scenario::shape::Shape;
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;
use crate::scenario::{CLIENTS_MAX, ClientGroup, Scenario};

/// What nodes clients are at, besides the names of nodes.
const PLACES: [&str; 2] = ["leaves", "all"];

/// Which nodes something can happen to, besides the names of nodes.
const CHOICES: [&str; 3] = ["any", "below_root", "leaves"];

/// `leaves`, `all`, a node, all nodes of a key; or a list of them.
pub(super) fn places() -> Shape<Vec<usize>> {
    Shape::new("nodes", places_at)
}

fn places_at(at: &At<'_>, r: &mut Reader<'_>) -> Option<Vec<usize>> {
    let Value::List(_) = at.node.value else {
        return place(at, r);
    };
    let list = at.list("[leaf-1, leaf-2]", &mut r.problems)?;
    if list.is_empty() {
        r.problems.wrong(at, "is empty; give at least one node");
        return None;
    }
    let each: Vec<Option<Vec<usize>>> = list.iter().map(|at| place(at, r)).collect();
    let each: Option<Vec<Vec<usize>>> = each.into_iter().collect();
    Some(each?.concat())
}

/// The nodes of one name or word.
pub(super) fn place(at: &At<'_>, r: &mut Reader<'_>) -> Option<Vec<usize>> {
    let name = at.text(&mut r.problems)?;
    let tree = r.tree.as_ref()?;
    match name.as_str() {
        "leaves" => return Some(tree.leaves.clone()),
        "all" => return Some((0..tree.nodes.len()).collect()),
        _ => {}
    }
    if let Some(node) = tree.find(&name) {
        return Some(vec![node]);
    }
    let found = tree.find_kind(&name).map(<[usize]>::to_vec);
    if found.is_none() {
        let message = format!("{name:?} {}", tree.no_such_node(&name, &PLACES));
        r.problems.wrong(at, message);
    }
    found
}

/// One node; where several are named, one of them by chance.
pub(super) fn node() -> Shape<NodeChoice> {
    Shape::new("node", node_at)
}

fn node_at(at: &At<'_>, r: &mut Reader<'_>) -> Option<NodeChoice> {
    if let Value::List(_) = at.node.value {
        let mut nodes = places_at(at, r)?;
        nodes.sort_unstable();
        nodes.dedup();
        return Some(NodeChoice::AnyOf(nodes));
    }
    let name = at.text(&mut r.problems)?;
    let tree = r.tree.as_ref()?;
    match name.as_str() {
        "any" => return Some(NodeChoice::Any),
        "leaves" => return Some(one_of(tree.leaves.clone())),
        "below_root" if tree.nodes.len() > 1 => return Some(NodeChoice::AnyBelowRoot),
        "below_root" => {
            let message = "is below_root, but there is nothing below the root";
            r.problems.wrong(at, message);
            return None;
        }
        _ => {}
    }
    if let Some(node) = tree.find(&name) {
        return Some(NodeChoice::Node(node));
    }
    if let Some(nodes) = tree.find_kind(&name) {
        return Some(one_of(nodes.to_vec()));
    }
    let message = format!("{name:?} {}", tree.no_such_node(&name, &CHOICES));
    r.problems.wrong(at, message);
    None
}

fn one_of(mut nodes: Vec<usize>) -> NodeChoice {
    nodes.sort_unstable();
    nodes.dedup();
    match nodes.as_slice() {
        [only] => NodeChoice::Node(*only),
        _ => NodeChoice::AnyOf(nodes),
    }
}

/// A node that may have an election.
pub(super) fn elected() -> Shape<NodeChoice> {
    Shape::new("node with other candidates", |at, r| {
        let choice = node_at(at, r)?;
        let tree = r.tree.as_ref()?;
        if let Some(only) = choice.only().and_then(|number| tree.nodes.get(number))
            && only.candidates == 1
            && !r.may_be_idle
        {
            let message = format!(
                "{:?} has no other candidate, so there is no election; give it candidates: 2",
                only.name
            );
            r.problems.wrong(at, message);
            return None;
        }
        Some(choice)
    })
}

/// A node, or clients.
pub(super) fn clock() -> Shape<ClockChoice> {
    Shape::new("node or clients", clock_at)
}

fn clock_at(at: &At<'_>, r: &mut Reader<'_>) -> Option<ClockChoice> {
    match at.node.value {
        Value::Map(_) => ClientChoice::read(at, r).map(ClockChoice::Clients),
        _ => node_at(at, r).map(ClockChoice::Node),
    }
}

/// A node that can have a second process, or clients.
pub(super) fn twin() -> Shape<ClockChoice> {
    Shape::new("node without another candidate, or clients", |at, r| {
        let of = clock_at(at, r)?;
        let tree = r.tree.as_ref()?;
        if let ClockChoice::Node(node) = &of
            && let Some(only) = node.only().and_then(|node| tree.nodes.get(node))
            && (only.parent.is_none() || only.candidates > 1)
            && !r.may_be_idle
        {
            let message = format!(
                "{:?} is the root, or has other candidates; give a node below the root that has none",
                only.name
            );
            r.problems.wrong(at, message);
            return None;
        }
        Some(of)
    })
}

/// Clients are so many, but not more than there are.
pub(super) fn number_of_clients(
    choice: ClientChoice,
    map: &Map<'_>,
    r: &mut Reader<'_>,
) -> Option<ClientChoice> {
    let most = match &r.clients {
        Some(clients) if !r.may_be_idle => choice.number_of(clients),
        _ => CLIENTS_MAX,
    };
    if most == 0 {
        let message = "is nobody: no such client is there";
        r.problems.note(map.place, &map.path, message);
        return None;
    }
    if choice.count < 1 || choice.count > most {
        let expected = format!("a whole number from 1 to {most}");
        r.problems.refuse(&map.get(&["clients"])?, &expected);
        return None;
    }
    Some(choice)
}

/// The groups of a name.
pub(super) fn groups() -> Shape<Vec<usize>> {
    Shape::new("name of a group", |at, r| {
        let name = at.text(&mut r.problems)?;
        let groups = r.clients.as_ref()?;
        let numbered = groups.iter().enumerate();
        let found: Vec<usize> = numbered
            .filter(|(_, group)| group.name == name)
            .map(|(number, _)| number)
            .collect();
        if found.is_empty() {
            let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            let message = is_none_of(&name, "group", &known);
            r.problems.wrong(at, message);
            return None;
        }
        Some(found)
    })
}

/// A resource that clients use.
pub(super) fn resource_in_use() -> Shape<ResourceId> {
    Shape::new("id", |at, r| {
        let name = at.text(&mut r.problems)?;
        let usages = r.clients.as_ref()?.iter().flat_map(ClientGroup::usages);
        let mut known: Vec<&ResourceId> = usages.map(|usage| &usage.resource).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(found) = known.iter().find(|id| id.as_str() == name) {
            return Some((*found).clone());
        }
        let known: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
        let message = is_none_of(&name, "resource that clients use", &known);
        r.problems.wrong(at, message);
        None
    })
}

fn is_none_of(name: &str, what: &str, known: &[&str]) -> String {
    let hint = hint(name, known);
    if hint.is_empty() {
        let known = some_of(known.iter().copied());
        format!("{name:?} is no {what}; give one of {known}")
    } else {
        format!("{name:?} is no {what}{hint}")
    }
}

/// The name of a node, by its place.
pub(super) fn name_of(node: usize, of: &Scenario) -> Yaml {
    Yaml::text(of.nodes.get(node).map_or("", |node| node.name.as_str()))
}

/// The name of a node, or a list of names.
pub(super) fn names_of(nodes: &[usize], of: &Scenario) -> Yaml {
    match nodes {
        [only] => name_of(*only, of),
        many => Yaml::List(many.iter().map(|node| name_of(*node, of)).collect()),
    }
}

/// The name that groups have, by their places.
pub(super) fn name_of_groups(groups: &[usize], of: &Scenario) -> Result<Yaml, CannotWrite> {
    let of = |group: &usize| of.clients.get(*group).map(|group| group.name.as_str());
    let mut names: Vec<&str> = groups.iter().filter_map(of).collect();
    names.dedup();
    match names.as_slice() {
        [name] => Ok(Yaml::text(name)),
        _ => Err(CannotWrite::new("clients of several groups, or of none")),
    }
}

impl Written for NodeChoice {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(match self {
            Self::Node(node) => name_of(*node, of),
            Self::Any => Yaml::plain("any"),
            Self::AnyBelowRoot => Yaml::plain("below_root"),
            // A list, also of one: chance chooses from lists.
            Self::AnyOf(nodes) => Yaml::List(nodes.iter().map(|it| name_of(*it, of)).collect()),
        })
    }
}

impl Written for ClockChoice {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        match self {
            Self::Node(node) => node.written(of),
            Self::Clients(clients) => clients.written(of),
        }
    }
}
