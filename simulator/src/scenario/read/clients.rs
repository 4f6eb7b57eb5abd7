//! Who asks: groups of clients.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_documents::tree::{Place, Value};
use doorward_engine::id::HolderName;
use doorward_engine::template::Templates;

use crate::scenario::demand::Demand;
use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, Map};
use crate::scenario::read::tree::Tree;
use crate::scenario::{CLIENTS_MAX, ClientGroup};

const KEYS: [&str; 10] = [
    "name",
    "count",
    "at",
    "resource",
    "priority",
    "mode",
    "wants",
    "limiter",
    "start_within",
    "also",
];

/// What nodes clients are at, besides the names of nodes.
const PLACES: [&str; 2] = ["leaves", "all"];

const EXAMPLE: &str = "[{count: 10, wants: 5}]";

/// What a group is read with.
pub(super) struct Around<'a> {
    pub(super) duration: Duration,
    pub(super) templates: Option<&'a Templates>,
    tree: Option<&'a Tree>,
    is_alone: bool,
}

impl Reader<'_> {
    /// None: it is noted what is wrong with one of them. What is not known, because there is
    /// something wrong with it, is not asked of them.
    pub(super) fn clients(
        &mut self,
        map: &Map<'_>,
        duration: Duration,
        templates: Option<&Templates>,
        tree: Option<&Tree>,
    ) -> Option<Vec<ClientGroup>> {
        let what = format!("a list of those who ask, as in {EXAMPLE}");
        let at = map.need("clients", &what, &mut self.problems)?;
        let list = at.list(EXAMPLE, &mut self.problems)?;
        if list.is_empty() {
            let message = format!("is empty; give at least one group, as in {EXAMPLE}");
            self.problems.wrong(&at, message);
            return None;
        }
        let around = Around {
            duration,
            templates,
            tree,
            is_alone: list.len() == 1,
        };
        let mut groups = Vec::new();
        let (mut count, mut is_whole) = (0_usize, true);
        for at in &list {
            match self.group(at, &around) {
                Some(group) => {
                    count = count.saturating_add(group.count);
                    if count > CLIENTS_MAX {
                        let message =
                            format!("makes {count} clients; at most {CLIENTS_MAX} altogether");
                        self.problems.wrong(at, message);
                        return None;
                    }
                    groups.push((at.node.place, group));
                }
                None => is_whole = false,
            }
        }
        is_whole &= self.names_are_unique(&groups);
        let groups = groups.into_iter().map(|(_, group)| group).collect();
        is_whole.then_some(groups)
    }

    fn group(&mut self, at: &At<'_>, around: &Around<'_>) -> Option<ClientGroup> {
        let map = at.map("{count: 10, wants: 5}", &mut self.problems)?;
        map.check_keys(&KEYS, &mut self.problems);
        let mut demand = self.wants(&map, around.duration);
        let trace = match &mut demand {
            Some(Demand::Trace(trace)) => Some(&mut trace.clients),
            _ => None,
        };
        let (name, count) = match trace {
            Some(clients) => self.names_of_trace(&map, clients),
            None => (self.group_name(&map, around), self.group_count(&map)),
        };
        let nodes = match map.get("at") {
            Some(at) => around.tree.and_then(|tree| self.places(&at, tree)),
            None => around.tree.map(|tree| tree.leaves.clone()),
        };
        let first = self.usage(&map, demand, around.templates);
        let also = self.also(&map, first.as_ref(), around);
        let start_within = match map.get("start_within") {
            Some(at) => self.start_within(&at, around.duration),
            None => {
                let template = first.as_ref().zip(around.templates);
                let template = template.and_then(|(it, templates)| templates.find(&it.resource));
                let refresh = template.map(|template| template.algorithm.refresh_interval);
                Some(refresh.unwrap_or_default().min(around.duration))
            }
        };
        Some(ClientGroup {
            name: name?,
            count: count?,
            nodes: nodes?,
            first: first?,
            also: also?,
            start_within: start_within?,
        })
    }

    /// Clients of a trace are called as they are there; after the name of the group, if it has one.
    fn names_of_trace(
        &mut self,
        map: &Map<'_>,
        clients: &mut [String],
    ) -> (Option<String>, Option<usize>) {
        if let Some(at) = map.get("count") {
            let message = format!("is not for traces; this one has {} clients", clients.len());
            self.problems.wrong(&at, message);
        }
        let Some(at) = map.get("name") else {
            return (Some("trace".to_owned()), Some(clients.len()));
        };
        let name = at.text(&mut self.problems);
        for client in clients.iter_mut() {
            *client = format!("{}/{client}", name.as_deref().unwrap_or_default());
            if let Err(cause) = HolderName::new(client) {
                let message = format!("the name of the client {client:?} {cause}");
                self.problems.wrong(&at, message);
                return (None, None);
            }
        }
        (name, Some(clients.len()))
    }

    fn group_name(&mut self, map: &Map<'_>, around: &Around<'_>) -> Option<String> {
        // The longest number that may be put behind a name.
        const NUMBERED: &str = "-4999999";
        let at = match map.get("name") {
            None if around.is_alone => return Some("client".to_owned()),
            _ => map.need("name", "each of several groups a name", &mut self.problems)?,
        };
        let name = at.text(&mut self.problems)?;
        let checked = match name.is_empty() {
            true => HolderName::new(""),
            false => HolderName::new(&format!("{name}{NUMBERED}")),
        };
        if let Err(cause) = checked {
            self.problems.wrong(&at, cause.to_string());
            return None;
        }
        Some(name)
    }

    fn group_count(&mut self, map: &Map<'_>) -> Option<usize> {
        let at = map.get("count");
        at.map_or(Some(1), |at| at.count(CLIENTS_MAX, &mut self.problems))
    }

    /// `leaves`, `all`, a node, all nodes of a key; or a list of them.
    pub(super) fn places(&mut self, at: &At<'_>, tree: &Tree) -> Option<Vec<usize>> {
        let Value::List(_) = at.node.value else {
            return self.place(at, tree);
        };
        let list = at.list("[leaf-1, leaf-2]", &mut self.problems)?;
        if list.is_empty() {
            self.problems.wrong(at, "is empty; give at least one node");
            return None;
        }
        let each: Vec<Option<Vec<usize>>> = list.iter().map(|at| self.place(at, tree)).collect();
        let each: Option<Vec<Vec<usize>>> = each.into_iter().collect();
        Some(each?.concat())
    }

    pub(super) fn place(&mut self, at: &At<'_>, tree: &Tree) -> Option<Vec<usize>> {
        let name = at.text(&mut self.problems)?;
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
            self.problems.wrong(at, message);
        }
        found
    }

    fn start_within(&mut self, at: &At<'_>, duration: Duration) -> Option<Duration> {
        let within = at.duration(&mut self.problems)?;
        if within > duration {
            let message = "is longer than the whole simulation; give less";
            self.problems.wrong(at, message);
            return None;
        }
        Some(within)
    }

    /// Whether no two clients have the same name.
    fn names_are_unique(&mut self, groups: &[(Place, ClientGroup)]) -> bool {
        let mut are_unique = true;
        // Those whose clients are numbered, by the name before the number, and all other clients.
        let mut numbered: BTreeMap<&str, usize> = BTreeMap::new();
        let mut single: BTreeMap<&str, Place> = BTreeMap::new();
        for (place, group) in groups {
            let twice = match &group.first.demand {
                Demand::Trace(trace) => {
                    let mut clients = trace.clients.iter();
                    clients.find(|client| single.insert(client, *place).is_some())
                }
                _ if group.count > 1 => {
                    let before = numbered.insert(&group.name, group.count);
                    before.map(|_| &group.name)
                }
                _ => single.insert(&group.name, *place).map(|_| &group.name),
            };
            if let Some(name) = twice {
                let message =
                    format!("there is a client {name:?} already; give this group another name");
                self.problems.note(*place, "clients.name", message);
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
                self.problems.note(place, "clients.name", message);
                are_unique = false;
            }
        }
        are_unique
    }
}
