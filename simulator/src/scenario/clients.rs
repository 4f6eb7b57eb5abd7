//! Who asks: groups of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_documents::form::{At, Map};
use doorward_documents::placed_value::Position;
use doorward_engine::id::HolderName;

use crate::scenario::demand::Demand;
use crate::scenario::read::Reader;
use crate::scenario::shape::{Shape, count, list_of, record, text, up_to_all};
use crate::scenario::usage::Usage;
use crate::scenario::{CLIENTS_MAX, Scenario, choice};

const EXAMPLE: &str = "[{count: 10, wants: 5}]";

record! {
    /// Clients of one kind.
    #[derive(Clone, Debug)]
    pub struct ClientGroup ("{count: 10, wants: 5}", named_as_in_trace) {
        /// What each of them uses.
        first: Usage = (), flattened();
        /// A group of one client is called this; of more, `app-0`, `app-1` and so on. Clients of a trace have
        /// their own names, behind that of a group that has one.
        name: String = text(), or_from("`client`; needed if there are several groups", |map, reader| {
                absent_name(first.as_ref(), map, reader)
            }),
            check(|at, name: &String, reader| fits_clients(at, name, first.as_ref(), reader)),
            unless(|name: &String, _| clients_of_trace(first).is_some_and(|clients| {
                let prefix = format!("{name}/");
                !clients.iter().all(|client| client.starts_with(&prefix))
            }));
        /// How many. All groups together up to 5,000,000. Not for traces, which bring their clients along.
        count: usize = count(CLIENTS_MAX), or_from("`1`", |_, _| {
                Some(first.as_ref().and_then(clients_of_trace).map_or(1, <[String]>::len))
            }),
            check(|at, _, reader| is_no_trace(at, first.as_ref(), reader)),
            unless(|count: &usize, _| *count == 1 || clients_of_trace(first).is_some());
        /// At which nodes, in turn: a node, `leaves`, `all`, a key of the tree (all nodes that are made of it), or
        /// a list of these.
        nodes as "at": Vec<usize> = choice::places(), or_from("`leaves`", |_, reader| {
                reader.tree.as_ref().map(|tree| tree.leaves.clone())
            }),
            unless(|nodes: &Vec<usize>, of: &Scenario| *nodes == of.leaves()),
            by(|nodes: &Vec<usize>, of: &Scenario| {
                Ok::<_, crate::scenario::write::CannotWrite>(choice::names_of(nodes, of))
            });
        /// They start evenly spread over this time. `0s`: all at once.
        start_within: Duration = up_to_all(), or_from("the refresh interval", |_, reader| {
                let template = reader.templates.as_ref()?.find(&first.as_ref()?.resource);
                let refresh = template.map(|template| template.algorithm.refresh_interval);
                Some(refresh.unwrap_or_default().min(reader.end))
            }),
            unless(|within: &Duration, of: &Scenario| {
                let template = of.templates.find(&first.resource);
                let refresh = template.map(|template| template.algorithm.refresh_interval);
                *within == refresh.unwrap_or_default().min(of.duration)
            });
        /// What else each of them uses, all of different resources. One client asks for all of them with one
        /// request.
        also: Vec<Usage> = list_of("[{resource: other, wants: 5}]", record()), or_empty(),
            check(|at, also, reader| are_different(at, first.as_ref(), also, reader));
    }
}

impl ClientGroup {
    /// All that each of them uses.
    pub fn usages(&self) -> impl Iterator<Item = &Usage> {
        std::iter::once(&self.first).chain(&self.also)
    }

    /// One of these, by its place.
    pub fn usage(&self, place: usize) -> Option<&Usage> {
        match place.checked_sub(1) {
            None => Some(&self.first),
            Some(place) => self.also.get(place),
        }
    }

