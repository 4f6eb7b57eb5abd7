//! Faults: events, each with its times.
//!
//! A fault has one of `at`, `every` and `per_hour`, and one event, or several by weight under `one_of`. One key says
//! which event it is. Its value says to which node or to how many clients it happens; more keys stand beside it.

mod event;
mod words;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::scenario::Span;
pub use crate::scenario::fault::event::Event;
pub use crate::scenario::fault::words::{EtcdLoss, NodeServers, Side, ToEtcd};
use crate::scenario::forms::{Form, Maybe, OneOrMany, PerHour, Step, Time, UNSAID, Weight, unsaid};
pub use crate::scenario::nodes::NodeChoice;
use crate::scenario::nodes::all_named;
use crate::scenario::source::{
    Fields, Read, ScenarioError, Within, fields_of, is_within, kind_of, read_kind, refuse,
};
use crate::scenario::{ClientGroup, Node, Scenario};

/// Something that goes wrong, or is changed from outside.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The times.
    pub when: When,
    /// The events: one of these, by weight. A single one is certain.
    pub choices: Vec<(f64, Event)>,
}

/// The times of a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
pub enum When {
    /// Once.
    At {
        /// The time.
        #[serde(with = "Time")]
        at: Duration,
    },
    /// Regularly.
    Every {
        /// The time from one to the next.
        #[serde(rename = "every", with = "Step")]
        interval: Duration,
        /// The time of the first one. Absent: one interval.
        #[serde(default = "unsaid", with = "Time")]
        from: Duration,
        /// None happens later. Absent: to the end.
        #[serde(default, with = "Maybe::<Time>")]
        until: Option<Duration>,
    },
    /// By chance.
    #[serde(rename = "per_hour")]
    Random {
        /// The mean number in an hour.
        #[serde(with = "PerHour")]
        per_hour: f64,
        /// None happens earlier.
        #[serde(default, with = "Time")]
        from: Duration,
        /// None happens later. Absent: to the end.
        #[serde(default, with = "Maybe::<Time>")]
        until: Option<Duration>,
    },
}

/// The keys that say when something happens.
const WHEN: [&str; 5] = ["at", "every", "per_hour", "from", "until"];

impl When {
    /// Fills in the first time, and refuses times at which nothing would happen.
    fn complete(&mut self, end: Duration) -> Read<()> {
        let (first, until) = match self {
            Self::At { at } => return is_within(*at, end).within("at"),
            Self::Every {
                interval,
                from,
                until,
            } => {
                if *from == UNSAID {
                    is_within(*interval, end).within("every")?;
                    *from = *interval;
                }
                (*from, *until)
            }
            Self::Random { from, until, .. } => (*from, *until),
        };
        is_within(first, end).within("from")?;
        if until.is_some_and(|until| until < first) {
            return refuse("until", "is before the first time; give a later one");
        }
        Ok(())
    }
}

/// Some clients, which chance chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "clients, as in {clients: 3, of: GROUP, at: NODE}")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Clients"))]
pub struct ClientChoice {
    /// The number of clients, chosen by chance. At most as many as there are.
    #[serde(rename = "clients")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub count: usize,
    /// The name of their group. Absent: any group.
    #[serde(rename = "of")]
    pub group: Option<String>,
    /// Their nodes. Absent: any node.
    #[serde(rename = "at")]
    pub nodes: Option<OneOrMany<String>>,
}

impl ClientChoice {
    /// Chooses so many of all.
    pub fn any(count: usize) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    /// Chooses a client of a group.
    pub fn one_of(group: &ClientGroup) -> Self {
        Self {
            group: Some(group.name.clone()),
            ..Self::any(1)
        }
    }

    /// Says whether a group is meant.
    pub fn is_of(&self, group: &ClientGroup) -> bool {
        self.group.as_ref().is_none_or(|name| group.name == *name)
    }

    /// Finds the nodes that are meant. None: all.
    pub(crate) fn places(&self, nodes: &[Node]) -> Read<Option<Vec<usize>>> {
        let names = self.nodes.as_ref();
        names.map(|names| all_named(nodes, names)).transpose()
    }

    /// Counts the clients to choose from.
    fn number_of(&self, scenario: &Scenario) -> Read<usize> {
        let groups = scenario.clients.iter().filter(|it| self.is_of(it));
        if let (Some(name), None) = (&self.group, groups.clone().next()) {
            return refuse("of", format!("{name:?} is no group of clients"));
        }
        let meant = self.places(&scenario.nodes).within("at")?;
        let mut number = 0;
        for group in groups {
            let places = group.places(&scenario.nodes)?;
            // The first is at the first node, and so on in turn.
            for (turn, place) in places.iter().enumerate() {
                if meant.as_ref().is_none_or(|meant| meant.contains(place)) {
                    let (count, turns) = (group.count, places.len());
                    number += count / turns + usize::from(turn < count % turns);
                }
            }
        }
        Ok(number)
    }
}

/// The owners of clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Returns a fault that happens once.
    pub fn once(at: Duration, event: Event) -> Self {
        let (when, choices) = (When::At { at }, vec![(1.0, event)]);
        Self { when, choices }
    }

    /// Reads one. All but the faults of the scenario is known.
    pub(super) fn read(mut fields: Fields, scenario: &Scenario, folder: &Path) -> Read<Self> {
        fields.retain(|_, value| !value.is_null());
        let when = WHEN.iter().filter_map(|key| fields.remove_entry(*key));
        let when: Fields = when.collect();
        let mut when: When = read_kind(&kind_of(&when, &["from", "until"])?, when)?;
        when.complete(scenario.duration)?;
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

    /// The fault as a file has it.
    pub(super) fn to_file(&self) -> Read<Fields> {
        let mut fields = fields_of(&self.when)?;
        if let [(1.0, event)] = self.choices.as_slice() {
            fields.extend(fields_of(event)?);
            return Ok(fields);
        }
        let choices = self.choices.iter().map(|(weight, event)| {
            let mut fields = fields_of(event)?;
            fields.insert("weight".to_owned(), (*weight).into());
            Ok(fields)
        });
        let choices: Read<Value> = choices.collect::<Read<Vec<Fields>>>().map(Value::from);
        fields.insert("one_of".to_owned(), choices?);
        Ok(fields)
    }
}

/// Several events, by weight.
fn weighted(list: Value, scenario: &Scenario, folder: &Path) -> Read<Vec<(f64, Event)>> {
    let list: Vec<Fields> = serde_json::from_value(list)?;
    let mut choices = Vec::new();
    for (index, mut fields) in list.into_iter().enumerate() {
        let weight = fields.remove("weight").unwrap_or_else(|| 1.into());
        let weight = Weight::deserialize(weight).map_err(|it| ScenarioError::new("weight", it));
        let choice = weight.and_then(|it| Ok((it, Event::read(fields, scenario, folder)?)));
        choices.push(choice.within(&format!("[{index}]"))?);
    }
    if choices.iter().all(|(weight, _)| *weight == 0.0) {
        return refuse("", "has no event with a weight; give one a weight above 0");
    }
    Ok(choices)
}
