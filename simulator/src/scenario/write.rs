//! Writes scenarios as files: a file that is read again as the same scenario plays the same run, bit for bit.
//!
//! So a world that chance made can be kept, whatever chance draws later.

use doorward_documents::placed_value::{PlacedKey, PlacedValue, Value, read as read_yaml};
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, Serializer};
use serde_saphyr::{FlowMap, FlowSeq};

use crate::scenario::Scenario;
use crate::scenario::clients::GroupFile;
use crate::scenario::fault::{Event, Fault};
use crate::scenario::network::NetworkFile;
use crate::scenario::nodes::listed;
use crate::scenario::read::ScenarioFile;

/// A scenario has something in it that a file cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot be written as a scenario file: {0}")]
pub struct CannotWrite(String);

impl Scenario {
    /// The text of a file that plays the same run.
    ///
    /// # Errors
    ///
    /// If there is something in it that a file cannot say.
    pub fn to_yaml(&self) -> Result<String, CannotWrite> {
        let cannot = |error: serde_saphyr::SerializeError| CannotWrite(error.to_string());
        let file = ScenarioFile {
            name: Some(self.name.clone()).filter(|name| !name.is_empty()),
            description: self.description.clone(),
            duration: self.duration,
            seed: self.seed,
            sample_every: Some(self.sample_every),
            heal_at: self.heal_at,
            right_at: self.right_at.clone(),
            idle_faults: self.idle_faults,
            templates: self.templates.clone(),
            tree: Some(listed(&self.nodes)),
            clients: self
                .clients
                .iter()
                .map(|it| GroupFile::of(it, self))
                .collect(),
            network: NetworkFile::of(self),
            servers: self.servers,
            client_gaps: self.client_gaps,
            faults: self.faults.iter().map(Fault::to_file).collect(),
            settled_after: (self.settled_after != self.settled_by_default())
                .then_some(self.settled_after),
            limits: self.limits,
        };
        let text = serde_saphyr::to_string(&file).map_err(cannot)?;
        let document = read_yaml(&text).map_err(|problem| CannotWrite(problem.to_string()))?;
        let Some(mut document) = document else {
            return Ok(String::new());
        };
        tidy(&mut document);
        self.name_all(&mut document)?;
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        let shown = Shown {
            value: &document,
            depth: 0,
        };
        serde_saphyr::to_string_with_options(&shown, options).map_err(cannot)
    }

    /// Puts names instead of places into faults.
    fn name_all(&self, document: &mut PlacedValue) -> Result<(), CannotWrite> {
        for fault in items(document, "faults") {
            for event in items(fault, "one_of") {
                self.name_whom(event)?;
            }
            self.name_whom(fault)?;
        }
        Ok(())
    }

