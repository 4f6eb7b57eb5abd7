//! Faults: events, each with its times.
//!
//! A fault has one of `at`, `every` and `per_hour`, and one event, or several by weight under `one_of`. One key says
//! which event it is. Its value says to which node or to how many clients it happens; more keys stand beside it.

mod event;

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

pub use crate::scenario::Span;
pub use crate::scenario::fault::event::{EtcdLoss, Event, NodeServers, Side, ToEtcd};
use crate::scenario::forms::{
    Fields, Names, PerHour, Read, ScenarioError, Step, Time, Weight, Within, is_within, kind_of,
    read_kind, refuse,
};
pub use crate::scenario::nodes::NodeChoice;
use crate::scenario::{CLIENTS_MAX, ClientGroup, Node, Scenario, all_named};

/// Something that goes wrong, or is changed from outside.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The times.
    pub when: When,
    /// The events: one of these, by weight. A single one is certain.
    pub choices: Vec<(f64, Event)>,
}

/// The times of a fault.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged, !deny_unknown_fields))]
pub enum When {
    /// Once.
    At {
        /// The time.
        at: Time,
    },
    /// Regularly.
    Every {
        /// The time from one to the next.
        every: Step,
        /// The time of the first one. Absent: one interval.
        from: Option<Time>,
        /// None happens later. Absent: to the end.
        until: Option<Time>,
    },
    /// By chance.
    PerHour {
        /// The mean number in an hour.
        per_hour: PerHour,
        /// None happens earlier.
        #[serde(default)]
        from: Time,
        /// None happens later. Absent: to the end.
        until: Option<Time>,
    },
}

/// The keys that say when something happens.
const WHEN: [&str; 5] = ["at", "every", "per_hour", "from", "until"];

impl When {
    /// Refuses times at which nothing would happen.
    fn check(&self, end: Step) -> Read<()> {
        let (first, until) = match *self {
            Self::At { at } => return is_within(at, end).within("at"),
            Self::Every { every, from, until } => {
                let every = Time(every.0);
                if from.is_none() {
                    is_within(every, end).within("every")?;
                }
                (from.unwrap_or(every), until)
            }
            Self::PerHour { from, until, .. } => (from, until),
        };
        is_within(first, end).within("from")?;
        if until.is_some_and(|until| until < first) {
            return refuse("until", "is before the first time; give a later one");
        }
        Ok(())
    }
}

/// Some clients, which chance chooses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "clients, as in {clients: 3, of: GROUP, at: NODE}")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Clients"))]
pub struct ClientChoice {
    /// The number of clients, chosen by chance. At most as many as there are.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub clients: usize,
    /// The name of their group. Absent: any group.
    pub of: Option<String>,
    /// Their nodes. Absent: any node.
    pub at: Option<Names>,
}

impl ClientChoice {
    /// Says whether a group is meant.
    pub fn is_of(&self, group: &ClientGroup) -> bool {
        self.of.as_ref().is_none_or(|name| group.name == *name)
    }

    /// Finds the nodes that are meant. None: all.
    pub(crate) fn places(&self, nodes: &[Node]) -> Read<Option<Vec<usize>>> {
        let names = self.at.as_ref();
        names.map(|names| all_named(nodes, names)).transpose()
    }

    /// Refuses more clients than there are.
    fn check(&self, scenario: &Scenario, kind: &str) -> Read<()> {
        let number = self.number_of(scenario).within(kind)?;
        let most = number.max(if scenario.idle_faults { CLIENTS_MAX } else { 0 });
        let message = match self.clients {
            _ if most == 0 => "there is no such client; change `of` or `at`".to_owned(),
            count if (1..=most).contains(&count) => return Ok(()),
            count => format!("is {count}; give a whole number from 1 to {most}"),
        };
        refuse("clients", message)
    }

    /// Counts the clients to choose from.
    fn number_of(&self, scenario: &Scenario) -> Read<usize> {
        let groups = scenario.clients.iter().filter(|it| self.is_of(it));
        if let (Some(name), None) = (&self.of, groups.clone().next()) {
            return refuse("of", format!("{name:?} is no group of clients"));
        }
        let meant = self.places(&scenario.nodes).within("at")?;
        let is_meant = |place: &&usize| meant.as_ref().is_none_or(|meant| meant.contains(place));
        let of_group = |group: &ClientGroup| {
            let places = group.places(&scenario.nodes)?;
            // The first client is at the first node, and so on in turn.
            let in_turn = places.iter().cycle().take(group.count.0);
            Ok(in_turn.filter(is_meant).count())
        };
        groups.map(of_group).sum()
    }
}

/// The owners of clocks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
#[serde(expecting = "give a node, or clients as in {clients: 3, of: GROUP, at: NODE}")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum ClockChoice {
    /// The servers of a node.
    Node(NodeChoice),
    /// Clients.
    Clients(ClientChoice),
}

impl Fault {
    /// Reads one. All but the faults of the scenario is known.
    pub(super) fn read(mut fields: Fields, scenario: &Scenario, folder: &Path) -> Read<Self> {
        fields.retain(|_, value| !value.is_null());
        let when = WHEN.iter().filter_map(|key| fields.remove_entry(*key));
        let when: Fields = when.collect();
        let when: When = read_kind(&kind_of(&when, &["from", "until"])?, when)?;
        when.check(scenario.duration)?;
        let Some(list) = fields.remove("one_of") else {
            let choices = vec![(1.0, Event::read(fields, scenario, folder)?)];
            return Ok(Self { when, choices });
        };
        if let Some(key) = fields.keys().next() {
            return refuse(key, "does not go with one_of; remove it");
        }
        let choices = weighted(list, scenario, folder).within("one_of")?;
        Ok(Self { when, choices })
    }
}

/// Several events, by weight.
fn weighted(list: Value, scenario: &Scenario, folder: &Path) -> Read<Vec<(f64, Event)>> {
    let list: Vec<Fields> = serde_json::from_value(list)?;
    let mut choices = Vec::new();
    for (index, mut fields) in list.into_iter().enumerate() {
        let weight = fields.remove("weight").unwrap_or_else(|| 1.into());
        let weight = Weight::deserialize(weight).map_err(|it| ScenarioError::new("weight", it));
        let choice = weight.and_then(|it| Ok((it.0, Event::read(fields, scenario, folder)?)));
        choices.push(choice.within(&format!("[{index}]"))?);
    }
    if choices.iter().all(|(weight, _)| *weight == 0.0) {
        return refuse("", "has no event with a weight; give one a weight above 0");
    }
    Ok(choices)
}
