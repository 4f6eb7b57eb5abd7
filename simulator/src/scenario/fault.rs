//! Faults: events, each with its times.
//!
//! A fault has one of `at`, `every` and `per_hour`, and one event, or several by weight under `one_of`. One key says
//! which event it is. Its value says to which node or to how many clients it happens; more keys stand beside it.

mod event;
mod words;

use std::time::Duration;

use doorward_documents::placed_value::{PlacedKey, PlacedValue, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::scenario::ClientGroup;
pub use crate::scenario::fault::event::Event;
pub use crate::scenario::fault::words::{EtcdLoss, NodeServers, Side, ToEtcd};
use crate::scenario::forms::{As, Form, Maybe, PerHour, Step, Time, UNSAID, Weight, unsaid};
use crate::scenario::names::{Known, is_within};
use crate::scenario::source::{OneOrMany, Read, ReadError, Within, read};

/// Something that goes wrong, or is changed from outside.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The times.
    pub when: When,
    /// The events: one of these, by weight. A single one is certain.
    pub choices: Vec<(f64, Event)>,
}

/// The times of a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(untagged)]
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
            let message = "is before the first time; give a later one";
            return Err(ReadError::new("until", message));
        }
        Ok(())
    }
}

/// A fault as files have it.
#[derive(Serialize)]
pub(super) struct FaultFile {
    #[serde(flatten)]
    when: When,
    #[serde(flatten)]
    what: What,
}

/// An event, or several.
#[derive(Serialize)]
#[serde(untagged)]
enum What {
    Event(Event),
    OneOf { one_of: Vec<Weighted> },
}

/// One of several events.
#[derive(Serialize)]
struct Weighted {
    weight: f64,
    #[serde(flatten)]
    event: Event,
}

impl JsonSchema for FaultFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let when = generator.subschema_for::<When>();
        let event = generator.subschema_for::<Event>();
        let weight = generator.subschema_for::<As<Weight>>();
        let weighted = json_schema!({"allOf": [event], "properties": {"weight": weight}});
        let one_of = json_schema!({"type": "array", "items": weighted});
        let several = json_schema!({"required": ["one_of"], "properties": {"one_of": one_of}});
        json_schema!({"type": "object", "allOf": [when, {"anyOf": [event, several]}]})
    }
}

/// The weight of an event.
#[derive(Deserialize)]
struct OwnWeight {
    #[serde(default = "certain", with = "Weight")]
    weight: f64,
}

const fn certain() -> f64 {
    1.0
}

/// A duration between these two, by chance.
pub type Span = (Duration, Duration);

/// A node, or one of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeChoice {
    /// This one, by its place in the scenario.
    Node(usize),
    /// Any, by chance.
    Any,
    /// Any but the root, by chance.
    AnyBelowRoot,
    /// One of these, by chance; by their places in the scenario. At least one.
    AnyOf(Vec<usize>),
}

impl NodeChoice {
    /// The node, if only one can be meant.
    pub fn only(&self) -> Option<usize> {
        match self {
            Self::Node(node) => Some(*node),
            Self::AnyOf(nodes) => match nodes.as_slice() {
                [only] => Some(*only),
                _ => None,
            },
            Self::Any | Self::AnyBelowRoot => None,
        }
    }
}

/// Some clients, which chance chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Clients")]
pub struct ClientChoice {
    /// The number of clients, chosen by chance. At most as many as there are.
    #[serde(rename = "clients")]
    #[schemars(range(min = 1))]
    pub count: usize,
    /// The name of their group. Absent: any group.
    #[serde(default, rename = "of")]
    #[schemars(with = "Option<String>")]
    pub groups: Option<Vec<usize>>,
    /// Their nodes. Absent: any node.
    #[serde(default, rename = "at")]
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub nodes: Option<Vec<usize>>,
}

impl ClientChoice {
    /// Chooses so many of all.
    pub const fn any(count: usize) -> Self {
        Self {
            count,
            groups: None,
            nodes: None,
        }
    }

