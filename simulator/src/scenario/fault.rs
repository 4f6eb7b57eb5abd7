//! What goes wrong, and when.
//!
//! A fault has one of `at`, `every` and `per_hour`, and one event, or several by weight under
//! `one_of`. An event is one key that says what happens, whose value says to whom: a node, or so
//! many clients; what else there is to say stands beside it.

mod event;

use std::time::Duration;

use doorward_documents::form::{At, Map};

use crate::scenario::choice::{self, groups, places};
use crate::scenario::declared::{Fields, Written};
pub use crate::scenario::fault::event::{Event, NodeServers, Side, ToEtcd};
use crate::scenario::read::Reader;
use crate::scenario::shape::{Shape, duration, list_of, number, record, step, time, whole};
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;
use crate::scenario::{ClientGroup, Scenario};

/// The least that may happen by chance in an hour: once in a century.
const PER_HOUR_MIN: f64 = 1e-6;

/// The most that may happen by chance in an hour: a thousand a second.
const PER_HOUR_MAX: f64 = 3.6e6;

/// The largest weight: one that others can still be compared with.
const WEIGHT_MAX: f64 = 1e9;

/// Something that goes wrong, or is changed from outside.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub when: When,
    /// What: one of these, by weight. One that stands alone is certain.
    pub choices: Vec<(f64, Event)>,
}

kinds! {
    /// When something happens.
    #[derive(Clone, Debug, PartialEq)]
    pub enum When, beside() {
        /// Once, then.
        At as "at" (at: Duration = time(), "when it happens");
        /// Every so often.
        Every as "every" {
            /// From one to the next.
            interval as "every": Duration = step(), needed("when it happens");
            /// The first.
            from: Duration = time(), or_from("one interval", |map, reader| {
                time().read(&map.get(&["every"])?, reader)
            });
            /// None later than this. Absent: to the end.
            until: Option<Duration> = duration(), optional("the end"),
                check(|at, until, reader| is_not_before(at, *until, from, reader));
        };
        /// By chance, so often on average.
        Random as "per_hour" {
            /// On average.
            per_hour: f64 = number(PER_HOUR_MIN, PER_HOUR_MAX), needed("when it happens");
            /// None earlier.
            from: Duration = time(), or(Duration::ZERO);
            /// None later. Absent: to the end.
            until: Option<Duration> = duration(), optional("the end"),
                check(|at, until, reader| is_not_before(at, *until, from, reader));
        };
    }
}

fn is_not_before(
    at: &At<'_>,
    until: Option<Duration>,
    from: Option<Duration>,
    reader: &mut Reader<'_>,
) {
    if until < from {
        let message = "is before the first time; nothing would happen";
        reader.problems.wrong(at, message);
    }
}

record! {
    /// One of several events.
    #[derive(Clone, Debug)]
    pub(crate) struct Weighted ("{weight: 3, kill: any}") {
        /// It.
        event: Event = (), flattened();
        /// How often it is chosen, compared with the others.
        weight: f64 = number(0.0, WEIGHT_MAX), or(1.0);
    }
}

/// How long something lasts: between these two, by chance.
pub type Span = (Duration, Duration);

/// Which node.
#[derive(Clone, Debug, PartialEq, Eq)]
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

record! {
    /// Which clients: so many, by chance.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ClientChoice ("{clients: 3}", choice::number_of_clients) {
        /// How many, by chance. More than there are is refused.
        count as "clients": usize = whole(0, i128::from(u32::MAX)), needed("how many");
        /// Of the groups of that name.
        groups as "of": Option<Vec<usize>> = groups(), optional("of any group"),
            by(|groups: &Vec<usize>, of: &Scenario| choice::name_of_groups(groups, of));
        /// At these nodes.
        nodes as "at": Option<Vec<usize>> = places(), optional("at any node"),
            by(|nodes: &Vec<usize>, of: &Scenario| Ok::<Yaml, CannotWrite>(choice::names_of(nodes, of)));
    }
}

impl ClientChoice {
    /// So many of all.
    pub const fn any(count: usize) -> Self {
        Self {
            count,
            groups: None,
            nodes: None,
        }
    }

    /// How many there are to choose from.
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

/// Whose clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockChoice {
    /// That of a node's servers.
    Node(NodeChoice),
    /// Those of clients.
    Clients(ClientChoice),
}

/// What goes wrong.
pub(super) fn faults() -> Shape<Vec<Fault>> {
    let each = Shape::new("map", Fault::read);
    list_of("[{at: 120s, kill: root, for: 20s}]", each)
}

impl Fault {
    fn read(at: &At<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let map = at.map("{at: 120s, kill: root}", &mut reader.problems)?;
        let when = When::read_fields(&map, reader);
        let times = When::names_in(&map).unwrap_or(vec![&["at"], &["every"], &["per_hour"]]);
        if map.has("one_of") {
            map.check_keys(&[&times[..], &[&["one_of"]]].concat(), &mut reader.problems);
            let choices = one_of(&map, reader)?;
            let when = when?;
            return Some(Self { when, choices });
        }
        if let Some(names) = Event::names_in(&map) {
            map.check_keys(&[names, times].concat(), &mut reader.problems);
        }
        let event = Event::read_fields(&map, reader)?;
        let (when, choices) = (when?, vec![(1.0, event)]);
        Some(Self { when, choices })
    }
}

/// Several events, by weight.
fn one_of(map: &Map<'_>, reader: &mut Reader<'_>) -> Option<Vec<(f64, Event)>> {
    const EXAMPLE: &str = "[{weight: 3, kill: any}, {weight: 1, elect: any}]";
    let what = format!("a list, as in {EXAMPLE}");
    let at = map.need(&["one_of"], &what, &mut reader.problems)?;
    let choices = list_of(EXAMPLE, record::<Weighted>()).read(&at, reader)?;
    if choices.iter().all(|choice| choice.weight == 0.0) {
        let message = "has nothing that weighs anything; give one a weight above 0";
        reader.problems.wrong(&at, message);
    }
    let choices = choices.into_iter();
    Some(choices.map(|it| (it.weight, it.event)).collect())
}

impl Written for Fault {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        self.when.write_fields(&mut out, of)?;
        if let [(1.0, event)] = self.choices.as_slice() {
            event.write_fields(&mut out, of)?;
            return Ok(out);
        }
        let mut choices = Vec::new();
        for (weight, event) in &self.choices {
            let mut one = Yaml::map();
            event.write_fields(&mut one, of)?;
            one.put("weight", Yaml::plain(weight));
            choices.push(one);
        }
        out.put("one_of", Yaml::List(choices));
        Ok(out)
    }
}
