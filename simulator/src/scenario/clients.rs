//! Groups of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::id::HolderName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::demand::Demand;
use crate::scenario::forms::{ClientCount, Form, Maybe, Time};
use crate::scenario::names::Known;
use crate::scenario::source::{OneOf, OneOrMany, Read, ReadError, Within};
use crate::scenario::usage::{Usage, UsageFile};
use crate::scenario::{CLIENTS_MAX, Scenario};

/// Clients of one kind.
#[derive(Clone, Debug)]
pub struct ClientGroup {
    /// The first resource that each of them uses.
    pub first: Usage,
    /// A group of one client is called this; of more, `app-0`, `app-1` and so on.
    pub name: String,
    /// The number of clients.
    pub count: usize,
    /// Their nodes, in turn.
    pub nodes: Vec<usize>,
    /// They start evenly spread over this time.
    pub start_within: Duration,
    /// Other resources that each of them uses, all different.
    pub also: Vec<Usage>,
}

/// Clients of one kind.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClientGroup")]
pub(super) struct GroupFile {
    /// The name of a single client; several are called `app-0`, `app-1` and so on. Clients of a trace have their own
    /// names, behind that of the group. Absent: `client`; several groups need names.
    #[serde(default)]
    name: Option<String>,
    /// The number of clients. A trace says it itself. Absent: 1.
    #[serde(default, with = "Maybe::<ClientCount>")]
    count: Option<usize>,
    /// The nodes of the clients, in turn: a node, `leaves`, `all`, a key of the tree, or a list. Absent: `leaves`.
    #[serde(default)]
    at: Option<OneOrMany<String>>,
    /// The clients start evenly spread over this time. Absent: the refresh interval.
    #[serde(default, with = "Maybe::<Time>")]
    start_within: Option<Duration>,
    #[serde(flatten)]
    first: UsageFile,
    /// More resources that each client uses. A client asks for all of them with one request.
    #[serde(default)]
    also: Vec<UsageFile>,
}

impl ClientGroup {
    /// Iterates over all resources that each of them uses.
    pub fn usages(&self) -> impl Iterator<Item = &Usage> {
        std::iter::once(&self.first).chain(&self.also)
    }

    /// Finds one of these by its place.
    pub fn usage(&self, place: usize) -> Option<&Usage> {
        match place.checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.also.get(place),
        }
    }

    /// Returns the name of the client of that number.
    pub fn client_name(&self, number: usize) -> String {
        match clients_of_trace(&self.first) {
            Some(clients) => clients
                .get(number)
                .map_or_else(|| format!("{}-{number}", self.name), Clone::clone),
            _ if self.count == 1 => self.name.clone(),
            _ => format!("{}-{number}", self.name),
        }
    }
}

/// The clients of a trace, if that is what they want.
fn clients_of_trace(usage: &Usage) -> Option<&[String]> {
    match &usage.demand {
        Demand::Trace(trace) => Some(&trace.clients),
        _ => None,
    }
}

/// All groups of a scenario.
pub(super) fn resolved(files: Vec<GroupFile>, known: &Known) -> Read<Vec<ClientGroup>> {
    if files.is_empty() {
        let message = "is empty; give at least one group, as in [{count: 10, wants: 5}]";
        return Err(ReadError::new("", message));
    }
    let is_alone = files.len() == 1;
    let (mut groups, mut count) = (Vec::with_capacity(files.len()), 0_usize);
    for (index, file) in files.into_iter().enumerate() {
        let step = format!("[{index}]");
        let group = file.resolve(known, is_alone).within(&step)?;
        count = count.saturating_add(group.count);
        if count > CLIENTS_MAX {
            let message = format!("makes {count} clients; give at most {CLIENTS_MAX} altogether");
            return Err(ReadError::new(step, message));
        }
        groups.push(group);
    }
    have_different_names(&groups)?;
    Ok(groups)
}

impl GroupFile {
    fn resolve(self, known: &Known, is_alone: bool) -> Read<ClientGroup> {
        let mut first = self.first.resolve(known)?;
        let name = named(self.name, &mut first, is_alone).within("name")?;
        let count = match (clients_of_trace(&first), self.count) {
            (None, count) => count.unwrap_or(1),
            (Some(clients), None) => clients.len(),
            (Some(_), Some(_)) => {
                return Err(ReadError::new("count", "is not for traces; remove it"));
            }
        };
        let nodes = match &self.at {
            None => known.tree.leaves.clone(),
            Some(names) => known.tree.all_named(names).within("at")?,
        };
        let template = known.templates.find(&first.resource);
        let refresh = template.map_or(Duration::ZERO, |it| it.algorithm.refresh_interval);
        let start_within = self.start_within.unwrap_or(refresh.min(known.end));
        if start_within > known.end {
            let message = "is longer than the whole simulation; give less";
            return Err(ReadError::new("start_within", message));
        }
        let also = others(self.also, &first, known)?;
        Ok(ClientGroup {
            first,
            name,
            count,
            nodes,
            start_within,
            also,
        })
    }

