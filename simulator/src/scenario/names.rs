//! Names in events become places of nodes and of groups of clients when a file is read, and names again when it is
//! written.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::scenario::forms::{OneOrMany, schema};
use crate::scenario::nodes::{all_named, named};
use crate::scenario::source::{Fields, OneOf, Read, ScenarioError, Within, refuse};

/// A node, or one of several. Files have names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeChoice {
    /// This one, by its place in the scenario.
    Node(usize),
    /// Any, by chance.
    Any,
    /// Any but the root, by chance.
    #[serde(rename = "below_root")]
    AnyBelowRoot,
    /// One of these, by chance; by their places in the scenario. At least one.
    AnyOf(Vec<usize>),
}

schema!([] NodeChoice: |generator| OneOrMany::<String>::json_schema(generator));

impl NodeChoice {
    /// The node, if only one can be meant.
    pub fn only(&self) -> Option<usize> {
        match self {
            Self::Node(node) => Some(*node),
            Self::AnyOf(nodes) if nodes.len() == 1 => nodes.first().copied(),
            _ => None,
        }
    }
}

/// Replaces names by places: those of nodes, or those of groups and nodes in a choice of clients.
pub(super) fn to_places(value: &mut Value, scenario: &Scenario) -> Read<()> {
    let Value::Object(clients) = value else {
        *value = json!(node(&OneOrMany::deserialize(&*value)?, scenario)?);
        return Ok(());
    };
    let mut keys = clients.keys();
    if let Some(key) = keys.find(|key| !["clients", "of", "at"].contains(&key.as_str())) {
        let message = format!("unknown field `{key}`, expected one of `clients`, `of`, `at`");
        return refuse("", message);
    }
    clients.retain(|_, value| !value.is_null());
    if let Some(name) = clients.get_mut("of") {
        *name = groups(name, scenario).within("of")?;
    }
    if let Some(names) = clients.get_mut("at") {
        let places = OneOrMany::deserialize(&*names).map_err(ScenarioError::from);
        let places = places.and_then(|names| all_named(&scenario.nodes, &names));
        *names = places.within("at")?.into();
    }
    Ok(())
}

/// Finds the nodes that something can happen to.
fn node(names: &OneOrMany<String>, scenario: &Scenario) -> Read<NodeChoice> {
    if let OneOf::Plain(name) = names {
        let message = match name.as_str() {
            "any" => return Ok(NodeChoice::Any),
            "below_root" if scenario.nodes.len() > 1 => return Ok(NodeChoice::AnyBelowRoot),
            "below_root" => "no node is below the root",
            "all" => "is all; give any, for a node by chance",
            name => {
                return Ok(match named(&scenario.nodes, name)?[..] {
                    [only] => NodeChoice::Node(only),
                    ref several => NodeChoice::AnyOf(several.to_vec()),
                });
            }
        };
        return refuse("", message);
    }
    let mut nodes = all_named(&scenario.nodes, names)?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(NodeChoice::AnyOf(nodes))
}

/// Finds the groups of a name.
fn groups(name: &Value, scenario: &Scenario) -> Read<Value> {
    let name = String::deserialize(name)?;
    let groups = scenario.clients.iter().enumerate();
    let found = groups.filter(|(_, group)| group.name == name);
    let found: Vec<usize> = found.map(|(place, _)| place).collect();
    match found.is_empty() {
        true => refuse("", format!("{name:?} is no group of clients")),
        false => Ok(found.into()),
    }
}

/// Replaces places in the fields of an event by names.
pub(super) fn to_names(event: &mut Fields, scenario: &Scenario) -> Read<()> {
    let node_name = |place: &usize| scenario.nodes.get(*place).map(|it| it.name.clone());
    let node_names = |places: &Value| -> Read<Value> {
        let places = Vec::<usize>::deserialize(places)?;
        Ok(places.iter().filter_map(node_name).collect())
    };
    for value in event.values_mut() {
        let Value::Object(choice) = value else {
            continue;
        };
        if let Some(groups) = choice.get_mut("of").filter(|it| it.is_array()) {
            // All groups that a name stands for have that name.
            let groups_of = Vec::<usize>::deserialize(&*groups)?.into_iter();
            let mut groups_of = groups_of.filter_map(|place| scenario.clients.get(place));
            *groups = groups_of.next().map(|group| group.name.clone()).into();
        }
        if let Some(nodes) = choice.get_mut("at").filter(|it| it.is_array()) {
            *nodes = node_names(nodes)?;
        }
        if let Some(nodes) = choice.get("any_of") {
            *value = node_names(nodes)?;
        } else if let Some(node) = choice.get("node") {
            *value = node_name(&usize::deserialize(node)?).into();
        }
    }
    Ok(())
}
