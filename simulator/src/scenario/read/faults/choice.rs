//! To whom something happens.

use doorward_documents::tree::Value;
use doorward_engine::id::ResourceId;

use crate::scenario::fault::{ClientChoice, ClockChoice, NodeChoice};
use crate::scenario::read::Reader;
use crate::scenario::read::faults::Around;
use crate::scenario::read::form::{At, Map, hint, some_of};
use crate::scenario::{CLIENTS_MAX, ClientGroup};

/// Which nodes can be meant, besides the names of nodes.
const CHOICES: [&str; 3] = ["any", "below_root", "leaves"];

impl Reader<'_> {
    /// A node, or clients.
    pub(super) fn clock(&mut self, at: &At<'_>, around: &Around<'_>) -> Option<ClockChoice> {
        match at.node.value {
            Value::Map(_) => self.some_clients(at, around).map(ClockChoice::Clients),
            _ => self.node(at, around).map(ClockChoice::Node),
        }
    }

    /// One node; where several are named, one of them by chance.
    pub(super) fn node(&mut self, at: &At<'_>, around: &Around<'_>) -> Option<NodeChoice> {
        if let Value::List(_) = at.node.value {
            let mut nodes = self.places(at, around.tree?)?;
            nodes.sort_unstable();
            nodes.dedup();
            return Some(NodeChoice::AnyOf(nodes));
        }
        let name = at.text(&mut self.problems)?;
        let tree = around.tree?;
        match name.as_str() {
            "any" => return Some(NodeChoice::Any),
            "leaves" => return Some(one_of(tree.leaves.clone())),
            "below_root" if tree.nodes.len() > 1 => return Some(NodeChoice::AnyBelowRoot),
            "below_root" => {
                let message = "is below_root, but there is nothing below the root";
                self.problems.wrong(at, message);
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
        self.problems.wrong(at, message);
        None
    }

    /// `{clients: N}`, of a group, at nodes: so many, but not more than there are.
    pub(super) fn some_clients(
        &mut self,
        at: &At<'_>,
        around: &Around<'_>,
    ) -> Option<ClientChoice> {
        let map = at.map("{clients: 3}", &mut self.problems)?;
        map.check_keys(&["clients", "of", "at"], &mut self.problems);
        let count_at = map.need("clients", "how many", &mut self.problems);
        let groups = match map.get("of") {
            Some(at) => self.groups(&at, around.clients).map(Some),
            None => Some(None),
        };
        let nodes = match map.get("at") {
            Some(at) => around
                .tree
                .and_then(|tree| self.places(&at, tree))
                .map(Some),
            None => Some(None),
        };
        let (groups, nodes, count_at) = (groups?, nodes?, count_at?);
        let mut choice = ClientChoice {
            count: 0,
            groups,
            nodes,
        };
        let most = match around.clients {
            Some(clients) if !around.may_be_idle => choice.number_of(clients),
            _ => CLIENTS_MAX,
        };
        if most == 0 {
            self.problems
                .wrong(at, "is nobody: no such client is there");
            return None;
        }
        choice.count = count_at.count(most, &mut self.problems)?;
        Some(choice)
    }

    /// Which of the resources that clients use is meant, if that is said. None: it is noted what is wrong.
    pub(super) fn one_they_use(
        &mut self,
        map: &Map<'_>,
        around: &Around<'_>,
    ) -> Option<Option<ResourceId>> {
        let Some(at) = map.get("resource") else {
            return Some(None);
        };
        let name = at.text(&mut self.problems)?;
        let usages = around.clients?.iter().flat_map(ClientGroup::usages);
        let mut known: Vec<&ResourceId> = usages.map(|usage| &usage.resource).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(found) = known.iter().find(|id| id.as_str() == name) {
            return Some(Some((*found).clone()));
        }
        let known: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
        let hint = hint(&name, &known);
        let message = if hint.is_empty() {
            format!(
                "{name:?} is no resource that clients use; give one of {}",
                some_of(known.into_iter())
            )
        } else {
            format!("{name:?} is no resource that clients use{hint}")
        };
        self.problems.wrong(&at, message);
        None
    }

    /// The groups of a name.
    fn groups(&mut self, at: &At<'_>, clients: Option<&[ClientGroup]>) -> Option<Vec<usize>> {
        let name = at.text(&mut self.problems)?;
        let groups = clients?;
        let found: Vec<usize> = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.name == name)
            .map(|(number, _)| number)
            .collect();
        if found.is_empty() {
            let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            let hint = hint(&name, &known);
            let message = if hint.is_empty() {
                format!(
                    "{name:?} is no group; give one of {}",
                    some_of(known.into_iter())
                )
            } else {
                format!("{name:?} is no group{hint}")
            };
            self.problems.wrong(at, message);
            return None;
        }
        Some(found)
    }
}

fn one_of(mut nodes: Vec<usize>) -> NodeChoice {
    nodes.sort_unstable();
    nodes.dedup();
    match nodes.as_slice() {
        [only] => NodeChoice::Node(*only),
        _ => NodeChoice::AnyOf(nodes),
    }
}
