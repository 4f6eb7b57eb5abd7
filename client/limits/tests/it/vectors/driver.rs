//! A limit of any algorithm, built from a case's settings.

use doorward_limits::{InvalidUnits, Moment, Units};
use serde_json::Value;

use crate::rule::{ALL, Rule, Subject, UNIT};

/// A limit that a case drives.
pub(crate) struct Driven {
    settings: Value,
    pub(crate) limit: Box<dyn Subject>,
}

impl Driven {
    /// Creates the limit that settings describe.
    pub(crate) fn new(settings: &Value) -> Self {
        let algorithm = |it: &Value| it["algorithm"].as_str().unwrap().to_owned();
        let (name, is_soft) = match algorithm(settings).as_str() {
            "soft_hard" => (algorithm(&settings["base"]), true),
            name => (name.to_owned(), false),
        };
        let it = ALL.iter().find(|(it, ..)| *it == name);
        let (_, plain, soft) = it.unwrap_or_else(|| panic!("no algorithm {name}"));
        let create = if is_soft { soft } else { plain };
        Self {
            settings: settings.clone(),
            limit: create(&rule(settings)).unwrap(),
        }
    }

    /// Changes settings; those that are not named stay.
    pub(crate) fn set_limit(&mut self, changes: &Value, now: Moment) {
        self.settings.as_object_mut().unwrap().remove("soft");
        for (name, value) in changes.as_object().unwrap() {
            if ["t_ns", "op", "expect", "rule"].contains(&name.as_str()) {
                continue;
            }
            let place = match self.settings.get("base") {
                Some(_) if name != "soft" => &mut self.settings["base"][name],
                _ => &mut self.settings[name],
            };
            *place = value.clone();
        }
        self.limit.set_limit(&rule(&self.settings), now);
    }
}

fn rule(settings: &Value) -> Rule {
    let hard = settings.get("base").unwrap_or(settings);
    let value = |of: &Value, names: &[&str]| names.iter().find_map(|it| of.get(*it).cloned());
    let amount =
        |of: &Value, names: &[&str]| value(of, names).map_or(0, |it| units(&it).unwrap().parts());
    let span = |names: &[&str], or| value(hard, names).map_or(or, |it| it.as_u64().unwrap());
    let rate = hard.get("rate");
    Rule {
        limit: amount(hard, &["burst", "capacity", "limit", "threshold"]),
        rate: rate.map_or((UNIT, 1), |it| {
            (amount(it, &["amount"]), it["per_ns"].as_u64().unwrap())
        }),
        window: span(&["window_ns", "interval_ns", "warmup_ns"], 1),
        wait: span(&["max_wait_ns", "ban_ns"], 0),
        more: amount(settings, &["soft", "cold_factor"]),
    }
}

pub(crate) fn units(value: &Value) -> Result<Units, InvalidUnits> {
    match value {
        Value::String(text) => text.parse(),
        number => number.to_string().parse(),
    }
}