    /// The name of the client of that number.
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

fn absent_name(first: Option<&Usage>, map: &Map<'_>, reader: &mut Reader<'_>) -> Option<String> {
    if first.is_some_and(|first| clients_of_trace(first).is_some()) {
        return Some("trace".to_owned());
    }
    if reader.groups == 1 {
        return Some("client".to_owned());
    }
    let what = "each of several groups a name";
    map.need(&["name"], what, &mut reader.problems)?;
    None
}

/// Notes a name that clients cannot have, with a number behind it.
fn fits_clients(at: &At<'_>, name: &str, first: Option<&Usage>, reader: &mut Reader<'_>) {
    // The longest number that may be put behind a name.
    const NUMBERED: &str = "-4999999";
    if first.is_some_and(|first| clients_of_trace(first).is_some()) {
        return;
    }
    let checked = match name.is_empty() {
        true => HolderName::new(""),
        false => HolderName::new(&format!("{name}{NUMBERED}")),
    };
    if let Err(cause) = checked {
        reader.problems.wrong(at, cause.to_string());
    }
}

fn is_no_trace(at: &At<'_>, first: Option<&Usage>, reader: &mut Reader<'_>) {
    if let Some(clients) = first.and_then(clients_of_trace) {
        let message = format!("is not for traces; this one has {} clients", clients.len());
        reader.problems.wrong(at, message);
    }
}

/// Clients of a trace are called as they are there; after the name of the group, if it has one.
fn named_as_in_trace(
    mut group: ClientGroup,
    map: &Map<'_>,
    reader: &mut Reader<'_>,
) -> Option<ClientGroup> {
    let (Demand::Trace(trace), Some(at)) = (&mut group.first.demand, map.get(&["name"])) else {
        return Some(group);
    };
    for client in &mut trace.clients {
        *client = format!("{}/{client}", group.name);
        if let Err(cause) = HolderName::new(client) {
            let message = format!("the name of the client {client:?} {cause}");
            reader.problems.wrong(&at, message);
            return None;
        }
    }
    Some(group)
}

/// Notes what else they use if they cannot.
fn are_different(at: &At<'_>, first: Option<&Usage>, also: &[Usage], reader: &mut Reader<'_>) {
    let mut known: Vec<_> = first.map(|first| &first.resource).into_iter().collect();
    let each = at.list(EXAMPLE, &mut reader.problems).unwrap_or_default();
    for (at, usage) in each.into_iter().zip(also) {
        let Some(map) = at.map(EXAMPLE, &mut reader.problems) else {
            continue;
        };
        if let (Some(_), Some(at)) = (clients_of_trace(usage), map.get(&["wants"])) {
            let message = "is a trace, whose clients are a group of their own";
            reader.problems.wrong(&at, message);
            continue;
        }
        if known.contains(&&usage.resource) {
            let name = usage.resource.as_str();
            let at = map.get(&["resource"]).unwrap_or(at);
            let message = format!("{name:?} is used already; give another one");
            reader.problems.wrong(&at, message);
        }
        known.push(&usage.resource);
    }
}

/// All groups of a scenario.
pub(super) fn clients() -> Shape<Vec<ClientGroup>> {
    Shape::new(format!("list, as `{EXAMPLE}`"), |at, r| {
        let list = at.list(EXAMPLE, &mut r.problems)?;
        if list.is_empty() {
            let message = format!("is empty; give at least one group, as in {EXAMPLE}");
            r.problems.wrong(at, message);
            return None;
        }
        r.groups = list.len();
        let groups = list_of(EXAMPLE, record::<ClientGroup>()).read(at, r);
        let groups = groups?;
        let mut count = 0_usize;
        for (at, group) in list.iter().zip(&groups) {
            count = count.saturating_add(group.count);
            if count > CLIENTS_MAX {
                let message = format!("makes {count} clients; at most {CLIENTS_MAX} altogether");
                r.problems.wrong(at, message);
                return None;
            }
        }
        let places: Vec<Position> = list.iter().map(|at| at.node.place).collect();
        if !have_different_names(&places, &groups, r) {
            return None;
        }
        r.clients = Some(groups.clone());
        Some(groups)
    })
}

/// Whether no two clients have the same name.
fn have_different_names(places: &[Position], groups: &[ClientGroup], r: &mut Reader<'_>) -> bool {
    let mut are_unique = true;
    // Those whose clients are numbered, by the name before the number, and all other clients.
    let mut numbered: BTreeMap<&str, usize> = BTreeMap::new();
    let mut single: BTreeMap<&str, Position> = BTreeMap::new();
    for (place, group) in places.iter().zip(groups) {
        let twice = match clients_of_trace(&group.first) {
            Some(clients) => {
                let mut clients = clients.iter();
                clients.find(|client| single.insert(client, *place).is_some())
            }
            None if group.count > 1 => {
                let before = numbered.insert(&group.name, group.count);
                before.map(|_| &group.name)
            }
            None => single.insert(&group.name, *place).map(|_| &group.name),
        };
        if let Some(name) = twice {
            let message =
                format!("there is a client {name:?} already; give this group another name");
            r.problems.note(*place, "clients.name", message);
            are_unique = false;
        }
    }
    for (name, place) in single {
        let Some((before, number)) = name.rsplit_once('-') else {
            continue;
        };
        let parsed = number.parse::<usize>().ok();
        let parsed = parsed.filter(|parsed| parsed.to_string() == number);
        let count = numbered.get(before).copied().unwrap_or(0);
        if parsed.is_some_and(|number| number < count) {
            let message = format!(
                "there is a client {name:?} already, of the group {before:?}; give this group another name"
            );
            r.problems.note(place, "clients.name", message);
            are_unique = false;
        }
    }
    are_unique
}