    /// Puts names instead of places into an event.
    fn name_whom(&self, event: &mut PlacedValue) -> Result<(), CannotWrite> {
        let Value::Map(entries) = &mut event.value else {
            return Ok(());
        };
        let whom = entries
            .iter_mut()
            .filter(|(key, _)| Event::is_of_some(&key.text));
        for (_, value) in whom {
            match &mut value.value {
                Value::Text(word) if word == "any_below_root" => *word = "below_root".to_owned(),
                Value::Map(choice) => match choice.as_slice() {
                    [(key, nodes)] if matches!(key.text.as_str(), "node" | "any_of") => {
                        *value = self.named(nodes)?;
                    }
                    _ => self.name_clients(choice)?,
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts names instead of places into a choice of clients.
    fn name_clients(&self, choice: &mut [(PlacedKey, PlacedValue)]) -> Result<(), CannotWrite> {
        for (key, value) in choice {
            match key.text.as_str() {
                "at" => *value = self.named(value)?,
                "of" => *value = self.group(value)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The names of nodes, instead of their places.
    fn named(&self, places: &PlacedValue) -> Result<PlacedValue, CannotWrite> {
        let value = match &places.value {
            Value::List(places) => {
                let names: Result<_, CannotWrite> =
                    places.iter().map(|it| self.named(it)).collect();
                Value::List(names?)
            }
            Value::Whole(place) => {
                let node = usize::try_from(*place)
                    .ok()
                    .and_then(|place| self.nodes.get(place));
                let node = node.ok_or_else(|| CannotWrite(format!("there is no node {place}")))?;
                Value::Text(node.name.clone())
            }
            other => other.clone(),
        };
        let place = places.place;
        Ok(PlacedValue { place, value })
    }

    /// The name that groups have, instead of their places.
    fn group(&self, places: &PlacedValue) -> Result<PlacedValue, CannotWrite> {
        let mut names = Vec::new();
        if let Value::List(places) = &places.value {
            for place in places {
                let Value::Whole(place) = place.value else {
                    continue;
                };
                let group = usize::try_from(place)
                    .ok()
                    .and_then(|it| self.clients.get(it));
                names.extend(group.map(|group| group.name.clone()));
            }
        }
        names.dedup();
        let place = places.place;
        match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok(PlacedValue {
                place,
                value: Value::Text(name),
            }),
            Err(_) => Err(CannotWrite(
                "clients of several groups, or of none".to_owned(),
            )),
        }
    }
}

/// The items of a list in a map.
fn items<'v>(map: &'v mut PlacedValue, key: &str) -> impl Iterator<Item = &'v mut PlacedValue> {
    let entries = match &mut map.value {
        Value::Map(entries) => entries.as_mut_slice(),
        _ => &mut [],
    };
    let found = entries.iter_mut().find(|(name, _)| name.text == key);
    let list = match found.map(|(_, list)| &mut list.value) {
        Some(Value::List(items)) => items.as_mut_slice(),
        _ => &mut [],
    };
    list.iter_mut()
}

/// Removes keys with nothing in them, and puts kinds beside their fields: `{kill: {kill: root, for: 5s}}` becomes
/// `{kill: root, for: 5s}`.
fn tidy(value: &mut PlacedValue) {
    match &mut value.value {
        Value::List(items) => items.iter_mut().for_each(tidy),
        Value::Map(entries) => {
            let mut kept: Vec<(PlacedKey, PlacedValue)> = Vec::with_capacity(entries.len());
            for (key, mut value) in std::mem::take(entries) {
                tidy(&mut value);
                match value.value {
                    Value::Null => {}
                    Value::Map(inner) if inner.is_empty() => {}
                    Value::List(items) if items.is_empty() && key.text != "resources" => {}
                    Value::Map(inner) if inner.iter().any(|(own, _)| own.text == key.text) => {
                        kept.extend(inner);
                    }
                    _ => kept.push((key, value)),
                }
            }
            *entries = kept;
        }
        _ => {}
    }
}

/// A value of a document: each entry of a map or list at the top in a line of its own.
struct Shown<'v> {
    value: &'v PlacedValue,
    depth: u8,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let depth = self.depth;
        let deeper = |value| Shown {
            value,
            depth: depth + 1,
        };
        let in_line = |value| Shown { value, depth: 3 };
        match &self.value.value {
            Value::Map(_) if depth == 2 => FlowMap(in_line(self.value)).serialize(to),
            Value::List(_) if depth == 2 => FlowSeq(in_line(self.value)).serialize(to),
            Value::Null => to.serialize_unit(),
            Value::Bool(value) => to.serialize_bool(*value),
            Value::Whole(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => to.serialize_u64(number),
                (_, Ok(number)) => to.serialize_i64(number),
                _ => Err(S::Error::custom("a number is too large")),
            },
            Value::Number(number) => to.serialize_f64(*number),
            Value::Text(text) => to.serialize_str(text),
            Value::List(items) => to.collect_seq(items.iter().map(deeper)),
            Value::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key.text, &deeper(value))?;
                }
                map.end()
            }
        }
    }
}