    /// The group as a file has it.
    pub(super) fn of(group: &ClientGroup, scenario: &Scenario) -> Self {
        let names = group
            .nodes
            .iter()
            .filter_map(|node| scenario.nodes.get(*node));
        let names = names.map(|node| node.name.clone()).collect();
        let prefix = format!("{}/", group.name);
        let clients = clients_of_trace(&group.first);
        let is_named = clients.is_none_or(|all| all.iter().all(|it| it.starts_with(&prefix)));
        Self {
            name: is_named.then(|| group.name.clone()),
            count: (clients.is_none() && group.count > 1).then_some(group.count),
            at: (group.nodes != scenario.leaves()).then_some(OneOf::List(names)),
            start_within: Some(group.start_within),
            first: UsageFile::of(&group.first),
            also: group.also.iter().map(UsageFile::of).collect(),
        }
    }
}

/// The name of a group. That of a trace stands before the names of its clients.
fn named(name: Option<String>, first: &mut Usage, is_alone: bool) -> Read<String> {
    // The longest number that may be put behind a name.
    const NUMBERED: &str = "-4999999";
    let check = |name: &str| HolderName::new(name).map_err(|cause| ReadError::new("", cause));
    match (name, &mut first.demand) {
        (None, Demand::Trace(_)) => Ok("trace".to_owned()),
        (None, _) if is_alone => Ok("client".to_owned()),
        (None, _) => Err(ReadError::new("", "is missing; give each group a name")),
        (Some(name), Demand::Trace(trace)) => {
            for client in &mut trace.clients {
                *client = format!("{name}/{client}");
                check(client)?;
            }
            Ok(name)
        }
        (Some(name), _) => {
            check(&name)?;
            check(&format!("{name}{NUMBERED}"))?;
            Ok(name)
        }
    }
}

/// The other resources of the clients, which must be different.
fn others(files: Vec<UsageFile>, first: &Usage, known: &Known) -> Read<Vec<Usage>> {
    let mut also: Vec<Usage> = Vec::with_capacity(files.len());
    for (index, file) in files.into_iter().enumerate() {
        let step = format!("also[{index}]");
        let usage = file.resolve(known).within(&step)?;
        if clients_of_trace(&usage).is_some() {
            let message = "is a trace; give its clients a group of their own";
            return Err(ReadError::new("wants", message)).within(&step);
        }
        let mut used = std::iter::once(first).chain(&also);
        if used.any(|it| it.resource == usage.resource) {
            let message = format!(
                "{:?} is used already; give another one",
                usage.resource.as_str()
            );
            return Err(ReadError::new("resource", message)).within(&step);
        }
        also.push(usage);
    }
    Ok(also)
}

/// Refuses two clients of one name.
fn have_different_names(groups: &[ClientGroup]) -> Read<()> {
    let refuse = |index: usize, name: &str| {
        let message = format!("there is a client {name:?} already; give another name");
        Err(ReadError::new(format!("[{index}].name"), message))
    };
    // Groups of numbered clients, by the name before the number, and all other clients.
    let mut numbered: BTreeMap<&str, usize> = BTreeMap::new();
    let mut single: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate() {
        let names = match clients_of_trace(&group.first) {
            None if group.count > 1 => {
                if numbered.insert(&group.name, group.count).is_some() {
                    return refuse(index, &group.name);
                }
                continue;
            }
            None => std::slice::from_ref(&group.name),
            Some(clients) => clients,
        };
        for name in names {
            if single.insert(name, index).is_some() {
                return refuse(index, name);
            }
        }
    }
    for (name, index) in single {
        let Some((before, number)) = name.rsplit_once('-') else {
            continue;
        };
        let parsed = number.parse::<usize>().ok();
        let parsed = parsed.filter(|parsed| parsed.to_string() == number);
        let count = numbered.get(before).copied().unwrap_or(0);
        if parsed.is_some_and(|number| number < count) {
            return refuse(index, name);
        }
    }
    Ok(())
}
