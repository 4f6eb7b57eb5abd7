//! Groups of clients.

use std::collections::HashSet;
use std::mem;
use std::path::Path;
use std::time::Duration;

use doorward_engine::id::HolderName;
use serde::Deserialize;

use crate::scenario::forms::{
    ClientCount, Names, Read, ScenarioError, Time, UNSAID, Within, refuse, unsaid,
};
use crate::scenario::{CLIENTS_MAX, Demand, Node, Scenario, Usage, all_named, leaves_of};

/// How clients talk to their server, or servers to their parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
pub enum Connection {
    /// By calls: changes come with the next refresh.
    #[default]
    Poll,
    /// On a stream: changes are pushed.
    Stream,
}

/// Clients of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientGroup {
    /// The first resource that each of them uses.
    #[serde(flatten)]
    pub first: Usage,
    /// The name of a single client; several are called `app-0`, `app-1` and so on. Clients of a trace have their own
    /// names, behind that of the group. Absent: `client`; several groups need names.
    #[serde(default)]
    pub name: String,
    /// The number of clients. A trace says it itself. Absent: 1.
    #[serde(default)]
    pub count: ClientCount,
    /// The nodes of the clients, in turn: a node, `leaves`, `all`, a key of the tree, or a list. Absent: `leaves`.
    pub at: Option<Names>,
    /// The clients start evenly spread over this time. Absent: the refresh interval.
    #[serde(default = "unsaid")]
    pub start_within: Time,
    /// `stream` for clients to which the server pushes changes, as to those of the library. Absent: `poll`.
    #[serde(default, rename = "link")]
    pub connection: Connection,
    /// More resources that each client uses, all different. A client asks for all of them with one request.
    #[serde(default)]
    pub also: Vec<Usage>,
}

impl ClientGroup {
    /// Iterates over all resources that each of them uses.
    pub fn usages(&self) -> impl Iterator<Item = &Usage> {
        std::iter::once(&self.first).chain(&self.also)
    }

    /// Finds the nodes of its clients, in turn.
    ///
    /// # Errors
    ///
    /// If a node is unknown.
    pub fn places(&self, nodes: &[Node]) -> Result<Vec<usize>, ScenarioError> {
        match &self.at {
            None => Ok(leaves_of(nodes)),
            Some(names) => all_named(nodes, names),
        }
    }

    /// Returns the name of the client of that number.
    pub fn client_name(&self, number: usize) -> String {
        let of_trace = clients_of_trace(&self.first).and_then(|clients| clients.get(number));
        match of_trace {
            Some(name) => name.clone(),
            None if self.count.0 == 1 => self.name.clone(),
            None => format!("{}-{number}", self.name),
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

/// Completes all groups of a scenario, of which the templates and nodes are known.
pub(super) fn complete(groups: &mut [ClientGroup], scenario: &Scenario, folder: &Path) -> Read<()> {
    if groups.is_empty() {
        let message = "is empty; give at least one group, as in [{count: 10, wants: 5}]";
        return refuse("", message);
    }
    let (is_alone, mut count) = (groups.len() == 1, 0_usize);
    for (index, group) in groups.iter_mut().enumerate() {
        let step = format!("[{index}]");
        group.complete(scenario, folder, is_alone).within(&step)?;
        count = count.saturating_add(group.count.0);
        if count > CLIENTS_MAX {
            let message = format!("makes {count} clients; give at most {CLIENTS_MAX} altogether");
            return refuse(step, message);
        }
    }
    have_different_names(groups)
}

impl ClientGroup {
    fn complete(&mut self, scenario: &Scenario, folder: &Path, is_alone: bool) -> Read<()> {
        self.first.complete(scenario, folder)?;
        self.complete_name(is_alone).within("name")?;
        self.count.0 = match (clients_of_trace(&self.first), self.count.0) {
            (None, count) => count.max(1),
            (Some(clients), 0) => clients.len(),
            _ => return refuse("count", "is not for traces; remove it"),
        };
        self.places(&scenario.nodes).within("at")?;
        if self.start_within.0 == UNSAID {
            let template = scenario.templates.find(&self.first.resource);
            let refresh = template.map_or(Duration::ZERO, |it| it.algorithm.refresh_interval);
            self.start_within.0 = refresh.min(scenario.duration.0);
        }
        if self.start_within.0 > scenario.duration.0 {
            let message = "is longer than the whole simulation; give less";
            return refuse("start_within", message);
        }
        for (index, usage) in mem::take(&mut self.also).into_iter().enumerate() {
            let step = format!("also[{index}]");
            self.add(usage, scenario, folder).within(&step)?;
        }
        Ok(())
    }

    /// Fills in the name. That of a trace stands before the names of its clients.
    fn complete_name(&mut self, is_alone: bool) -> Read<()> {
        match (self.name.as_str(), &mut self.first.demand) {
            ("", Demand::Trace(_)) => "trace".clone_into(&mut self.name),
            ("", _) if is_alone => "client".clone_into(&mut self.name),
            ("", _) => return refuse("", "is missing; give each group a name"),
            (name, Demand::Trace(trace)) => {
                for client in &mut trace.clients {
                    *client = format!("{name}/{client}");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds another resource, which no other usage may have.
    fn add(&mut self, mut usage: Usage, scenario: &Scenario, folder: &Path) -> Read<()> {
        usage.complete(scenario, folder)?;
        if clients_of_trace(&usage).is_some() {
            return refuse("wants", "is a trace; give its clients a group of their own");
        }
        if self.usages().any(|it| it.resource == usage.resource) {
            let id = usage.resource.as_str();
            let message = format!("{id:?} is used already; give another one");
            return refuse("resource", message);
        }
        self.also.push(usage);
        Ok(())
    }
}

/// Refuses invalid names, and two clients of one name.
fn have_different_names(groups: &[ClientGroup]) -> Read<()> {
    let mut names = HashSet::new();
    for (index, group) in groups.iter().enumerate() {
        let of_group = (0..group.count.0).map(|number| group.client_name(number));
        for name in of_group {
            let checked = HolderName::new(&name).map_err(|cause| ScenarioError::new("name", cause));
            checked.within(&format!("[{index}]"))?;
            if let Some(name) = names.replace(name) {
                let message = format!("there is a client {name:?} already; give another name");
                return refuse(format!("[{index}].name"), message);
            }
        }
    }
    Ok(())
}
