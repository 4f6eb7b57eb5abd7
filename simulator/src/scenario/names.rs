//! Names in a scenario file become places: nodes, groups of clients.

use std::time::Duration;

use doorward_documents::form::{hint, some_of};
use doorward_documents::placed_value::{PlacedKey, PlacedValue, Position, Value};
use doorward_engine::template::Templates;
use serde::Deserialize;

use crate::scenario::ClientGroup;
use crate::scenario::nodes::NamedNodes;
use crate::scenario::read::Files;
use crate::scenario::source::{OneOrMany, Read, ReadError, Within, read};

/// The parts of a scenario that are known while its file is read.
pub(super) struct Known<'f> {
    /// The folder of the scenario, or the library.
    pub(super) files: &'f Files,
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

/// Refuses a name that is not known.
pub(super) fn unknown(name: &str, what: &str, known: &[&str]) -> ReadError {
    let hint = match hint(name, known) {
        hint if hint.is_empty() => format!("; give one of {}", some_of(known.iter().copied())),
        hint => hint,
    };
    ReadError::new("", format!("{name:?} is no {what}{hint}"))
}

/// Some clients, as a file has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChosenClients {
    clients: usize,
    #[serde(default)]
    of: Option<String>,
    #[serde(default)]
    at: Option<OneOrMany<String>>,
}

impl Known<'_> {
    /// The nodes that something can happen to, with places instead of names.
    pub(super) fn node(&self, value: &PlacedValue) -> Read<PlacedValue> {
        let names: OneOrMany<String> = read(value)?;
        let (mut nodes, is_list) = match &names {
            OneOrMany::One(name) if name == "any" => return Ok(text("any", value.place)),
            OneOrMany::One(name) if name == "below_root" => {
                if self.tree.nodes.len() == 1 {
                    let message = "is below_root, but no node is below the root; give another node";
                    return Err(ReadError::new("", message));
                }
                return Ok(text("any_below_root", value.place));
            }
            OneOrMany::One(name) if name == "all" => {
                let message = "is all; give any, for a node by chance";
                return Err(ReadError::new("", message));
            }
            OneOrMany::One(name) => (self.tree.named(name)?, false),
            OneOrMany::Many(_) => (self.tree.all_named(&names)?, true),
        };
        nodes.sort_unstable();
        nodes.dedup();
        Ok(match nodes.as_slice() {
            [only] if !is_list => map(vec![("node", number(*only, value.place))], value.place),
            _ => map(vec![("any_of", numbers(&nodes, value.place))], value.place),
        })
    }

    /// Some clients, with places instead of names.
    pub(super) fn some_clients(&self, value: &PlacedValue) -> Read<PlacedValue> {
        let chosen: ChosenClients = read(value)?;
        let place = value.place;
        let mut entries = vec![("clients", number(chosen.clients, place))];
        if let Some(name) = &chosen.of {
            let groups = self.groups(name).within("of")?;
            entries.push(("of", numbers(&groups, place)));
        }
        if let Some(names) = &chosen.at {
            let nodes = self.tree.all_named(names).within("at")?;
            entries.push(("at", numbers(&nodes, place)));
        }
        Ok(map(entries, place))
    }

    /// The groups of a name.
    fn groups(&self, name: &str) -> Read<Vec<usize>> {
        let numbered = self.clients.iter().enumerate();
        let found = numbered.filter(|(_, group)| group.name == name);
        let found: Vec<usize> = found.map(|(number, _)| number).collect();
        if found.is_empty() {
            let known: Vec<&str> = self.clients.iter().map(|it| it.name.as_str()).collect();
            return Err(unknown(name, "group", &known));
        }
        Ok(found)
    }
}

fn text(text: &str, place: Position) -> PlacedValue {
    let value = Value::Text(text.to_owned());
    PlacedValue { place, value }
}

fn number(number: usize, place: Position) -> PlacedValue {
    let value = Value::Whole(number as i128);
    PlacedValue { place, value }
}

fn numbers(all: &[usize], place: Position) -> PlacedValue {
    let value = Value::List(all.iter().map(|it| number(*it, place)).collect());
    PlacedValue { place, value }
}

fn map(entries: Vec<(&str, PlacedValue)>, place: Position) -> PlacedValue {
    let key = |text: &str| PlacedKey {
        place,
        text: text.to_owned(),
    };
    let entries = entries.into_iter().map(|(name, value)| (key(name), value));
    let value = Value::Map(entries.collect());
    PlacedValue { place, value }
}
