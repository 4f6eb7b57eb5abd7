//! Names in a scenario file become places: nodes, groups of clients. A written file has names again.

use std::cell::RefCell;
use std::time::Duration;

use doorward_engine::template::Templates;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::ClientGroup;
use crate::scenario::fault::NodeChoice;
use crate::scenario::forms::{Form, schema};
use crate::scenario::nodes::NamedNodes;
use crate::scenario::read::Files;
use crate::scenario::source::{OneOf, OneOrMany, Read, ReadError};

/// The parts of a scenario that are known while its file is read.
pub(super) struct Known {
    /// The folder of the scenario, or the library.
    pub(super) files: Files,
    /// The duration of the simulation.
    pub(super) end: Duration,
    /// Faults may concern no client, or fewer than they say.
    pub(super) may_be_idle: bool,
    /// The templates at the start.
    pub(super) templates: Templates,
    /// The servers.
    pub(super) tree: NamedNodes,
    /// All clients.
    pub(super) clients: Vec<ClientGroup>,
}

thread_local! {
    /// The names in the scenario whose faults are being read or written.
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// Refuses a time after the end.
pub(super) fn is_within(time: Duration, end: Duration) -> Read<()> {
    if time < end {
        return Ok(());
    }
    let time = humantime::format_duration(time);
    let end = humantime::format_duration(end);
    let message = format!("is {time}; give a time before the end of the simulation, {end}");
    Err(ReadError::new("", message))
}

/// Calls a function with the names of the scenario whose faults are being read or written.
pub(super) fn with_known<T>(act: impl FnOnce(&Known) -> Read<T>) -> Read<T> {
    KNOWN.with_borrow(|known| match known {
        Some(known) => act(known),
        None => Err(ReadError::new("", "names are not known here")),
    })
}

impl Known {
    /// Reads or writes faults, whose names are these.
    pub(super) fn during<T>(self, act: impl FnOnce() -> T) -> (T, Option<Self>) {
        let before = KNOWN.replace(Some(self));
        let result = act();
        (result, KNOWN.replace(before))
    }

    /// The nodes that something can happen to.
    fn node(&self, names: &OneOrMany<String>) -> Read<NodeChoice> {
        let mut nodes = match names {
            OneOf::Plain(name) if name == "any" => return Ok(NodeChoice::Any),
            OneOf::Plain(name) if name == "below_root" => {
                return match self.tree.nodes.len() {
                    1 => Err(ReadError::new("", "no node is below the root")),
                    _ => Ok(NodeChoice::AnyBelowRoot),
                };
            }
            OneOf::Plain(name) if name == "all" => {
                let message = "is all; give any, for a node by chance";
                return Err(ReadError::new("", message));
            }
            _ => self.tree.all_named(names)?,
        };
        nodes.sort_unstable();
        nodes.dedup();
        Ok(match (names, nodes.as_slice()) {
            (OneOf::Plain(_), [only]) => NodeChoice::Node(*only),
            _ => NodeChoice::AnyOf(nodes),
        })
    }

    /// The name of a node.
    fn name(&self, node: usize) -> Read<String> {
        let node = self.tree.nodes.get(node).map(|node| node.name.clone());
        node.ok_or_else(|| ReadError::new("", "names a node that is not there"))
    }

    /// The names of nodes.
    fn names(&self, nodes: &[usize]) -> Read<OneOrMany<String>> {
        let names: Read<_> = nodes.iter().map(|node| self.name(*node)).collect();
        names.map(OneOf::List)
    }
}

impl<'de> Deserialize<'de> for NodeChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = OneOrMany::deserialize(from)?;
        with_known(|known| known.node(&names)).map_err(D::Error::custom)
    }
}

impl Serialize for NodeChoice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let names = with_known(|known| match self {
            Self::Any => Ok(OneOf::Plain("any".to_owned())),
            Self::AnyBelowRoot => Ok(OneOf::Plain("below_root".to_owned())),
            Self::Node(node) => known.name(*node).map(OneOf::Plain),
            Self::AnyOf(nodes) => known.names(nodes),
        });
        names.map_err(S::Error::custom)?.serialize(to)
    }
}

schema!([] NodeChoice: |generator| OneOrMany::<String>::json_schema(generator));

/// Nodes by their names.
pub(super) struct NodeNames;

schema!([] NodeNames: |generator| OneOrMany::<String>::json_schema(generator));

impl Form for NodeNames {
    type Value = Vec<usize>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
        let names = OneOrMany::deserialize(from)?;
        with_known(|known| known.tree.all_named(&names)).map_err(D::Error::custom)
    }

    fn serialize<S: Serializer>(nodes: &Vec<usize>, to: S) -> Result<S::Ok, S::Error> {
        let names = with_known(|known| known.names(nodes));
        names.map_err(S::Error::custom)?.serialize(to)
    }
}

/// Groups of clients by their name.
pub(super) struct GroupName;

schema!([] GroupName: |generator| String::json_schema(generator));

impl Form for GroupName {
    type Value = Vec<usize>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
        let name = String::deserialize(from)?;
        let groups = with_known(|known| {
            let groups = known.clients.iter().enumerate();
            let found = groups.filter(|(_, group)| group.name == name);
            let found: Vec<usize> = found.map(|(number, _)| number).collect();
            match found.is_empty() {
                true => Err(ReadError::new(
                    "",
                    format!("{name:?} is no group of clients"),
                )),
                false => Ok(found),
            }
        });
        groups.map_err(D::Error::custom)
    }

    fn serialize<S: Serializer>(groups: &Vec<usize>, to: S) -> Result<S::Ok, S::Error> {
        let name = with_known(|known| {
            let groups = groups.iter().filter_map(|group| known.clients.get(*group));
            let mut names: Vec<String> = groups.map(|group| group.name.clone()).collect();
            names.dedup();
            let one = <[String; 1]>::try_from(names);
            one.map_err(|_| ReadError::new("", "clients of several groups, or of none"))
        });
        let [name] = name.map_err(S::Error::custom)?;
        name.serialize(to)
    }
}
