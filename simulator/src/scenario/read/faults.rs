//! What goes wrong, and when.
//!
//! A fault has one of `at`, `every` and `per_hour`, and one event, or several by weight under
//! `one_of`. An event is one key that says what happens, whose value says to whom: a node, or so
//! many clients (`choice`); what else there is to say stands beside it.

mod choice;
mod event;

use std::time::Duration;

use crate::scenario::ClientGroup;
use crate::scenario::fault::{Event, Fault, When};
use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, Map};
use crate::scenario::read::tree::Tree;

const TIMES: [&str; 3] = ["at", "every", "per_hour"];

const EXAMPLE: &str = "[{at: 120s, kill: root, for: 20s}]";

/// The least that may happen by chance in an hour: once in a century.
const PER_HOUR_MIN: f64 = 1e-6;

/// The most that may happen by chance in an hour: a thousand a second.
const PER_HOUR_MAX: f64 = 3.6e6;

/// The largest weight: one that others can still be compared with.
const WEIGHT_MAX: f64 = 1e9;

/// What faults are read with.
#[derive(Clone, Copy)]
struct Around<'a> {
    duration: Duration,
    tree: Option<&'a Tree>,
    /// None: something is wrong with them.
    clients: Option<&'a [ClientGroup]>,
    /// What concerns nobody, or fewer than it says, is no mistake.
    may_be_idle: bool,
}

impl Reader<'_> {
    /// Those that are in order.
    pub(super) fn faults(
        &mut self,
        map: &Map<'_>,
        duration: Duration,
        tree: Option<&Tree>,
        clients: Option<&[ClientGroup]>,
    ) -> Vec<Fault> {
        let may_be_idle = map.get("idle_faults");
        let words = [("true", true), ("false", false)];
        let may_be_idle = may_be_idle.and_then(|at| at.word(&words, &mut self.problems));
        let around = Around {
            duration,
            tree,
            clients,
            may_be_idle: may_be_idle.unwrap_or(false),
        };
        let list = map.get("faults");
        let list = list.and_then(|at| at.list(EXAMPLE, &mut self.problems));
        let list = list.unwrap_or_default();
        list.iter()
            .filter_map(|at| self.fault(at, &around))
            .collect()
    }

    fn fault(&mut self, at: &At<'_>, around: &Around<'_>) -> Option<Fault> {
        let map = at.map("{at: 120s, kill: root}", &mut self.problems)?;
        let time = map.only_one(&TIMES, &mut self.problems);
        let mut keys = time.map_or(TIMES.to_vec(), |time| vec![time]);
        if time != Some("at") {
            keys.extend(["from", "until"]);
        }
        let when = time.and_then(|time| self.when(&map, time, around.duration));
        let choices = if map.has("one_of") {
            keys.push("one_of");
            map.check_keys(&keys, &mut self.problems);
            self.one_of(&map, around)
        } else {
            self.event(&map, &keys, around)
                .map(|event| vec![(1.0, event)])
        };
        Some(Fault {
            when: when?,
            choices: choices?,
        })
    }

    fn when(&mut self, map: &Map<'_>, time: &str, end: Duration) -> Option<When> {
        let at = map.need(time, "when it happens", &mut self.problems)?;
        match time {
            "at" => at.time_before(end, &mut self.problems).map(When::At),
            "every" => {
                let interval = at.step(&mut self.problems)?;
                // The first comes after one interval.
                let from = map.get("from").unwrap_or(at);
                let from = from.time_before(end, &mut self.problems)?;
                Some(When::Every {
                    interval,
                    from,
                    until: self.until(map, from)?,
                })
            }
            _ => {
                let per_hour = at.number(PER_HOUR_MIN, PER_HOUR_MAX, &mut self.problems)?;
                let from = match map.get("from") {
                    Some(at) => at.time_before(end, &mut self.problems)?,
                    None => Duration::ZERO,
                };
                Some(When::Random {
                    per_hour,
                    from,
                    until: self.until(map, from)?,
                })
            }
        }
    }

    /// Until when, if it is said. None: it is noted what is wrong.
    fn until(&mut self, map: &Map<'_>, from: Duration) -> Option<Option<Duration>> {
        let Some(at) = map.get("until") else {
            return Some(None);
        };
        let until = at.duration(&mut self.problems)?;
        if until < from {
            let message = "is before the first time; nothing would happen";
            self.problems.wrong(&at, message);
            return None;
        }
        Some(Some(until))
    }

    /// Several events, by weight.
    fn one_of(&mut self, map: &Map<'_>, around: &Around<'_>) -> Option<Vec<(f64, Event)>> {
        const EXAMPLE: &str = "[{weight: 3, kill: any}, {weight: 1, elect: any}]";
        let what = format!("a list, as in {EXAMPLE}");
        let at = map.need("one_of", &what, &mut self.problems)?;
        let list = at.list(EXAMPLE, &mut self.problems)?;
        let mut choices = Vec::new();
        for at in &list {
            let Some(map) = at.map("{weight: 3, kill: any}", &mut self.problems) else {
                continue;
            };
            let weight = map.get("weight");
            let weight = weight.map_or(Some(1.0), |at| {
                at.number(0.0, WEIGHT_MAX, &mut self.problems)
            });
            let event = self.event(&map, &["weight"], around);
            choices.extend(weight.zip(event));
        }
        if choices.len() == list.len() && choices.iter().all(|(weight, _)| *weight == 0.0) {
            let message = "has nothing that weighs anything; give one a weight above 0";
            self.problems.wrong(&at, message);
        }
        Some(choices)
    }
}