    /// Counts the clients to choose from.
    pub fn number_of(&self, all: &[ClientGroup]) -> usize {
        let mut number = 0;
        for (place, group) in all.iter().enumerate() {
            let groups = self.groups.as_ref();
            if groups.is_some_and(|groups| !groups.contains(&place)) {
                continue;
            }
            // The first is at the first node, and so on in turn.
            let turns = group.nodes.len().max(1);
            for (turn, node) in group.nodes.iter().enumerate() {
                let nodes = self.nodes.as_ref();
                if nodes.is_none_or(|nodes| nodes.contains(node)) {
                    number += group.count / turns + usize::from(turn < group.count % turns);
                }
            }
        }
        number
    }
}

/// The owners of clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ClockChoice {
    /// The servers of a node.
    Node(NodeChoice),
    /// Clients.
    Clients(ClientChoice),
}

type Entry = (PlacedKey, PlacedValue);

/// A map of some entries of a document.
fn map(value: &PlacedValue, entries: Vec<Entry>) -> PlacedValue {
    PlacedValue {
        place: value.place,
        value: Value::Map(entries),
    }
}

/// The entries of a map, apart: those with some keys, and all others.
fn apart(value: &PlacedValue, keys: &[&str]) -> Read<(PlacedValue, PlacedValue)> {
    let Value::Map(entries) = &value.value else {
        let message = format!(
            "is {}; give a map, as in {{at: 120s, kill: root}}",
            value.value.described()
        );
        return Err(ReadError::new("", message));
    };
    let is_chosen = |(key, _): &Entry| keys.contains(&key.text.as_str());
    let (some, others) = entries.iter().cloned().partition(is_chosen);
    Ok((map(value, some), map(value, others)))
}

impl Fault {
    /// Reads one.
    pub(super) fn read(value: &PlacedValue, known: &Known<'_>) -> Read<Self> {
        let (when, what) = apart(value, &WHEN)?;
        let mut when: When = read(&when)?;
        when.complete(known.end)?;
        let (choices, events) = apart(&what, &["one_of"])?;
        let Value::Map(choices) = &choices.value else {
            return Err(ReadError::new("", "is no map"));
        };
        let Some((_, list)) = choices.first() else {
            let choices = vec![(1.0, Event::read(&events, known)?)];
            return Ok(Self { when, choices });
        };
        if let Value::Map(others) = &events.value
            && let Some((key, _)) = others.first()
        {
            let message = "does not go with one_of; remove it";
            return Err(ReadError::new(&key.text, message));
        }
        let choices = weighted(list, known).within("one_of")?;
        Ok(Self { when, choices })
    }

    /// The fault as a file has it.
    pub(super) fn to_file(&self) -> FaultFile {
        let what = match self.choices.as_slice() {
            [(1.0, event)] => What::Event(event.clone()),
            choices => {
                let choices = choices.iter().cloned();
                let one_of = choices.map(|(weight, event)| Weighted { weight, event });
                What::OneOf {
                    one_of: one_of.collect(),
                }
            }
        };
        let when = self.when.clone();
        FaultFile { when, what }
    }
}

/// Several events, by weight.
fn weighted(list: &PlacedValue, known: &Known<'_>) -> Read<Vec<(f64, Event)>> {
    let Value::List(items) = &list.value else {
        let message = "give a list, as in [{weight: 3, kill: any}, {elect: any}]";
        return Err(ReadError::new("", message));
    };
    let one = |item| {
        let (weight, event) = apart(item, &["weight"])?;
        let OwnWeight { weight } = read(&weight)?;
        Ok((weight, Event::read(&event, known)?))
    };
    let mut choices = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let choice = one(item).within(&format!("[{index}]"));
        choices.push(choice?);
    }
    if choices.iter().all(|(weight, _)| *weight == 0.0) {
        let message = "has no event with a weight; give one a weight above 0";
        return Err(ReadError::new("", message));
    }
    Ok(choices)
}
